#!/bin/sh
# Fuzz the library: scripts/fuzz.sh [SECONDS [TARGET…]], each target (all without one) so long.
#   open_artifact  compiled models, with changed parts and right checksums
#   open_model   the model loader, shape inference and the planner, with mutated models
#   run_node     the kernels, with models of one node drawn from fuzz/operators.txt
# Seeds of open_model are the models of the standard's test cases, when `make conformance` has written them, and the
# example's. What is found stays in fuzz/artifacts; the corpus grows in fuzz/corpus.
set -eu
cd "$(dirname "$0")/.."
seconds="${1:-600}"
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- open_artifact open_model run_node
version=0.13.1
tool="$PWD/build/tools/bin/cargo-fuzz"

if [ ! -x "$tool" ]; then
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_TARGET_DIR=build/tools/target \
        cargo install cargo-fuzz --version "$version" --locked --root build/tools
    rm -rf build/tools/target
fi

seeds=build/fuzz-seeds
mkdir -p "$seeds" fuzz/corpus/open_artifact fuzz/corpus/open_model fuzz/corpus/run_node
if [ -z "$(ls "$seeds")" ]; then
    for model in build/onnx-data/*/*/model.onnx examples/digits/digits.onnx; do
        [ -f "$model" ] && cp "$model" "$seeds/$(basename "$(dirname "$model")").onnx"
    done
fi

# The sanitizers are an unstable feature of rustc, which this variable allows on a stable one.
export RUSTC_BOOTSTRAP=1
# A kernel may ask for more memory than there is, and must take no for an answer.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}allocator_may_return_null=1:max_allocation_size_mb=2048"
for target; do
    case $target in
    open_model) set -- "$seeds" -max_len=65536 ;;
    open_artifact) set -- -max_len=256 ;;
    *)
        # Nodes are drawn from some hundred bytes, to which short inputs grow slowly.
        if [ -z "$(ls "fuzz/corpus/$target")" ]; then
            for i in $(seq 200); do
                head -c $((i * 3)) /dev/urandom >"fuzz/corpus/$target/random$i"
            done
        fi
        set -- -max_len=1024 -len_control=0 -malloc_limit_mb=0
        ;;
    esac
    "$tool" fuzz run "$target" "fuzz/corpus/$target" -- "$@" \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1
done
