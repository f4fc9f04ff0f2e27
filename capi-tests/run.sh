#!/bin/sh
# Builds and runs the tests of the C API against an installed tree:
#
#   capi-tests/run.sh PREFIX [VARIANT...]     (all that stand below, if none is named)
#
# Needs cmake, ninja, pkg-config, valgrind and a C and C++ compiler. Builds under build/capi-tests.
set -eu

[ $# -ge 1 ] || { echo "usage: $0 PREFIX [VARIANT...] (PREFIX: where the library is installed)" >&2; exit 2; }
prefix=$(cd "$1" && pwd)
shift
wanted=$*
here=$(cd "$(dirname "$0")" && pwd)
builds=${CAPI_TESTS_BUILD:-$here/../build/capi-tests}
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name rukh.pc | head -n 1)")
export PKG_CONFIG_PATH

failed=

# variant NAME FOLDER CMAKE-ARGUMENTS...
# Variants of one folder differ in how programs are run: those that the one before compiled serve the next.
variant() {
    name=$1
    folder=$builds/$2
    shift 2
    known="$known $name"
    case " ${wanted:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    log=$builds/$name.log
    # CMAKE_BUILD_RPATH serves the pkg-config variant, whose library is no CMake target.
    if cmake -S "$here" -B "$folder" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_BUILD_RPATH="$(dirname "$PKG_CONFIG_PATH")" "$@" >"$log" 2>&1 \
        && cmake --build "$folder" >>"$log" 2>&1 \
        && (cd "$folder" && ctest --output-on-failure --parallel 2) >>"$log" 2>&1; then
        echo "$name: $(grep 'tests passed' "$log") in $(awk '/Total Test time/ { print $6 }' "$log") s"
        # Programs that hold the library take 40 MB each.
        case $name in *-static) rm -rf "$folder" ;; esac
    else
        cat "$log"
        failed="$failed $name"
    fi
}

known=
mkdir -p "$builds"
variant package-shared shared -DRUKH_BY=package -DRUKH_LINK=shared -DRUKH_WRAPPER=
# Without --fair-sched a thread may keep valgrind's one lock for minutes, while others wait for it.
variant valgrind shared -DRUKH_BY=package -DRUKH_LINK=shared \
    -DRUKH_WRAPPER="valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,indirect --show-leak-kinds=definite,indirect"
variant package-static package-static -DRUKH_BY=package -DRUKH_LINK=static
variant pkg-config-shared pkg-config-shared -DRUKH_BY=pkg-config -DRUKH_LINK=shared
variant pkg-config-static pkg-config-static -DRUKH_BY=pkg-config -DRUKH_LINK=static
variant sanitized sanitized -DRUKH_BY=package -DRUKH_LINK=shared -DRUKH_SANITIZE=ON
for name in $wanted; do
    case " $known " in *" $name "*) ;; *) echo "no variant $name; there are$known" >&2; exit 2 ;; esac
done

# A program without any shared library. It cannot load a GPU's runtime.
if cc -static -O1 -o "$builds/static" "$here/src/session.c" $(pkg-config --cflags rukh) \
    "$(dirname "$PKG_CONFIG_PATH")/librukh.a" $(pkg-config --static --libs-only-l rukh | sed 's/-lrukh//') \
    >"$builds/static.log" 2>&1 && "$builds/static" "$here/models" >>"$builds/static.log" 2>&1; then
    echo "fully static: built and run"
    rm -f "$builds/static"
else
    cat "$builds/static.log"
    failed="$failed static"
fi

library=$(find "$prefix" -name librukh.so | head -n 1)
foreign=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^rukh_' || true)
if [ -n "$foreign" ]; then
    echo "exported, but not rukh_*: $foreign"
    failed="$failed symbols"
else
    echo "exported symbols: only rukh_*"
fi
# The linker keeps functions once that are the same; in C two functions have two addresses.
shared=$(nm -D --defined-only "$library" | awk '{ print $1 }' | sort | uniq -d)
if [ -n "$shared" ]; then
    echo "exported functions that share an address: $(nm -D --defined-only "$library" | grep -F "$shared")"
    failed="$failed addresses"
fi

[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
