#!/bin/sh
# Cross-compiles the library, its unit tests and the tests of the C API, and runs these on this machine:
#
#   scripts/test_cross.sh CARGO-CAPI [aarch64] [windows]
#
# aarch64: for ARM Linux, with Debian's compiler, by qemu-user. windows: for Windows, with Debian's mingw-w64, by wine.
# Without a name, both. CARGO-CAPI is cargo-c's command. What is built lies under build/cross/NAME: prefix/ as a user
# of that system has it, tests/ the programs. The library is for the CPU alone (RUKH_GPU_TARGETS chooses GPUs) and
# not optimised: what is tested is that it does what it does elsewhere, and nothing is timed.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 CARGO-CAPI [aarch64] [windows]" >&2; exit 2; }
cargo_capi=$1
shift
[ $# -gt 0 ] || set -- aarch64 windows
cd "$(dirname "$0")/.."
root=$PWD

if [ "$(uname -sm)" != "Linux x86_64" ]; then
    echo "cross-compiled: not run, the compilers and emulators are Debian's for x86-64" >&2
    exit 1
fi

# The standard library for a target: rustup's, or what a distribution has installed.
standard_library() {
    if command -v rustup >/dev/null; then
        rustup --quiet target add "$1"
    elif [ ! -d "$(rustc --print target-libdir --target "$1")" ]; then
        echo "Rust's standard library for $1 is not installed: install it as the package of rustc asks for, or use rustup" >&2
        exit 1
    fi
}

# build TARGET PREFIX OPTIONS...: builds and installs the library.
build() {
    target=$1
    prefix=$2
    shift 2
    rm -rf "$prefix"
    RUKH_GPU_TARGETS=${RUKH_GPU_TARGETS:-none} CARGO_PROFILE_DEV_DEBUG=none \
        "$cargo_capi" capi install --debug --target "$target" --prefix="$prefix" --libdir="$prefix/lib" "$@"
}

# unit_tests NAME TARGET OPTIONS...: cargo knows the command that runs them.
unit_tests() {
    name=$1
    target=$2
    shift 2
    log=$root/build/cross/$name/unit.log
    if RUKH_GPU_TARGETS=${RUKH_GPU_TARGETS:-none} CARGO_PROFILE_DEV_DEBUG=none \
        cargo test --quiet --lib -p rukh -p rukh-core -p rukh-cpu --target "$target" -- "$@" >"$log" 2>&1; then
        echo "$name: unit tests: $(sed -n 's/^test result: //p' "$log")"
    else
        cat "$log"
        exit 1
    fi
}

# run_tests NAME VARIANT CMAKE-ARGUMENTS...: builds the tests of the C API and runs them.
run_tests() {
    name=$1
    tests=$root/build/cross/$name/tests-$2
    log=$root/build/cross/$name/$2.log
    link=$2
    shift 2
    if cmake -S capi-tests -B "$tests" -G Ninja -DCMAKE_PREFIX_PATH="$root/build/cross/$name/prefix" \
        -DCMAKE_FIND_ROOT_PATH_MODE_PACKAGE=BOTH -DRUKH_LINK="$link" "$@" >"$log" 2>&1 \
        && cmake --build "$tests" >>"$log" 2>&1 \
        && (cd "$tests" && ctest --output-on-failure --parallel 2) >>"$log" 2>&1; then
        sed -n "s/^-- not run: /$name, $link: not run: /p" "$log"
        echo "$name, $link: $(grep 'tests passed' "$log") in $(awk '/Total Test time/ { print $6 }' "$log") s"
        # Programs that hold the library take 50 MB each.
        rm -rf "$tests"
    else
        cat "$log"
        exit 1
    fi
}

aarch64() {
    scripts/install_packages.sh cmake ninja-build gcc-aarch64-linux-gnu g++-aarch64-linux-gnu qemu-user
    standard_library aarch64-unknown-linux-gnu
    qemu="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    build aarch64-unknown-linux-gnu "$root/build/cross/aarch64/prefix"
    run_tests aarch64 shared -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
        -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
        -DRUKH_EMULATOR="$qemu"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$qemu"
    echo "aarch64: not run: a_run_is_cancelled_inside_a_node (it multiplies large matrices, which takes minutes there)"
    unit_tests aarch64 aarch64-unknown-linux-gnu --skip a_run_is_cancelled_inside_a_node
}

# As programs for Windows name a path of this machine.
windows_path() {
    printf 'Z:%s' "$(realpath "$1" | tr / '\\')"
}

# The folder of a library of the compiler's.
folder_of() {
    dirname "$(x86_64-w64-mingw32-g++-posix -print-file-name="$1")"
}

windows() {
    scripts/install_packages.sh cmake ninja-build g++-mingw-w64-x86-64-posix mingw-w64-x86-64-dev wine wine64 \
        clang-19 lld-19 llvm-19
    standard_library x86_64-pc-windows-gnu
    here=$root/build/cross/windows
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc-posix
    build x86_64-pc-windows-gnu "$here/prefix"
    # As import libraries are called where mingw is at home; --meson-paths would rename the DLL as well.
    mv "$here/prefix/lib/rukh.dll.a" "$here/prefix/lib/librukh.dll.a"

    export WINEPREFIX="$here/wine" WINEARCH=win64 WINEDEBUG=-all WINEDLLOVERRIDES="mscoree,mshtml="
    # It would start anew for each program, which takes seconds.
    mkdir -p "$WINEPREFIX" "$here/system"
    wineserver --kill --wait || true
    wineserver --persistent=60
    trap "wineserver --kill" EXIT
    wineboot --init >/dev/null 2>&1
    wine=/usr/lib/wine/wine64

    if [ ! -e "$WINEPREFIX/drive_c/windows/system32/bcryptprimitives.dll" ]; then
        x86_64-w64-mingw32-gcc-posix -shared -O1 -Wall -Wextra -o "$here/system/bcryptprimitives.dll" \
            capi-tests/windows/bcryptprimitives.c -ladvapi32
    fi
    WINEPATH="$(windows_path "$here/prefix/bin");$(windows_path "$here/system")"
    WINEPATH="$WINEPATH;$(windows_path "$(folder_of libstdc++-6.dll)");$(windows_path "$(folder_of libwinpthread-1.dll)")"
    export WINEPATH
    set -- -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64 \
        -DCMAKE_C_COMPILER=x86_64-w64-mingw32-gcc-posix -DCMAKE_CXX_COMPILER=x86_64-w64-mingw32-g++-posix \
        -DCMAKE_RC_COMPILER=x86_64-w64-mingw32-windres -DRUKH_EMULATOR="$wine"
    run_tests windows shared "$@"
    run_tests windows static "$@"
    other_compiler "$here" "$wine"
    exported "$here/prefix/bin/rukh.dll"
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER="$wine"
    unit_tests windows x86_64-pc-windows-gnu
}

# A program as Microsoft's tools make it: an import library from the .def file, clang for their target, their linker's
# likeness.
other_compiler() {
    llvm-dlltool-19 -m i386:x86-64 -D rukh.dll -d "$1/prefix/lib/rukh.def" -l "$1/rukh.lib"
    clang-19 --target=x86_64-pc-windows-msvc -ffreestanding -O1 -Wall -Wextra -Werror -I"$1/prefix/include" \
        -c capi-tests/windows/import.c -o "$1/import.obj"
    lld-link-19 -nologo -subsystem:console -entry:start -nodefaultlib -out:"$1/import.exe" "$1/import.obj" "$1/rukh.lib"
    if "$2" "$1/import.exe"; then
        echo "windows: a program linked by rukh.lib, as llvm-dlltool makes it of rukh.def, runs"
    else
        echo "windows: a program linked by rukh.lib ended with $?" >&2
        exit 1
    fi
}

# Only the functions of the header are exported.
exported() {
    x86_64-w64-mingw32-objdump -p "$1" | sed -n '/^\[Ordinal.*Pointer\] Table/,/^$/s/^\t\[ *[0-9]*\] //p' | sort >"$1.symbols"
    python3 -c 'import json, sys
print(*sorted(function["name"] for function in json.load(sys.stdin)["functions"]), sep="\n")' \
        <abi/rukh-api.json >"$1.wanted"
    if ! diff "$1.wanted" "$1.symbols"; then
        echo "windows: rukh.dll exports other functions than abi/rukh-api.json has (<)" >&2
        exit 1
    fi
    rm "$1.wanted" "$1.symbols"
    echo "windows: rukh.dll exports the functions of abi/rukh-api.json and nothing else"
}

for name in "$@"; do
    case $name in
        aarch64 | windows) "$name" ;;
        *) echo "$name is not known; known are aarch64 and windows" >&2; exit 2 ;;
    esac
done
