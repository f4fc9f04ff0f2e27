"""scripts/bench/decode: decoders like Llama's, whose caches are one buffer for past and present, beside ONNX Runtime,
llama.cpp and onnxruntime-genai.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest
import rukh

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "bench" / "decode" / "decode.py"

# The scores' difference that roundings make. Rotations in float16 are ONNX Runtime's in other places. Without a level of
# accuracy the left side of products with 4 bits has 16 bits, with level 1 it is not rounded.
CASES = {
    "--kind f32": 1e-5,
    "--kind f16": 0.02,
    "--kind f16 --tied": 0.02,
    "--kind f32 --bits 4 --zeros": 5e-4,
    "--kind f32 --bits 4 --zeros --accuracy 1": 1e-5,
    "--kind f32 --bits 4 --accuracy 4": 0.02,
    "--kind f32 --bits 8 --block 64 --accuracy 4": 0.02,
    "--kind f16 --bits 4": 0.02,
}

# llama.cpp rounds the left side of all products, to 8 bits or to the weights' type.
IN_LLAMA_CPP = {
    "--kind f32": 0.002,
    "--kind f16": 0.02,
    "--kind f16 --tied": 0.02,
    "--kind f32 --bits 4 --accuracy 4": 0.02,
    "--kind f32 --bits 8 --accuracy 4": 0.02,
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
    assert times(case, "rukh,onnxruntime")["difference"] < CASES[case]


@pytest.mark.parametrize("case", IN_LLAMA_CPP)
def test_scores_are_those_of_llama_cpp(case):
    for package in ("gguf", "llama_cpp"):
        pytest.importorskip(package, reason="llama.cpp is built where it is compared with, not for every test run")
    found = times(case, "rukh,llama.cpp")
    assert found["llama.cpp"]["tokens_s"] > 0, found
    assert found["difference"] < IN_LLAMA_CPP[case]


def test_onnxruntime_genai_is_timed():
    pytest.importorskip("onnxruntime_genai", reason="it is installed where it is compared with, not for every test run")
    found = times("--kind f32 --bits 4 --accuracy 4", "rukh,onnxruntime-genai")
    assert found["onnxruntime-genai"]["tokens_s"] > 0, found
    assert "difference" not in found


def test_what_cannot_be_timed_has_its_reason():
    found = times("--kind f32 --bits 4 --zeros", "rukh,llama.cpp")
    told = found["llama.cpp"]
    assert told.startswith("missing: No module named") or "without zero points" in told, found


@pytest.mark.parametrize("case", ON_GPU)
def test_scores_on_a_gpu_are_those_of_onnx_runtime(case):
    if rukh.get_available_providers() == ["CPUExecutionProvider"]:
        pytest.skip("no GPU here; `make test-hip` runs this on the emulated one")
    pytest.importorskip("onnxruntime", reason="it computes what the scores must be")
    assert times(f"{case} --provider hip", "rukh,onnxruntime")["difference"] < ON_GPU[case]


def times(case, engines):
    """What the script found."""
    sizes = "--layers 2 --width 128 --heads 4 --kv-heads 2 --inner 256 --words 300 --context 32 --past 4".split()
    few = "--rounds 1 --steps 2 --threads 2".split()
    command = [sys.executable, str(SCRIPT), "--engines", engines, *sizes, *few, *case.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    found = json.loads(done.stdout)
    assert found["rukh"]["tokens_s"] > 0, found
    return found
