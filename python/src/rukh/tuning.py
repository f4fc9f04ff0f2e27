"""Results of tuning: the library's text, and the lists that ONNX Runtime has for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TITLE = "rukh tuning results 1"


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
