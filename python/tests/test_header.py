"""The generated declarations of the binding against the C header, and what loading makes of them."""

import pathlib
import re
import subprocess
import sys
import types

import pytest
from rukh import UnsupportedError, _constants, _errors, _functions, _library, _types

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = (ROOT / "include" / "rukh" / "rukh.h").read_text(encoding="utf-8")
HEADER = re.sub(r"^(RUKH_DEPRECATED\(.*\)\n)?(RUKH_MUST_CHECK )?RUKH_API\n", "", HEADER, flags=re.MULTILINE)
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
# The types of the header that are numbers; every other one without a `*` is an enumeration or a callback.
NUMBERS = {"size_t": "z", "int32_t": "i", "uint32_t": "w", "int64_t": "l", "uint64_t": "u"}
ENUMS = set(re.findall(r"typedef int32_t (rukh_\w+);", CODE))
CALLBACKS = set(re.findall(r"\(\*(rukh_\w+)\)\(", CODE))


def letter(parameter):
    if re.fullmatch(r"const char \*\w*", parameter):
        return "s"
    if "*" in parameter:
        return "p"
    kind = parameter.split()[0]
    return "i" if kind in ENUMS else "p" if kind in CALLBACKS else NUMBERS[kind]


def prototypes():
    """(result, name, parameters) of each function."""
    pattern = r"^((?:const )?(?:struct )?\w+ \*?)rukh_(\w+)\(([^)]*)\)"
    for result, name, parameters in re.findall(pattern, CODE, re.MULTILINE):
        given = [" ".join(parameter.split()) for parameter in parameters.split(",")]
        yield result, name, [] if given == ["void"] else given


def test_functions_are_those_of_the_header():
    assert len(ENUMS) > 10 and len(CALLBACKS) > 8
    failing, others = {}, {}
    for result, name, parameters in prototypes():
        letters = "".join(map(letter, parameters))
        if result == "rukh_status " and parameters[-1] == "struct rukh_error **error":
            failing[name] = letters[:-1]
        else:
            others[name] = ("" if result == "void " else letter(result), letters)
    assert len(failing) > 190 and len(others) > 15
    assert failing == _functions.FUNCTIONS
    assert others == _functions.OTHERS


def test_kinds_of_handles_are_those_of_the_header():
    destroyed = re.findall(r"^void rukh_(\w+)_destroy\(struct rukh_(\w+) \*", CODE, re.MULTILINE)
    assert all(kind == of for kind, of in destroyed)
    assert sorted(kind for kind, _ in destroyed) == sorted(_functions.HANDLE_KINDS)


def test_versions_are_those_of_the_header():
    assert f"#define RUKH_ABI_VERSION {_functions.ABI_VERSION}\n" in CODE
    documented = re.findall(r"/\*\*((?:(?!\*/).)*)\*/\s*[\w ]+\*?rukh_(\w+)\(", HEADER, re.DOTALL)
    since = {name: re.findall(r"Since: (\d+\.\d+\.\d+)\.", text) for text, name in documented}
    assert {name: found[0] for name, found in since.items() if found} == _functions.SINCE


def test_constants_are_those_of_the_header():
    wanted = {name: int(number) for name, number in re.findall(r"#define RUKH_([A-Z]\w+) (\d+)\n", CODE)}
    for name in [name for name in wanted if name.startswith(("ABI_", "VERSION"))]:
        del wanted[name]
    assert {name: value for name, value in vars(_constants).items() if name.isupper()} == wanted
    errors = [value for name, value in wanted.items() if name.startswith("ERROR_")]
    assert sorted(errors) == sorted(_errors._BY_CODE)
    elements = {
        name.removeprefix("ELEMENT_").lower(): value
        for name, value in wanted.items()
        if name.startswith("ELEMENT_") and name != "ELEMENT_UNDEFINED"
    }
    assert elements == _types.ELEMENT_NAMED


def test_files_are_what_the_description_says():
    command = [sys.executable, ROOT / "scripts" / "bindings" / "write.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_library_has_every_function_of_its_version():
    found = _library._others["abi_version"]()
    loaded = _library._library
    for name in [*_functions.FUNCTIONS, *_functions.OTHERS]:
        major, minor, patch = map(int, _functions.SINCE.get(name, "0.1.0").split("."))
        if found >= major * 1_000_000 + minor * 1000 + patch:
            assert hasattr(loaded, f"rukh_{name}"), name


def test_a_function_that_the_library_does_not_have_says_so_when_it_is_called():
    older = types.SimpleNamespace(_name="/usr/lib/librukh.so.0.1")
    newer = _library._declare(older, "session_device", "i", "ppp")
    with pytest.raises(UnsupportedError, match=r"rukh_session_device came with .* 0\.1\.1.*/usr/lib/librukh"):
        newer(None, None, None)
    with pytest.raises(UnsupportedError, match="rukh_value_kind belongs to every librukh of this series"):
        _library._declare(older, "value_kind", "i", "pp")()


@pytest.mark.parametrize("version", [1000, 1001, 1999])
def test_libraries_of_the_same_series_are_taken(version):
    _library._check_version(version)


@pytest.mark.parametrize("version, text", [(2000, "0.2.0"), (999, "0.0.999"), (1_001_000, "1.1.0")])
def test_libraries_of_another_series_are_refused(version, text):
    with pytest.raises(ImportError, match=f"interface {text}; .* series 0.1$"):
        _library._check_version(version)
