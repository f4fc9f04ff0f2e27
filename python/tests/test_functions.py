"""The package reaches every function of the C API, but for those that are named here with the reason."""

import ast
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCES = ROOT / "python" / "src" / "rukh"

# Why the package has no use for a function: patterns of names without "rukh_".
UNUSED = {
    "api": "the library is loaded, and its functions are looked up, by ctypes",
    "error_create|error_code|status_name": "errors are exceptions",
    "environment_options_(get|key)": "the settings are kept in Python",
    "environment_options_set_log": "deprecated, as the two that follow",
    "session_run_async|session_placement": "session_start and session_for_each_placement do it",
    "environment_set_log_level": "settings of the log make a new environment",
    "environment_options_set_parallel_for": "threads of Python compute one at a time",
    "session_options_clone": "options are made for each session",
    "session_options_set_(load|optimization|fallback|profiling|threads|dimension)": "they are set by key",
    "session_options_set_external_allocator": "addresses of functions are options of the provider",
    "session_options_provider_(count|name)": "the providers are kept in Python",
    "compile_options_(get|key)": "the options are kept in Python",
    "device_find_property": "all properties are read",
    "provider_(count|name)": "the names are those of ONNX Runtime's providers",
    "session_create_from_memory": "models in memory are not copied",
    "session_(input|output)_(index|type)": "names and texts of types tell it",
    "value_(create_tensor_copy|clone|reshape|element_count|data_mut|set_string)": "arrays of NumPy do it",
    "environment_(add_operator|load_operators)": "the options of a session take operators",
    "operator_(registry_.*|set_gpu_kernel|set_capturable|set_shape_input)": "operators in Python are functions of arrays",
    "node_info_(name|version|output_count|input_type|input_value|state|set_scratch|has_output)": "as above",
    "node_info_(set_output_type|set_output_shape_of|set_output_dim_of|has_attribute)": "as above",
    "kernel_context_(output|cancelled|thread_count|parallel_for|stream|scratch|set_error)": "as above",
}


def used() -> list[re.Pattern[str]]:
    """What functions may be called: texts and attributes in the source, with any word for what is filled in."""
    patterns = set()
    for path in SOURCES.rglob("*.py"):
        if path.name in ("_functions.py", "_constants.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                patterns.add(re.escape(node.value))
            elif isinstance(node, ast.Attribute):
                patterns.add(node.attr)
            elif isinstance(node, ast.JoinedStr) and "_" in ast.unparse(node):
                parts = (re.escape(p.value) if isinstance(p, ast.Constant) else r"\w+" for p in node.values)
                patterns.add("".join(parts))
    return [
        re.compile(pattern) for pattern in patterns if re.search(r"[a-z]{3}", pattern.replace(r"\w+", ""))
    ]


def test_every_function_is_reached_or_has_a_reason():
    described = json.loads((ROOT / "abi" / "rukh-api.json").read_text(encoding="utf-8"))["functions"]
    names = [function["name"].removeprefix("rukh_") for function in described]
    calls = used()
    unused = [re.compile(pattern) for pattern in UNUSED]
    for name in names:
        if name.endswith("_destroy"):
            # Of all kinds of handles, which are listed.
            continue
        reached = any(pattern.fullmatch(name) for pattern in calls)
        excused = any(pattern.fullmatch(name) for pattern in unused)
        assert reached or excused, f"rukh_{name} is not reached by the package; call it, or say why not"
    for pattern in unused:
        assert any(pattern.fullmatch(name) for name in names), f"{pattern.pattern}: there is no such function"
