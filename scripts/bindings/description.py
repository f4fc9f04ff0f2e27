"""The description of the C API (abi/rukh-api.json) as the writers of bindings read it."""

import json
import pathlib
import typing

ROOT = pathlib.Path(__file__).resolve().parents[2]

# The C types of numbers, and how `Parameter.kind` names them.
NUMBERS = {
    "float": "float",
    "int32_t": "int32",
    "uint32_t": "uint32",
    "int64_t": "int64",
    "uint64_t": "uint64",
    "size_t": "size",
}


class Parameter(typing.NamedTuple):
    """A parameter. `kind` tells how a call passes it: `text`, `address`, `callback`, `enum` or a number's name."""

    name: str
    type: str
    base: str
    pointers: int
    direction: str
    kind: str
    nullable: bool
    ownership: str | None
    length: str | None


class Function(typing.NamedTuple):
    """A function or, without the prefix that all names have, a type of callbacks."""

    name: str
    doc: str
    since: str
    returns: str | None
    parameters: list[Parameter]

    @property
    def fails(self) -> bool:
        """Whether it returns a status and tells why by its last parameter, `rukh_error **error`."""
        last = self.parameters[-1].type if self.parameters else ""
        return self.returns == "rukh_status" and last == "rukh_error **"


class Value(typing.NamedTuple):
    """A constant of an enumeration."""

    name: str
    value: int
    doc: str


class Enum(typing.NamedTuple):
    """An enumeration, a 32-bit signed integer in C; names are without the prefix that all have."""

    name: str
    doc: str
    values: list[Value]


class Description:
    """Everything that the C API declares, in the header's order."""

    def __init__(self) -> None:
        raw = json.loads((ROOT / "abi" / "rukh-api.json").read_text(encoding="utf-8"))
        self._enums = {entry["name"] for entry in raw["enums"]}
        self._callbacks = {entry["name"] for entry in raw["callbacks"]}
        self.abi_version: int = raw["abi_version"]
        self.enums = [
            Enum(
                entry["name"].removeprefix("rukh_"),
                entry["doc"],
                [Value(v["name"].removeprefix("RUKH_"), v["value"], v["doc"]) for v in entry["values"]],
            )
            for entry in raw["enums"]
        ]
        self.handles = [(entry["name"].removeprefix("rukh_"), entry["doc"]) for entry in raw["handles"]]
        self.callbacks = [self._function(entry) for entry in raw["callbacks"]]
        self.functions = [self._function(entry) for entry in raw["functions"]]

    def destroyed(self) -> list[str]:
        """The kinds of handles that a caller destroys, each by a function `KIND_destroy`."""
        names = {function.name for function in self.functions}
        return [kind for kind, _ in self.handles if f"{kind}_destroy" in names]

    def newer(self) -> dict[str, str]:
        """The functions that are newer than the first version of the series, and the version of each."""
        major, rest = divmod(self.abi_version, 1_000_000)
        first = f"{major}.{rest // 1000}.0"
        return {function.name: function.since for function in self.functions if function.since != first}

    def _function(self, entry: dict[str, typing.Any]) -> Function:
        return Function(
            entry["name"].removeprefix("rukh_"),
            entry["doc"],
            entry["since"],
            entry["returns"],
            [self._parameter(parameter) for parameter in entry["parameters"]],
        )

    def _parameter(self, entry: dict[str, typing.Any]) -> Parameter:
        return Parameter(
            entry["name"],
            entry["type"],
            entry["base"],
            entry["pointers"],
            entry["direction"],
            self.kind(entry["type"]),
            entry.get("nullable", False),
            entry.get("ownership"),
            entry.get("length"),
        )

    def kind(self, ctype: str) -> str:
        """How a call passes what has this C type."""
        if "*" in ctype:
            return "text" if ctype == "const char *" else "address"
        if ctype in self._callbacks:
            return "callback"
        if ctype in self._enums:
            return "enum"
        if ctype in NUMBERS:
            return NUMBERS[ctype]
        raise ValueError(f"the writers of bindings know no type {ctype}; add it to {__file__}")
