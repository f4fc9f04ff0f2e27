#!/bin/sh
# Compares the library's binary interface with the one checked in under abi/.
#
#   scripts/abi.sh check PREFIX     fails on any change that is not an addition (PREFIX: where the library is installed)
#   scripts/abi.sh update PREFIX    writes abi/rukh.abi and abi/rukh.symbols anew
#
# Symbols are those of the installed library. Types are those of its header, which a test makes from the source again and
# compares: every function that it declares is compiled as one of C, without contents but with debug information, which
# takes a second; the library itself would have to be compiled once more. What is no type (the numbers of codes, the sizes
# of typedefs) is asserted by capi-tests/src/codes.c. Needs abigail-tools and a C compiler.
set -eu
usage="usage: $0 check|update PREFIX"
[ $# -eq 2 ] || { echo "$usage" >&2; exit 2; }
library=$(find "$2" -name librukh.so | head -n 1)
[ -n "$library" ] || { echo "$2: no librukh.so is installed there; \`make stage\` installs it in build/prefix" >&2; exit 2; }
prefix=$(cd "$2" && pwd)
library=$(realpath "$library")
cd "$(dirname "$0")/.."
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT

nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort >"$new/symbols"

# A declaration ends with the first semicolon after RUKH_API.
{
    echo '#include <rukh/rukh.h>'
    awk '/RUKH_API$/ && !/#define/ { open = 1 }
         open { if (sub(/;$/, " { __builtin_trap(); }")) open = 0; print }' "$prefix/include/rukh/rukh.h"
} >"$new/rukh.c"
cc -g -fPIC -shared -I"$prefix/include" -o "$new/librukh.so" "$new/rukh.c"
nm -D --defined-only "$new/librukh.so" | awk '{ print $3 }' | grep '^rukh_' | LC_ALL=C sort >"$new/declared"
cmp -s "$new/symbols" "$new/declared" || {
    echo "what the library exports (<) and what rukh.h declares (>) differ:" >&2
    diff "$new/symbols" "$new/declared" >&2 || true
    exit 1
}
abidw --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed --out-file "$new/abi" "$new/librukh.so"

case $1 in
update)
    cp "$new/symbols" abi/rukh.symbols
    cp "$new/abi" abi/rukh.abi
    ;;
check)
    failed=
    gone=$(LC_ALL=C comm -23 abi/rukh.symbols "$new/symbols")
    [ -z "$gone" ] || { echo "no longer exported: $gone"; failed=1; }
    added=$(LC_ALL=C comm -13 abi/rukh.symbols "$new/symbols")
    [ -z "$added" ] || { echo "added (scripts/abi.sh update records them):" && echo "$added"; }
    abidiff --no-added-syms abi/rukh.abi "$new/abi" || failed=1
    [ -z "$failed" ] || { echo "the binary interface changed in a way that breaks programs" >&2; exit 1; }
    echo "the binary interface is that of abi/rukh.abi: $(wc -l <"$new/symbols") functions"
    ;;
*)
    echo "$usage" >&2
    exit 2
    ;;
esac
