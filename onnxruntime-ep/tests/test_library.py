"""The library's file, and the wheel that brings it along."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import onnxruntime
from conftest import GPU, LIBRARY, ROOT

PROGRAM = """
import sys
import numpy
import onnxruntime
import onnxruntime_ep_rukh

assert "site-packages" in onnxruntime_ep_rukh.get_library_path()
cpu = sys.argv[2] == "cpu"
name = "RukhCPUExecutionProvider" if cpu else onnxruntime_ep_rukh.get_ep_name()
onnxruntime.register_execution_provider_library(
    name if cpu else "rukh.virtual", onnxruntime_ep_rukh.get_library_path()
)
devices = [device for device in onnxruntime.get_ep_devices() if device.ep_name == name]
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
options.add_provider_for_devices(devices[:1], {})
session = onnxruntime.InferenceSession(sys.argv[1], options)
image = numpy.zeros((1, 1, 8, 8), numpy.float32)
assert session.run(None, {session.get_inputs()[0].name: image})[0].shape == (1, 10)
print("ran")
"""


def test_two_functions_are_exported():
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", LIBRARY], check=True, capture_output=True, text=True
    )
    names = {line.split()[2] for line in listed.stdout.splitlines()}
    assert names == {"CreateEpFactories", "ReleaseEpFactory"}


def test_the_wheel_works_in_a_fresh_environment(tmp_path):
    """It is built, and installed into a new environment that borrows onnxruntime from this one."""
    built = tmp_path / "wheel"
    pip = [sys.executable, "-m", "pip", "--quiet"]
    # A copy, for a wheel is built beside its source.
    source = shutil.copytree(ROOT / "onnxruntime-ep" / "python", tmp_path / "source")
    subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", built, source], check=True)
    (wheel,) = built.glob("onnxruntime_ep_rukh-*.whl")
    assert "py3-none-" in wheel.name
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    subprocess.run([python, "-m", "pip", "--quiet", "install", "--no-deps", wheel], check=True)
    # Not looked for by name in sys.path: the repository has a folder onnxruntime too.
    borrowed = pathlib.Path(onnxruntime.__file__).parents[1]
    for kind in ("cpu", "gpu") if GPU else ("cpu",):
        ran = subprocess.run(
            [python, "-c", PROGRAM, ROOT / "examples" / "digits" / "digits.onnx", kind],
            env=os.environ | {"PYTHONPATH": str(borrowed)},
            capture_output=True,
            check=False,
            text=True,
            timeout=120,
        )
        assert ran.stdout.strip() == "ran", ran.stderr


def test_the_library_can_be_unregistered_and_registered_again():
    program = """
import sys, onnxruntime
for _ in range(3):
    onnxruntime.register_execution_provider_library("RukhCPUExecutionProvider", sys.argv[1])
    (device,) = [d for d in onnxruntime.get_ep_devices() if d.ep_name == "RukhCPUExecutionProvider"]
    options = onnxruntime.SessionOptions()
    options.add_provider_for_devices([device], {})
    session = onnxruntime.InferenceSession(sys.argv[2], options)
    del session, options, device
    onnxruntime.unregister_execution_provider_library("RukhCPUExecutionProvider")
print("ran")
"""
    model = str(ROOT / "examples" / "digits" / "digits.onnx")
    ran = subprocess.run(
        [sys.executable, "-c", program, LIBRARY, model],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert ran.stdout.strip() == "ran", ran.stderr


NAMES = """
import json, sys, onnxruntime
library, model, *names = sys.argv[1:]
found = {}
for name in names:
    known = {device.ep_name for device in onnxruntime.get_ep_devices()}
    onnxruntime.register_execution_provider_library(name, library)
    new = [device for device in onnxruntime.get_ep_devices() if device.ep_name not in known]
    found[name] = [[device.ep_name, device.ep_metadata["rukh_device"]] for device in new]
    if new:
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
        options.add_provider_for_devices(new, {})
        onnxruntime.InferenceSession(model, options)
print(json.dumps(found))
"""


def names(*registered, **variables):
    """For each name of a registration, the provider's name and what its device runs on."""
    model = str(ROOT / "examples" / "digits" / "digits.onnx")
    command = [sys.executable, "-c", NAMES, LIBRARY, model, *registered]
    ran = subprocess.run(
        command, env=os.environ | variables, capture_output=True, check=False, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1]), ran.stderr


def test_the_name_of_the_registration_chooses():
    found, said = names("ROCMExecutionProvider.virtual", "RukhCPUExecutionProvider", "mine.virtual")
    device = "0" if GPU else "cpu"
    assert found == {
        "ROCMExecutionProvider.virtual": [["ROCMExecutionProvider", device]],
        "RukhCPUExecutionProvider": [["RukhCPUExecutionProvider", "cpu"]],
        "mine.virtual": [["AMDGPUExecutionProvider", device]],
    }
    # Where there is no GPU, the log says that the CPU computes.
    assert ("the CPU computes in its place" in said) is not GPU


def test_a_variable_asks_for_a_virtual_device():
    found, _ = names("AMDGPUExecutionProvider", RUKH_VIRTUAL_DEVICE="1")
    assert found == {"AMDGPUExecutionProvider": [["AMDGPUExecutionProvider", "0" if GPU else "cpu"]]}
