"""Whole models through ONNX Runtime, with nothing left to its CPU provider, nor on a GPU to rukh's.

RUKH_MODELS is the folder that `make models` writes: a folder for each model, with samples of inputs and of the outputs
that PyTorch gave. Without it these tests are left out. RUKH_CASES: parts of names, separated by commas.
"""

import os
import pathlib

import numpy as np
import pytest
from conftest import ROOT

FOLDER = os.environ.get("RUKH_MODELS")
# A GPU's second run is recorded, and the third one replayed.
RUNS = 3
# The largest difference allowed, over the largest magnitude of the output, as in cli/tests/models.rs.
TOLERANCE = 1e-3
PARTS = [part for part in os.environ.get("RUKH_CASES", "").split(",") if part]


def samples():
    """A model and a sample each; the digits example always."""
    digits = ROOT / "examples" / "digits"
    found = [pytest.param(digits / "digits.onnx", digits / "sample.npz", id="digits")]
    if FOLDER is not None:
        files = sorted(pathlib.Path(FOLDER).glob("*/sample*.npz"))
        assert files, f"RUKH_MODELS has no samples: {FOLDER}"
        for file in files:
            if not PARTS or any(part in file.parent.name for part in PARTS):
                found.append(
                    pytest.param(file.parent / "model.onnx", file, id=f"{file.parent.name}-{file.stem}")
                )
    return found


@pytest.mark.parametrize(("model", "sample"), samples())
def test_model(plugin, model, sample):
    arrays = np.load(sample)
    given = {name[3:]: arrays[name] for name in arrays if name.startswith("in:")}
    expected = {name[4:]: arrays[name] for name in arrays if name.startswith("out:")}
    assert given and expected
    session = plugin.session(model, {"fallback": "error"})
    assert set(plugin.assigned(session)) == {plugin.name}
    for run in range(1, RUNS + 1):
        for found, (name, value) in zip(session.run(list(expected), given), expected.items(), strict=True):
            assert (found.shape, found.dtype) == (value.shape, value.dtype), name
            allowed = TOLERANCE * np.abs(value).max(initial=0) if value.dtype.kind == "f" else 0
            np.testing.assert_allclose(found, value, rtol=0, atol=allowed, err_msg=f"{name}, run {run}")
