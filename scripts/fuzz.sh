#!/bin/sh
# Fuzz the model loader, shape inference and the planner: scripts/fuzz.sh [SECONDS]
# Seeds are the models of the standard's test cases, when `make conformance` has written them, and the
# example's. What is found stays in fuzz/artifacts; the corpus grows in fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-600}"
version=0.13.1
tool="$PWD/build/tools/bin/cargo-fuzz"

if [ ! -x "$tool" ]; then
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR=build/tools/target \
        cargo install cargo-fuzz --version "$version" --locked --root build/tools
    rm -rf build/tools/target
fi

seeds=build/fuzz-seeds
mkdir -p "$seeds" fuzz/corpus/open_model
if [ -z "$(ls "$seeds")" ]; then
    for model in build/onnx-data/*/*/model.onnx examples/digits/digits.onnx; do
        [ -f "$model" ] && cp "$model" "$seeds/$(basename "$(dirname "$model")").onnx"
    done
fi

# The sanitizers are an unstable feature of rustc, which this variable allows on a stable one.
export RUSTC_BOOTSTRAP=1
exec "$tool" fuzz run open_model fuzz/corpus/open_model "$seeds" -- \
    -max_total_time="$seconds" -max_len=65536 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1
