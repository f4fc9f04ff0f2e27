"""scripts/bench/decode: decoders like Llama's, whose caches are one buffer for past and present, beside ONNX Runtime."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
import rukh

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench" / "decode" / "decode.py"

# The scores' difference that roundings make. Rotations in float16 are ONNX Runtime's in other places.
CASES = {
    "--kind f32": 1e-5,
    "--kind f16": 0.02,
    "--kind f16 --tied": 0.02,
    "--kind f32 --bits 4 --zeros": 1e-5,
    "--kind f32 --bits 4 --accuracy 4": 0.02,
    "--kind f32 --bits 8 --block 64 --accuracy 4": 0.02,
    "--kind f16 --bits 4": 0.02,
}



# Where a norm, a product and a gated unit are one launch, what lies between them is not rounded.
ON_GPU = {
    "--kind f16 --bits 4": 0.02,
    "--kind f16 --bits 4 --zeros --block 128": 0.02,
    "--kind f16 --bits 8 --block 64": 0.02,
    "--kind f32 --bits 4 --zeros": 1e-5,
}


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_onnx_runtime(case):
    assert difference(case) < CASES[case]


@pytest.mark.parametrize("case", ON_GPU)
def test_scores_on_a_gpu_are_those_of_onnx_runtime(case):
    if rukh.get_available_providers() == ["CPUExecutionProvider"]:
        pytest.skip("no GPU here; `make test-hip` runs this on the emulated one")
    pytest.importorskip("onnxruntime", reason="it computes what the scores must be")
    assert difference(f"{case} --provider hip") < ON_GPU[case]


def difference(case):
    sizes = "--layers 2 --width 128 --heads 4 --kv-heads 2 --inner 256 --words 300 --context 32 --past 4".split()
    few = "--rounds 1 --steps 2 --threads 2".split()
    command = [sys.executable, str(SCRIPT), *sizes, *few, *case.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["rukh"]["tokens_s"] > 0, found
    assert found["llama.cpp"].startswith("missing")
    return found["difference"]
