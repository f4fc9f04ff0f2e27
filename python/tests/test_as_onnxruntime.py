"""The package in onnxruntime's place: names, modules, exceptions."""

import enum
import importlib.util
import inspect
import subprocess
import sys

import numpy as np
import pytest
import rukh
from models import model
from rukh.capi import _pybind_state as C  # noqa: N812 - as programs call it

DATA = model([("Relu", ["x"], ["y"])], x=[2], y=[2])

# Public names of onnxruntime 1.32 that are not here.
LEFT_OUT = {
    "contextlib": "a module of Python's that onnxruntime imports",
    "import_capi_exception": "what went wrong when onnxruntime's library was loaded",
    "onnxruntime_validation": "checks of onnxruntime's own installation; rukh.capi has the module",
}
LEFT_OUT_OF_CAPI = {
    "get_all_operator_schema": "the operators of onnxruntime's build",
    "get_all_opkernel_def": "the kernels of onnxruntime's build",
    "get_registered_ep_kernel_defs": "the kernels of a library of providers",
    "get_compatibility_info_from_model": "models compiled for a provider",
    "get_compatibility_info_from_model_bytes": "models compiled for a provider",
    "get_hardware_device_ep_incompatibility_details": "libraries of providers",
    "get_model_compatibility_for_ep_devices": "models compiled for a provider",
    "get_session_initializer": "inner state of onnxruntime's sessions",
    "SessionObjectInitializer": "inner state of onnxruntime's sessions",
    "opkernel": "the kernels of onnxruntime's build",
    "schemadef": "the operators of onnxruntime's build",
}


def public(thing):
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_public_name_is_here():
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    assert public(ort) - public(rukh) - set(LEFT_OUT) == set()
    native = importlib.import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    # Quantizing weights is not inference.
    tools = {name for name in dir(native) if name.startswith(("quantize_", "pack_"))}
    assert public(native) - public(C) - set(LEFT_OUT_OF_CAPI) - tools == set()
    inference = importlib.import_module("onnxruntime.capi.onnxruntime_inference_collection")
    for name in ("Session", "check_and_normalize_provider_args"):
        assert hasattr(inference, name) and hasattr(rukh.capi.onnxruntime_inference_collection, name)


def test_every_method_and_attribute_is_here():
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    missing = []
    for name in sorted(public(ort) & public(rukh)):
        theirs = getattr(ort, name)
        if not inspect.isclass(theirs) or issubclass(theirs, Exception):
            continue
        ours = getattr(rukh, name)
        # Attributes of ours may be there only in an object.
        there = public(ours) | set(getattr(ours, "__annotations__", ()))
        if issubclass(ours, enum.Enum):
            there |= {"name", "value", *ours.__members__}
        if name in ("OrtMemoryInfo", "OrtArenaCfg", "OrtExternalInitializerInfo"):
            arguments = {
                "OrtMemoryInfo": ("Cpu", ort.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, ort.OrtMemType.DEFAULT),
                "OrtArenaCfg": ({},),
                "OrtExternalInitializerInfo": ("file", 0, 4),
            }[name]
            there |= public(ours(*arguments))
        missing += [f"{name}.{member}" for member in public(theirs) - there]
    # Objects that nothing here makes: data of compiled models, and packages of models.
    allowed = {member for member in missing if member.startswith(("OrtEpContextData", "ModelPackage"))}
    assert sorted(set(missing) - allowed) == []


def test_signatures_take_what_onnxruntime_takes():
    ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    for name in ("InferenceSession", "IOBinding", "OrtValue", "SparseTensor", "ModelCompiler", "OrtDevice"):
        for member, theirs in inspect.getmembers(getattr(ort, name), callable):
            if member.startswith("_") or not hasattr(theirs, "__wrapped__") and not inspect.isroutine(theirs):
                continue
            wanted = [
                p for p in inspect.signature(theirs).parameters.values() if p.name not in ("self", "cls")
            ]
            ours = inspect.signature(getattr(getattr(rukh, name), member)).parameters.values()
            given = [p for p in ours if p.name not in ("self", "cls")]
            assert len(given) >= len(wanted), f"{name}.{member}"
            for theirs_one, ours_one in zip(wanted, given):
                if theirs_one.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
                    assert theirs_one.name == ours_one.name, f"{name}.{member}"


def run_apart(code):
    """The output of code in a process of its own, with rukh as onnxruntime."""
    start = "import sys, rukh; sys.modules['onnxruntime'] = rukh\n"
    done = subprocess.run([sys.executable, "-c", start + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_modules_are_found_under_the_other_name_and_are_the_same():
    out = run_apart(
        """
import onnxruntime
import onnxruntime as ort
from onnxruntime import InferenceSession, SessionOptions
from onnxruntime.capi import _pybind_state as C
import onnxruntime.capi._pybind_state
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument, Fail, OrtValueVector
from onnxruntime.capi.onnxruntime_inference_collection import OrtValue
import onnxruntime.capi.onnxruntime_validation
import importlib, importlib.util, rukh.capi
assert onnxruntime is rukh and InferenceSession is rukh.InferenceSession and OrtValue is rukh.OrtValue
assert sys.modules["onnxruntime.capi"] is rukh.capi is importlib.import_module("onnxruntime.capi")
assert sys.modules["onnxruntime.capi._pybind_state"] is rukh.capi._pybind_state
assert C.InvalidArgument is InvalidArgument and issubclass(rukh.InvalidInputError, InvalidArgument)
assert not any(name.startswith("onnxruntime._") for name in sys.modules)
assert importlib.util.find_spec("onnxruntime") and rukh.capi.__spec__.name == "rukh.capi"
assert importlib.util.find_spec("onnxruntime.training") is None
try:
    import onnxruntime.training
except ModuleNotFoundError as error:
    print(error)
"""
    )
    assert "onnxruntime.training" in out


def test_tools_come_from_an_installed_onnxruntime():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    run_apart(
        """
from onnxruntime.quantization import QuantType, quantize_dynamic
import onnxruntime.transformers.float16
from onnxruntime import datasets
import onnxruntime.quantization.quant_utils as utils
assert sys.modules["onnxruntime"] is rukh
assert utils.__name__ == "onnxruntime.quantization.quant_utils"
session = rukh.InferenceSession(datasets.get_example("sigmoid.onnx"))
assert session.get_inputs()[0].shape == [3, 4, 5]
"""
    )


def test_the_real_package_stays_itself():
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    code = "import rukh, onnxruntime, onnxruntime.capi; print(onnxruntime.capi is rukh.capi)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_versions():
    assert tuple(map(int, rukh.__version__.split("."))) >= (1, 23, 0)
    assert rukh.get_version_string() == rukh.__version__ == rukh.ORT_VERSION
    assert rukh.RUKH_VERSION in rukh.get_build_info() and "Build Info" in rukh.get_build_info()
    assert rukh.package_name == "onnxruntime" and rukh.cuda_version == ""


def test_errors_are_those_of_onnxruntime_too(tmp_path):
    session = rukh.InferenceSession(DATA)
    x = np.zeros(2, np.float32)
    with pytest.raises(C.InvalidArgument, match="INVALID_ARGUMENT : Unexpected input data type"):
        session.run(None, {"x": x.astype(float)})
    with pytest.raises(C.InvalidArgument, match="Invalid output name:q"):
        session.run(["q"], {"x": x})
    with pytest.raises(ValueError, match="Required inputs"):
        session.run(None, {})
    with pytest.raises(C.NoSuchFile, match="NO_SUCHFILE .* File doesn't exist"):
        rukh.InferenceSession(str(tmp_path / "nowhere.onnx"))
    with pytest.raises(C.InvalidProtobuf):
        rukh.InferenceSession(b"this is no model")
    with pytest.raises(C.InvalidGraph):
        rukh.InferenceSession(model([("NoSuchOperator", ["x"], ["y"])], x=[2], y=[2]))
    options = rukh.RunOptions()
    options.terminate = True
    with pytest.raises(C.Fail, match="Exiting due to terminate flag"):
        session.run(None, {"x": x}, options)
    # One that is raised for a name is not one for a file.
    assert not issubclass(rukh.UnknownNameError, C.NoSuchFile)
    assert not issubclass(rukh.NoModelFileError, C.InvalidArgument)


def test_inner_sessions_and_vectors():
    outer = rukh.InferenceSession(DATA)
    value = rukh.OrtValue.ortvalue_from_numpy(np.array([-1, 2], np.float32))
    vector = outer._sess.run_with_ort_values({"x": value._get_c_value()}, ["y"], rukh.RunOptions())
    assert isinstance(vector, C.OrtValueVector) and vector[0].numpy().tolist() == [0, 2]
    inner = C.InferenceSession(C.get_default_session_options(), DATA, False, False)
    with pytest.raises(RuntimeError, match="not initialized"):
        inner.run(["y"], {"x": value}, None)
    inner.initialize_session(["CPUExecutionProvider"], [{}], set())
    assert inner.run(["y"], {"x": value}, None)[0].tolist() == [0, 2]
    assert [argument.name for argument in inner.inputs_meta] == ["x"]
    binding = rukh.SessionIOBinding(inner)
    binding.bind_input("x", np.array([3, -3], np.float32))
    binding.bind_output("y", C.OrtDevice(C.OrtDevice.cpu(), C.OrtDevice.default_memory(), 0))
    inner.run_with_iobinding(binding)
    assert binding.get_outputs()[0].numpy().tolist() == [3, 0]
    fetches = C.OrtValueVector()
    outer.run_with_ortvaluevector(None, ["x"], vector, ["y"], fetches, [])
    assert fetches[0].numpy().tolist() == [0, 2]


def test_what_has_no_effect_is_taken_and_what_is_missing_is_told(tmp_path):
    rukh.enable_telemetry_events()
    rukh.disable_telemetry_events()
    rukh.preload_dlls()
    rukh.set_default_logger_verbosity(1)
    assert rukh.has_collective_ops() is False
    with pytest.warns(UserWarning, match="set_seed"):
        rukh.set_seed(1)
    options = rukh.SessionOptions()
    for name in (
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_mem_reuse",
        "use_deterministic_compute",
    ):
        setattr(options, name, False)
    options.execution_order = rukh.ExecutionOrder.PRIORITY_BASED
    rukh.InferenceSession(DATA, options)
    for call, text in [
        (lambda: rukh.register_execution_provider_library("p", "p.so"), "p.so"),
        (rukh.ModelPackage, "packages of models"),
        (lambda: rukh.ModelPackageContext("folder"), "folder"),
    ]:
        with pytest.raises(C.NotImplemented, match=text):
            call()
    options.add_external_initializers([], [])


def test_debug_information(capsys):
    rukh.print_debug_info()
    printed = capsys.readouterr().out
    assert rukh.RUKH_VERSION in printed and "CPUExecutionProvider" in printed


PROGRAM = """
import sys
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
import beside

print(__name__, sys.argv[1:], onnxruntime.InferenceSession.__module__.partition(".")[0], beside.WORD, InvalidArgument.__name__)
"""


@pytest.mark.parametrize("way", ["script", "module"])
def test_a_program_runs_as_it_is(tmp_path, way):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text("WORD = 'there'")
    program = [str(tmp_path / "program.py")] if way == "script" else ["-m", "program"]
    command = [sys.executable, "-m", "rukh.as_onnxruntime", *program, "--one", "two"]
    # A module is looked for in the folder of the call, a script's modules in its own.
    folder = tmp_path if way == "module" else tmp_path.parent
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert done.stdout.split("\n")[0] == "__main__ ['--one', 'two'] rukh there InvalidArgument"


@pytest.mark.parametrize("arguments", [[], ["-m"], ["--help"], ["no such file.py"]])
def test_a_program_that_is_not_there(arguments):
    command = [sys.executable, "-m", "rukh.as_onnxruntime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "script" in done.stderr.lower()
