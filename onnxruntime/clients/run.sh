#!/bin/sh
# Runs programs that were written for ONNX Runtime, unmodified as their registries have them, with this library in its
# place: on the CPU, and on an emulated GPU where RUKH_HIP_LIBRARY names the emulator.
#
#   onnxruntime/clients/run.sh FOLDER PYTHON
#
# FOLDER has libonnxruntime.so.1 and the librukh that it is linked to; PYTHON has onnx and onnxruntime, which makes the
# expected outputs. Builds under build/onnxruntime. These variables name what no registry that the tests use has:
#   ORT_INCLUDE  folders with headers of ONNX Runtime, separated by blanks: the C and C++ programs are built with each, plain,
#                with sanitizers and under valgrind. Where Debian's libonnxruntime-dev can be had, its headers are used as well
#   ORT_GO       a folder with the sources of Go's package onnxruntime_go
#   ORT_JAR      a file with the package for Java, and Jackson
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
# Debian's headers, unpacked and not installed: the package would bring a libonnxruntime along.
debian=$build/debian
if [ ! -d "$debian/usr" ] && command -v apt-get >/dev/null; then
    mkdir -p "$debian"
    (cd "$debian" && apt-get download --quiet libonnxruntime-dev >/dev/null 2>&1 && dpkg-deb --extract ./*.deb .) || true
fi
headers=$debian/usr/include/onnxruntime
[ -d "$headers" ] && ORT_INCLUDE="$headers ${ORT_INCLUDE:-}" || echo "Debian has no libonnxruntime-dev here"
for headers in ${ORT_INCLUDE:-}; do
    c_client "$headers" cc "$here/c/digits.c" "rocm migraphx" || fail "c:$headers"
    if [ -f "$headers/onnxruntime_cxx_api.h" ]; then
        c_client "$headers" "c++ -std=c++17" "$here/cxx/digits.cpp" "ROCM MIGraphX CUDA" || fail "c++:$headers"
    fi
done

# Go: the package is built with the program.
go_client() {
    mkdir -p "$build/go"
    cp "$here/go/go.mod" "$here/go/main.go" "$build/go"
    (cd "$build/go" && go mod edit -replace "github.com/yalue/onnxruntime_go=$ORT_GO" \
        && GOFLAGS=-mod=mod GOPROXY=off go build -o client .) || return 1
    "$build/go/client" "$library" "$plain" cpu || return 1
    for provider in rocm migraphx cuda; do
        on_gpu "$build/go/client" "$library" "$plain" $provider || return 1
    done
}
if [ -n "${ORT_GO:-}" ]; then go_client || fail go; else echo "Go: left out, ORT_GO names no sources"; fi

# Java: its library wants the one of its own version by name.
java_client() {
    mkdir -p "$build/java"
    unzip -qoj "$ORT_JAR" 'ai/onnxruntime/native/linux-x64/libonnxruntime4j_jni.so' -d "$build/java"
    wanted=$(readelf -d "$build/java/libonnxruntime4j_jni.so" | sed -n 's/.*\[\(libonnxruntime[^]]*\)\]/\1/p')
    cp -Lf "$library" "$build/java/libonnxruntime.so"
    cp -Lf "$(dirname "$library")"/librukh.so.0.1 "$build/java"
    [ "$wanted" = libonnxruntime.so ] || ln -sf libonnxruntime.so "$build/java/$wanted"
    # The package for CPUs has no call for a GPU, but asks for the providers that are there.
    set -- env "LD_LIBRARY_PATH=$build/java" java "-Donnxruntime.native.path=$build/java" -cp "$ORT_JAR" \
        "$here/java/Run.java" "$plain" cpu
    "$@" && on_gpu "$@"
}
if [ -n "${ORT_JAR:-}" ]; then java_client || fail java; else echo "Java: left out, ORT_JAR names no package"; fi

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
