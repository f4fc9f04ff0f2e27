"""Tuning from recorded shapes, and results: the library's text, and the lists that ONNX Runtime has for them."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, c_char_p, c_size_t
from typing import Any

from ._library import call, environment, make

_TITLE = "rukh tuning results 1"


def tune(shapes: str, options: Mapping[str, Any]) -> tuple[int, int]:
    """Measures kernels for problems that were recorded (provider option "tunable_op_record_file"), on this machine and
    without their models. `shapes`: the text of problems. `options`: of the provider, with "tunable_op_file", which gets
    the results; tuning is enabled. How many problems have a result now, and how many lines have none."""
    given = {"tunable_op_enable": 1, "tunable_op_tuning_enable": 1, **options}
    texts = c_char_p * len(given)
    keys = texts(*(key.encode() for key in given))
    values = texts(*(str(value).encode() for value in given.values()))
    handle = make("session_options", "session_options_create")
    call("session_options_add_provider", handle, b"hip", keys, values, len(given))
    tuned, without = c_size_t(), c_size_t()
    call("environment_tune", environment(), handle, shapes.encode(), byref(tuned), byref(without))
    return tuned.value, without.value


def as_results(provider: str, text: str) -> dict[str, Any]:
    """`{"ep", "results": {operator: {problem: "candidate microseconds"}}, "validators": {name: value}}`."""
    results: dict[str, dict[str, str]] = {}
    validators: dict[str, str] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "validate":
            name, _, value = rest.partition(" ")
            validators[name] = value
        elif word == "result":
            operator, problem, choice = rest.split(" ", 2)
            results.setdefault(operator, {})[problem] = choice
    return {"ep": provider, "results": results, "validators": validators}


def as_text(entry: Mapping[str, Any]) -> str:
    """The text that says the same."""
    lines = [_TITLE]
    lines += [f"validate {name} {value}" for name, value in entry["validators"].items()]
    lines += [
        f"result {operator} {problem} {choice}"
        for operator, problems in entry["results"].items()
        for problem, choice in problems.items()
    ]
    return "\n".join(lines) + "\n"
