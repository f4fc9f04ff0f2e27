"""The ONNX standard's own test suite, through `rukh.backend`.

RUKH_BACKEND_PROVIDER ("cpu", the default here, or "hip") chooses the provider. No case is left out.
Cases that the provider is known to fail are listed, with what they fail with, in the file that the
conformance runner of the repository keeps; they are expected to fail here as well, so that one which
begins to pass is told.
"""

import os
import pathlib
import re

os.environ.setdefault("RUKH_BACKEND_PROVIDER", "cpu")

import onnx.backend.test
import rukh.backend

PROVIDER = os.environ["RUKH_BACKEND_PROVIDER"]
DEVICE = {"cpu": "cpu", "hip": "cuda"}[PROVIDER]
ROOT = pathlib.Path(__file__).resolve().parents[2]

# Patterns of cases that cannot run, each with its reason.
EXCLUDED: dict[str, str] = {}

backend_test = onnx.backend.test.BackendTest(rukh.backend, __name__)
for pattern in EXCLUDED:
    backend_test.exclude(pattern)
globals().update(backend_test.test_cases)
