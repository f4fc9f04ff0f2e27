"""The ONNX standard's own test suite, through `rukh.backend`.

RUKH_BACKEND_PROVIDER ("cpu", the default here, or "hip") chooses the provider. Cases that the provider is
known to fail are named, with what they fail with, in the file that the conformance runner of the
repository keeps; here they are expected to fail, so that one that begins to pass fails the test.
"""

import os
import pathlib
import re

os.environ.setdefault("RUKH_BACKEND_PROVIDER", "cpu")

import numpy as np
import onnx.backend.test
import pytest
import rukh.backend
from models import model
from onnx import helper
from onnx.backend.test.loader import load_model_tests

PROVIDER = os.environ["RUKH_BACKEND_PROVIDER"]
DEVICE = {"cpu": "CPU", "hip": "CUDA"}[PROVIDER]
KNOWN = pathlib.Path(__file__).resolve().parents[2] / "cli" / "tests" / f"conformance-{PROVIDER}.txt"

# Cases that the suite's own comparison cannot judge, each with its reason; the tests at the end of this
# file judge them in its place.
EXCLUDED = {
    r"^test_bernoulli": "the outputs are random numbers, and the expected ones are NumPy's",
    r"^test_loop16_seq_none_": "the suite takes len() of each tensor of a sequence; one here has rank 0",
}

# Wider tolerances, each with its reason.
_NOISE = "the exact values are 0, and the expected ones are the rounding errors of another algorithm"
_JPEG = "decoders of JPEG may differ by rounding; the standard's data are Pillow's, two levels apart at most"
TOLERANCES = {
    "test_image_decoder_decode_jpeg_bgr": ({"atol": 2}, _JPEG),
    "test_image_decoder_decode_jpeg_grayscale": ({"atol": 2}, _JPEG),
    "test_image_decoder_decode_jpeg_rgb": ({"atol": 2}, _JPEG),
    "test_dft_inverse": ({"atol": 1e-6}, _NOISE),
    "test_dft_inverse_opset19": ({"atol": 1e-6}, _NOISE),
    "test_attention_4d_causal_fp16_expanded": (
        {"rtol": 2e-3},
        "the expected Softmax rounds to float16 after every step, rukh's at the end",
    ),
}

backend_test = onnx.backend.test.BackendTest(
    rukh.backend, __name__, {name: tolerance for name, (tolerance, _reason) in TOLERANCES.items()}
)
for pattern in EXCLUDED:
    backend_test.exclude(pattern)
for line in KNOWN.read_text().splitlines() if KNOWN.exists() else ():
    if not line.startswith("#"):
        backend_test.xfail(f"^{re.escape(line.split()[0])}_{DEVICE.lower()}$")
globals().update(backend_test.test_cases)

CASES = {case.name: case for case in load_model_tests(kind="node")}


def test_the_excluded_loop_gives_the_expected_sequence():
    case = CASES["test_loop16_seq_none"]
    representation = rukh.backend.prepare(case.model, DEVICE)
    for inputs, (expected,) in case.data_sets:
        (found,) = representation.run(inputs)
        assert [item.tolist() for item in found] == [item.tolist() for item in expected]
        assert all(item.dtype == wanted.dtype for item, wanted in zip(found, expected))


BERNOULLI = sorted(name for name in CASES if name.startswith("test_bernoulli"))


@pytest.mark.parametrize("name", BERNOULLI)
def test_the_excluded_bernoulli_gives_the_expected_type(name):
    case = CASES[name]
    for inputs, (expected,) in case.data_sets:
        (found,) = rukh.backend.run_model(case.model, inputs, DEVICE)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert set(found.tolist()) <= {0, 1}


def test_bernoulli_by_distribution_and_seed():
    node = helper.make_node("Bernoulli", ["x"], ["y"], seed=7.0)
    data = model([node], x=["n"], y=["n"])
    runs = []
    for _ in range(2):
        session = rukh.InferenceSession(data, providers=[PROVIDER])
        runs.append([session.run(None, {"x": np.full(100_000, p, np.float32)})[0] for p in (0.0, 0.3, 1.0)])
    for p, first, second in zip((0.0, 0.3, 1.0), *runs):
        # Five standard deviations of the mean of as many draws.
        assert abs(first.mean() - p) <= 5 * np.sqrt(p * (1 - p) / first.size)
        assert (first == second).all()
