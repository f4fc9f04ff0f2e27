#!/bin/sh
# Predicted times of the exported models on a card, and the kernels that take longest: the emulator runs each model once and
# counts, its command predicts.
#
# usage: predict_models.sh CARD TARGET MODELS OUT [NAME...]
set -eu
card=$1 target=$2 models=$3 out=$4
shift 4
mkdir -p "$out"
[ $# -gt 0 ] || set -- $(ls "$models")
for name in "$@"; do
    counts=$out/$name-$target.jsonl
    rm -f "$counts"
    # The outputs are compared with torch's, so that what was counted is what the model does.
    AMDEMU_ARCH=$target AMDEMU_COUNT=$counts target/debug/rukh run --provider hip \
        --input "$models/$name/sample.npz" --expect "$models/$name/sample.npz" \
        "$models/$name/model.onnx" >"$out/$name-$target.log" 2>&1 || { cat "$out/$name-$target.log"; exit 1; }
    echo "$name"
    target/debug/amdemu predict --card "$card" "$counts" | tee "$out/$name-$card.txt"
done
