#!/bin/sh
# Runs programs that were written for ONNX Runtime, unmodified as their registries have them, with this library in its
# place: on the CPU, and on an emulated GPU where RUKH_HIP_LIBRARY names the emulator.
#
#   onnxruntime/clients/run.sh FOLDER PYTHON
#
# FOLDER has libonnxruntime.so.1 and the librukh that it is linked to; PYTHON has onnx and onnxruntime, which makes the
# expected outputs. Builds under build/onnxruntime. ORT_INCLUDE may name folders with headers of ONNX Runtime, separated
# by blanks: the C and C++ programs are then built with each, plain, with sanitizers and under valgrind. No package that
# the tests may install has those headers, so that without ORT_INCLUDE these programs are not built.
set -eu

[ $# -eq 2 ] || { echo "usage: $0 FOLDER PYTHON" >&2; exit 2; }
library=$(cd "$1" && pwd)/libonnxruntime.so.1
python=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/onnxruntime
digits=$root/examples/digits/digits.onnx
emulator=${RUKH_HIP_LIBRARY:-}
unset RUKH_HIP_LIBRARY RUKH_REQUIRE_HIP
mkdir -p "$build"
failed=

# A program on a GPU of the emulator, if there is one.
on_gpu() { if [ -n "$emulator" ]; then RUKH_REQUIRE_HIP=1 RUKH_HIP_LIBRARY=$emulator "$@"; fi; }
fail() { failed="$failed $1"; }

# The library exports these names, without versions.
expected="OrtGetApiBase OrtSessionOptionsAppendExecutionProvider_CPU OrtSessionOptionsAppendExecutionProvider_CUDA \
OrtSessionOptionsAppendExecutionProvider_MIGraphX OrtSessionOptionsAppendExecutionProvider_ROCM"
exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '{ print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "$expected " ] && echo "exported symbols: as expected" || { echo "exported: $exported"; fail symbols; }
readelf -d "$library" | grep -q 'soname: \[libonnxruntime.so.1\]' || fail soname

[ -x "$build/genai/bin/python" ] || "$python" -m venv "$build/genai"
"$build/genai/bin/python" -m pip install --quiet --no-deps --requirement "$here/genai/requirements.txt"
"$python" "$here/cases.py" "$build/cases" "$digits"
plain=$build/cases/plain

# Node.js: its package has a libonnxruntime.so.1 of its own, whose place this one takes in a copy.
node_client() {
    mkdir -p "$build/node"
    cp "$here/node/package.json" "$here/node/run.mjs" "$build/node"
    (cd "$build/node" && npm install --silent --no-audit --no-fund --ignore-scripts) || return 1
    for folder in "$build"/node/node_modules/onnxruntime-node/bin/napi-v*/linux/*/; do
        cp -Lf "$library" "$(dirname "$library")"/librukh.so.0.1 "$folder"
    done
    node "$build/node/run.mjs" "$plain" cpu && on_gpu node "$build/node/run.mjs" "$plain" cuda
}
node_client || fail node

# Rust: the crate ort, which loads the file that ORT_DYLIB_PATH names.
rust_client() {
    CARGO_TARGET_DIR=$build/rust cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml" || return 1
    ORT_DYLIB_PATH=$library "$build/rust/debug/client-ort" "$plain" cpu || return 1
    for provider in rocm migraphx; do
        ORT_DYLIB_PATH=$library on_gpu "$build/rust/debug/client-ort" "$plain" $provider || return 1
    done
    # Custom operators of a library that was built for ONNX Runtime. It is a module of Python's, whose functions it wants.
    operators=$(ls "$build"/genai/lib/python3*/site-packages/onnxruntime_extensions/_extensions_pydll*.so)
    LD_PRELOAD=$("$python" -c 'import sys; print("libpython{}.{}.so.1.0".format(*sys.version_info))') \
        ORT_DYLIB_PATH=$library "$build/rust/debug/client-ort" "$build/cases/extensions" cpu "$operators"
}
rust_client || fail rust

# onnxruntime-genai: looks for the library in the folder of a package onnxruntime on Python's path.
genai_client() {
    mkdir -p "$build/package/onnxruntime/capi"
    touch "$build/package/onnxruntime/__init__.py"
    cp -Lf "$library" "$(dirname "$library")"/librukh.so.0.1 "$build/package/onnxruntime/capi"
    set -- "$build/genai/bin/python" "$here/genai/run.py" "$root/examples/generate/model" "$root/examples/generate/reference.json"
    PYTHONPATH=$build/package "$@" && PYTHONPATH=$build/package on_gpu "$@" AMDGPU
}
genai_client || fail genai

memory_checked="valgrind --quiet --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    --show-leak-kinds=definite,indirect"

# c_client HEADERS COMPILER SOURCE GPU-PROVIDERS
c_client() {
    program=$build/$(basename "$3").program
    link="$library -Wl,-rpath,$(dirname "$library")"
    $2 -g -O1 -fsanitize=address,undefined -o "$program" "$3" -I"$1" $link && "$program" "$digits" || return 1
    $2 -g -O1 -Wall -Wextra -o "$program" "$3" -I"$1" $link && "$program" "$digits" && $memory_checked "$program" "$digits" || return 1
    for provider in $4; do
        on_gpu "$program" "$digits" "$provider" || return 1
    done
}
for headers in ${ORT_INCLUDE:-}; do
    c_client "$headers" cc "$here/c/digits.c" "rocm migraphx" || fail "c:$headers"
    if [ -f "$headers/onnxruntime_cxx_api.h" ]; then
        c_client "$headers" "c++ -std=c++17" "$here/cxx/digits.cpp" "ROCM MIGraphX CUDA" || fail "c++:$headers"
    fi
done

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
