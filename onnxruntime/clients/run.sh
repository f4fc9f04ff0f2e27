#!/bin/sh
# Runs programs that were written for ONNX Runtime, unmodified as their registries have them, with this library in its
# place: on the CPU, and on an emulated GPU where RUKH_HIP_LIBRARY names the emulator.
#
#   onnxruntime/clients/run.sh FOLDER PYTHON
#
# FOLDER has libonnxruntime.so.1 and the librukh that it is linked to; PYTHON has onnx and onnxruntime, which makes the
# expected outputs. Builds under build/onnxruntime.
#
# RUKH_MODELS names the folder that `make models` writes. The programs then run three of its models in place of the small
# ones, each on a GPU by the first of its names, and their outputs are compared with those of PyTorch. onnxruntime-genai has
# no part in that: it generates text with models of a form of its own.
#
# These variables name what no registry that the tests use has:
#   ORT_INCLUDE  folders with headers of ONNX Runtime, separated by blanks: the C and C++ programs are built with each, plain,
#                with sanitizers and under valgrind. Where Debian's libonnxruntime-dev can be had, its headers are used as well
#   ORT_GO       a folder with the sources of Go's package onnxruntime_go
#   ORT_JAR      a file with the package for Java. That for CPUs has no call for a GPU
#   ORT_JAVA     a folder with the sources of ONNX Runtime, of which the package for Java is built with calls for GPUs
set -eu

[ $# -eq 2 ] || { echo "usage: $0 FOLDER PYTHON" >&2; exit 2; }
library=$(cd "$1" && pwd)/libonnxruntime.so.1
python=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/onnxruntime
digits=$root/examples/digits/digits.onnx
models=${RUKH_MODELS:-}
emulator=${RUKH_HIP_LIBRARY:-}
unset RUKH_HIP_LIBRARY RUKH_REQUIRE_HIP
mkdir -p "$build"
failed=

# A program on a GPU of the emulator, if there is one.
on_gpu() { if [ -n "$emulator" ]; then RUKH_REQUIRE_HIP=1 RUKH_HIP_LIBRARY=$emulator "$@"; fi; }
fail() { failed="$failed $1"; }
# Of a provider's names all, and with large models the first: a run on the emulator takes seconds.
names() { if [ -n "$models" ]; then echo "$1"; else echo "$@"; fi; }

# The library exports these names, without versions.
expected="OrtGetApiBase OrtSessionOptionsAppendExecutionProvider_CPU OrtSessionOptionsAppendExecutionProvider_CUDA \
OrtSessionOptionsAppendExecutionProvider_MIGraphX OrtSessionOptionsAppendExecutionProvider_ROCM"
exported=$(nm -D --defined-only --with-symbol-versions "$library" | awk '{ print $3 }' | sort | tr '\n' ' ')
[ "$exported" = "$expected " ] && echo "exported symbols: as expected" || { echo "exported: $exported"; fail symbols; }
readelf -d "$library" | grep -q 'soname: \[libonnxruntime.so.1\]' || fail soname

if [ -n "$models" ]; then
    cases=$build/cases/exported
    "$python" "$here/cases.py" exported "$cases" "$models"
else
    cases=$build/cases/small/plain
    [ -x "$build/genai/bin/python" ] || "$python" -m venv "$build/genai"
    "$build/genai/bin/python" -m pip install --quiet --no-deps --requirement "$here/genai/requirements.txt"
    "$python" "$here/cases.py" small "$build/cases/small" "$digits"
fi

# Node.js: its package has a libonnxruntime.so.1 of its own, whose place this one takes in a copy.
node_client() {
    mkdir -p "$build/node"
    cp "$here/node/package.json" "$here/node/run.mjs" "$build/node"
    (cd "$build/node" && npm install --silent --no-audit --no-fund --ignore-scripts) || return 1
    for folder in "$build"/node/node_modules/onnxruntime-node/bin/napi-v*/linux/*/; do
        cp -Lf "$library" "$(dirname "$library")"/librukh.so.0.1 "$folder"
    done
    node "$build/node/run.mjs" "$cases" cpu && on_gpu node "$build/node/run.mjs" "$cases" cuda
}
node_client || fail node

# Rust: the crate ort, which loads the file that ORT_DYLIB_PATH names.
rust_client() {
    CARGO_TARGET_DIR=$build/rust cargo build --quiet --locked --manifest-path "$here/rust/Cargo.toml" || return 1
    ORT_DYLIB_PATH=$library "$build/rust/debug/client-ort" "$cases" cpu || return 1
    for provider in $(names rocm migraphx); do
        ORT_DYLIB_PATH=$library on_gpu "$build/rust/debug/client-ort" "$cases" "$provider" || return 1
    done
    [ -z "$models" ] || return 0
    # Custom operators of a library that was built for ONNX Runtime. It is a module of Python's, whose functions it wants.
    operators=$(ls "$build"/genai/lib/python3*/site-packages/onnxruntime_extensions/_extensions_pydll*.so)
    LD_PRELOAD=$("$python" -c 'import sys; print("libpython{}.{}.so.1.0".format(*sys.version_info))') \
        ORT_DYLIB_PATH=$library "$build/rust/debug/client-ort" "$build/cases/small/extensions" cpu "$operators"
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
[ -n "$models" ] || genai_client || fail genai

# Threads in turns (--fair-sched): else one may keep the others waiting for minutes.
memory_checked="valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect \
    --show-leak-kinds=definite,indirect"

# c_client HEADERS COMPILER ENDING GPU-PROVIDERS-OF-DIGITS GPU-PROVIDERS-OF-CASES
c_client() {
    on_digits=$build/digits.$3.program
    on_cases=$build/cases.$3.program
    for source in "$here"/c*/digits."$3" "$here"/c*/cases."$3"; do
        program=$build/$(basename "$source").program
        link="-I$1 $library -Wl,-rpath,$(dirname "$library") -lm"
        $2 -g -O1 -Wall -Wextra -o "$program" "$source" $link || return 1
        [ -n "$models" ] || $2 -g -O1 -fsanitize=address,undefined -o "$program.checked" "$source" $link || return 1
    done
    if [ -z "$models" ]; then
        "$on_digits.checked" "$digits" && "$on_digits" "$digits" && $memory_checked "$on_digits" "$digits" || return 1
        for provider in $4; do
            on_gpu "$on_digits" "$digits" "$provider" || return 1
        done
        "$on_cases.checked" cpu "$cases"/* && $memory_checked "$on_cases" cpu "$cases"/* || return 1
    fi
    "$on_cases" cpu "$cases"/* || return 1
    for provider in $(names $5); do
        on_gpu "$on_cases" "$provider" "$cases"/* || return 1
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
    c_client "$headers" cc c "rocm migraphx" "ROCM MIGraphX" || fail "c:$headers"
    if [ -f "$headers/onnxruntime_cxx_api.h" ]; then
        c_client "$headers" "c++ -std=c++17" cpp "ROCM MIGraphX CUDA" "ROCM MIGraphX CUDA" || fail "c++:$headers"
    fi
done

# Go: the package is built with the program.
go_client() {
    mkdir -p "$build/go"
    cp "$here/go"/* "$build/go"
    (cd "$build/go" && go mod edit -replace "github.com/yalue/onnxruntime_go=$ORT_GO" \
        && GOFLAGS=-mod=mod GOPROXY=off go build -o client .) || return 1
    "$build/go/client" "$library" "$cases" cpu || return 1
    for provider in $(names rocm migraphx cuda); do
        on_gpu "$build/go/client" "$library" "$cases" "$provider" || return 1
    done
}
if [ -n "${ORT_GO:-}" ]; then go_client || fail go; else echo "Go: left out, ORT_GO names no sources"; fi

# java_client FOLDER CLASSES PROVIDERS: the package whose classes are at CLASSES and whose own library is in FOLDER, on the
# CPU, and with each of PROVIDERS where there is a GPU.
java_client() {
    folder=$1
    providers=$3
    cp -Lf "$library" "$folder/libonnxruntime.so"
    cp -Lf "$(dirname "$library")"/librukh.so.0.1 "$folder"
    # The package's library wants ONNX Runtime's by a name of its own, and its calls for GPUs want files of these names.
    wanted=$(readelf -d "$folder/libonnxruntime4j_jni.so" | sed -n 's/.*\[\(libonnxruntime[^]]*\)\]/\1/p')
    for name in "$wanted" libonnxruntime_providers_rocm.so libonnxruntime_providers_cuda.so; do
        [ "$name" = libonnxruntime.so ] || ln -sf libonnxruntime.so "$folder/$name"
    done
    set -- env "LD_LIBRARY_PATH=$folder" java "-Donnxruntime.native.path=$folder" -cp "$2" "$here/java/Run.java" "$cases"
    "$@" cpu || return 1
    for provider in $providers; do
        on_gpu "$@" "$provider" || return 1
    done
}

# The package for CPUs has no call for a GPU, but asks for the providers that are there.
java_package() {
    mkdir -p "$build/java"
    unzip -qoj "$ORT_JAR" 'ai/onnxruntime/native/linux-x64/libonnxruntime4j_jni.so' -d "$build/java"
    java_client "$build/java" "$ORT_JAR" cpu
}
if [ -n "${ORT_JAR:-}" ]; then java_package || fail java; else echo "Java: left out, ORT_JAR names no package"; fi

# The package with its calls for ROCm and CUDA, as those for GPUs are built.
java_sources() {
    made=$build/java-sources
    jdk=$(dirname "$(dirname "$(readlink -f "$(command -v javac)")")")
    rm -rf "$made"
    mkdir -p "$made/classes" "$made/headers" "$made/lib"
    find "$ORT_JAVA/java/src/main/java" "$ORT_JAVA/java/src/main/jvm" -name '*.java' ! -name module-info.java >"$made/sources"
    javac -nowarn -d "$made/classes" -h "$made/headers" "@$made/sources" || return 1
    echo "#define ORT_VERSION \"$(cat "$ORT_JAVA/VERSION_NUMBER")\"" >"$made/headers/onnxruntime_config.h"
    cc -O1 -shared -fPIC -DUSE_ROCM -DUSE_CUDA -I"$ORT_JAVA/include" -I"$ORT_JAVA/include/onnxruntime/core/session" \
        -I"$ORT_JAVA/orttraining/orttraining/training_api/include" -I"$made/headers" -I"$jdk/include" -I"$jdk/include/linux" \
        "$ORT_JAVA"/java/src/main/native/*.c "$library" -o "$made/lib/libonnxruntime4j_jni.so" || return 1
    java_client "$made/lib" "$made/classes" "$(names rocm cuda)"
}
if [ -n "${ORT_JAVA:-}" ]; then java_sources || fail java-sources; else echo "Java on GPUs: left out, ORT_JAVA names no sources"; fi

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
