#!/bin/sh
# Compares the library's binary interface with the one checked in under abi/.
#
#   scripts/abi.sh check     fails on any change that is not an addition
#   scripts/abi.sh update    writes abi/rukh.abi and abi/rukh.symbols anew
#
# Reads a build with full debug information, which has the types of all functions. What is no type (the numbers of
# codes, the sizes of typedefs) is asserted by capi-tests/src/codes.c. Needs abigail-tools.
set -eu
cd "$(dirname "$0")/.."

library=${CARGO_TARGET_DIR:-target}/abi/librukh.so
cargo rustc --lib --crate-type cdylib --profile abi --quiet

symbols() {
    nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort
}

types() {
    abidw --suppressions abi/suppressions.ini --no-show-locs --no-corpus-path --no-comp-dir-path \
        --no-elf-needed --out-file "$1" "$library"
    grep -q '<function-decl' "$1" || { echo "$library has no debug information" >&2; exit 1; }
}

case ${1:-} in
update)
    symbols >abi/rukh.symbols
    types abi/rukh.abi
    ;;
check)
    new=$(mktemp -d)
    trap 'rm -rf "$new"' EXIT
    symbols >"$new/symbols"
    types "$new/abi"
    failed=
    foreign=$(grep -v '^rukh_' "$new/symbols" || true)
    [ -z "$foreign" ] || { echo "exported, but not rukh_*: $foreign"; failed=1; }
    gone=$(LC_ALL=C comm -23 abi/rukh.symbols "$new/symbols")
    [ -z "$gone" ] || { echo "no longer exported: $gone"; failed=1; }
    added=$(LC_ALL=C comm -13 abi/rukh.symbols "$new/symbols")
    [ -z "$added" ] || { echo "added (scripts/abi.sh update records them):" && echo "$added"; }
    abidiff --no-added-syms abi/rukh.abi "$new/abi" || failed=1
    [ -z "$failed" ] || { echo "the binary interface changed in a way that breaks programs" >&2; exit 1; }
    echo "the binary interface is that of abi/rukh.abi: $(wc -l <"$new/symbols") functions"
    ;;
*)
    echo "usage: $0 check|update" >&2
    exit 2
    ;;
esac
