#!/bin/sh
# Builds and runs the examples against an installed rukh, then runs each program with a model that is not there: it must
# fail, and say which file it looked for.
#
#     scripts/test_examples.sh PREFIX BUILD
set -eu

[ $# -eq 2 ] || { echo "usage: $0 PREFIX BUILD (where rukh is installed; a folder for the programs)" >&2; exit 2; }
prefix=$1
build=$2
cd "$(dirname "$0")/../examples"

for example in */; do
    example=${example%/}
    make --no-print-directory -C "$example" run PREFIX="$prefix" BUILD="$build/$example"
    for program in "$build/$example"/*; do
        [ -f "$program" ] && [ -x "$program" ] || continue
        if said=$(cd "$example" && "$program" none.onnx 2>&1 </dev/null); then
            echo "$program none.onnx: it succeeds without a model: $said" >&2
            exit 1
        fi
        case $said in
        *none.onnx*) ;;
        *)
            echo "$program none.onnx: it does not name the file that is not there: $said" >&2
            exit 1
            ;;
        esac
    done
done
echo "the examples run, and name a model that is not there"
