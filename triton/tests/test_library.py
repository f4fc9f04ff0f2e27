"""The library's file."""

import os
import subprocess

NAMES = {
    "TRITONBACKEND_Initialize",
    "TRITONBACKEND_Finalize",
    "TRITONBACKEND_GetBackendAttribute",
    "TRITONBACKEND_ModelInitialize",
    "TRITONBACKEND_ModelFinalize",
    "TRITONBACKEND_ModelInstanceInitialize",
    "TRITONBACKEND_ModelInstanceFinalize",
    "TRITONBACKEND_ModelInstanceExecute",
}


def test_only_the_functions_of_a_backend_are_exported():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", os.environ["RUKH_TRITON_BACKEND"]],
        check=True,
        capture_output=True,
        text=True,
    )
    assert {line.split()[2] for line in listed.stdout.splitlines()} == NAMES
