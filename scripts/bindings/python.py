"""Writes python/src/rukh/_functions.py and _constants.py: a line for each function and constant of the C API."""

from description import Description, Function

FOLDER = "python/src/rukh"

_LETTERS = {
    "text": "s",
    "address": "p",
    "callback": "p",
    "enum": "i",
    "int32": "i",
    "uint32": "w",
    "int64": "l",
    "uint64": "u",
    "size": "z",
}

_WRITTEN = "Written by scripts/bindings/write.py from abi/rukh-api.json; not to be changed by hand."

_FUNCTIONS = f'''"""The functions of the C API. {_WRITTEN}

Parameters and results in a letter each: an address `p`, a NUL-terminated text `s`, a `size_t` `z`, an `int32_t` or an
enumeration `i`, a `uint32_t` `w`, an `int64_t` `l`, a `uint64_t` `u`. Names are without `rukh_`.
"""

from __future__ import annotations
'''

_CONSTANTS = f'''"""The enumerations of the C API. {_WRITTEN}

Names are without `RUKH_`.
"""

from __future__ import annotations
'''


def files(api: Description) -> dict[str, str]:
    """The text of each file, by its path in the repository."""
    return {f"{FOLDER}/_functions.py": _functions(api), f"{FOLDER}/_constants.py": _constants(api)}


def _functions(api: Description) -> str:
    failing = {f.name: f'"{_letters(f)[:-1]}"' for f in api.functions if f.fails}
    others = {f.name: f'("{_result(api, f)}", "{_letters(f)}")' for f in api.functions if not f.fails}
    since = {name: f'"{version}"' for name, version in api.newer().items()}
    kinds = "".join(f'    "{kind}",\n' for kind in api.destroyed())
    parts = [
        _FUNCTIONS,
        f"# The version of the interface that is described.\nABI_VERSION = {api.abi_version}\n",
        "# Functions that return a status. Their last parameter, `rukh_error **error`, is left out here.\n"
        + _table("FUNCTIONS", "dict[str, str]", failing),
        "# The other functions: the letter of the result, or none, and those of the parameters.\n"
        + _table("OTHERS", "dict[str, tuple[str, str]]", others),
        "# The version of functions that the first library of this series did not have.\n"
        + _table("SINCE", "dict[str, str]", since),
        "# The kinds of handles that a caller destroys, each by a function `rukh_KIND_destroy`.\n"
        + f"HANDLE_KINDS = (\n{kinds})\n",
    ]
    return "\n".join(parts)


def _constants(api: Description) -> str:
    parts = [_CONSTANTS]
    for enum in api.enums:
        values = "".join(f"{value.name} = {value.value}\n" for value in enum.values)
        parts.append(f"# rukh_{enum.name}\n{values}")
    return "\n".join(parts)


def _letters(function: Function) -> str:
    return "".join(_LETTERS[parameter.kind] for parameter in function.parameters)


def _result(api: Description, function: Function) -> str:
    return "" if function.returns is None else _LETTERS[api.kind(function.returns)]


def _table(name: str, kind: str, entries: dict[str, str]) -> str:
    lines = "".join(f'    "{key}": {value},\n' for key, value in entries.items())
    return f"{name}: {kind} = {{\n{lines}}}\n"
