#!/bin/sh
# Run the ONNX standard's test cases: scripts/conformance.sh [PART_OF_A_NAME[,…]]
# The cases are those in $RUKH_ONNX_DATA, else in build/onnx-data, where `make conformance` writes them.
set -eu
cd "$(dirname "$0")/.."
export RUKH_ONNX_DATA="${RUKH_ONNX_DATA:-$PWD/build/onnx-data}"
export RUKH_CASES="${1:-}"
exec cargo test --quiet --workspace --test conformance -- --nocapture
