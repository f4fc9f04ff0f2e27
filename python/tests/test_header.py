"""The declarations of the binding against the C header they stand for."""

import pathlib
import re

from rukh import _errors, _library, _types

HEADER = (pathlib.Path(__file__).resolve().parents[2] / "include" / "rukh" / "rukh.h").read_text()
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
LETTERS = {
    "size_t": "z",
    "int64_t": "l",
    "int32_t": "i",
    "uint64_t": "l",
    "rukh_memory_kind": "i",
    "rukh_element_type": "i",
    "rukh_model_text": "i",
    "rukh_deleter": "p",
    "rukh_run_callback": "p",
    "rukh_log_callback": "p",
    "rukh_release": "p",
    "rukh_node_callback": "p",
    "rukh_kernel_callback": "p",
    "rukh_arity": "i",
    "rukh_attribute_type": "i",
    "rukh_log_level": "i",
    "rukh_load_counter": "i",
}


def letter(parameter):
    if re.fullmatch(r"const char \*\w+", parameter):
        return "s"
    return "p" if "*" in parameter else LETTERS[parameter.split()[-2]]


def prototypes():
    found = {}
    for name, parameters in re.findall(r"^rukh_status rukh_(\w+)\(([^)]*)\);", CODE, re.MULTILINE):
        *rest, error = [" ".join(parameter.split()) for parameter in parameters.split(",")]
        if error == "struct rukh_error **error":
            found[name] = rest
    return found


def test_signatures_are_those_of_the_header():
    known = prototypes()
    assert len(known) > 80
    for name, letters in _library.SIGNATURES.items():
        assert letters == "".join(map(letter, known[name])), name


def test_kinds_of_handles_are_those_of_the_header():
    for kind in _library.HANDLE_KINDS:
        assert f"void rukh_{kind}_destroy(struct rukh_{kind} *" in CODE


def test_codes_are_those_of_the_header():
    errors = dict(re.findall(r"#define RUKH_ERROR_(\w+) (\d+)", CODE))
    assert sorted(map(int, errors.values())) == sorted(_errors._BY_CODE)
    elements = {
        name.lower(): int(number) for name, number in re.findall(r"#define RUKH_ELEMENT_(\w+) (\d+)", CODE)
    }
    del elements["undefined"]
    assert elements == _types.ELEMENT_NAMED
    assert f"#define RUKH_ABI_VERSION {_library._ABI_VERSION}\n" in CODE
