"""Several requests in one run, joined along their first dimensions; and apart again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._errors import DeviceError, PoisonedError
from .errors import ServingError

Outcome = dict[str, Any] | Exception
# Runs the model: names of outputs, inputs by name, and out come the outputs in their order.
Execute = Callable[[Sequence[str], Mapping[str, Any]], Sequence[Any]]


@dataclass
class Request:
    """Inputs by name, and the names of the wanted outputs."""

    inputs: Mapping[str, Any]
    outputs: tuple[str, ...]

    @property
    def rows(self) -> int:
        """The size of the first dimensions."""
        return int(np.shape(next(iter(self.inputs.values())))[0])

    def key(self) -> tuple[Any, ...]:
        """Requests of one key differ in their first dimensions alone, so they fit into one run."""
        items = sorted(self.inputs.items())
        return (
            self.outputs,
            *((name, array.dtype.str, array.dtype.name, array.shape[1:]) for name, array in items),
        )


@dataclass
class Report:
    """What a batch took."""

    runs: list[int] = field(default_factory=list)  # how many requests each run had
    unjoinable: str = ""  # why requests could not be told apart again, when that happened


def run_batch(execute: Execute, requests: Sequence[Request]) -> tuple[list[Outcome], Report]:
    """The outcome of each request: its outputs by name, or what was wrong with it.

    A fault of one request is no fault of the others: where a run of several fails, each runs by itself.
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for index, request in enumerate(requests):
        groups.setdefault(request.key(), []).append(index)
    outcomes: list[Outcome] = [ServingError("a request was not run")] * len(requests)
    report = Report()
    for indexes in groups.values():
        for index, outcome in zip(indexes, _run_group(execute, [requests[i] for i in indexes], report)):
            outcomes[index] = outcome
    return outcomes, report


def run_alone(execute: Execute, request: Request, report: Report) -> Outcome:
    """The outcome of one request in a run of its own."""
    report.runs.append(1)
    try:
        found = execute(request.outputs, request.inputs)
    except Exception as error:  # noqa: BLE001 - whoever sent the request is told
        return error
    return dict(zip(request.outputs, found))


def _run_group(execute: Execute, requests: Sequence[Request], report: Report) -> list[Outcome]:
    if len(requests) == 1:
        return [run_alone(execute, requests[0], report)]
    first = requests[0]
    report.runs.append(len(requests))
    try:
        joined = {
            name: np.concatenate([request.inputs[name] for request in requests]) for name in first.inputs
        }
        found = execute(first.outputs, joined)
    except (DeviceError, PoisonedError) as error:
        # No request's fault, and no run here ends better.
        return [error] * len(requests)
    except Exception:  # noqa: BLE001 - whose fault it is shows when each runs by itself
        return [run_alone(execute, request, report) for request in requests]
    rows = [request.rows for request in requests]
    for name, array in zip(first.outputs, found):
        shape = np.shape(array)
        if not shape or shape[0] != sum(rows):
            report.unjoinable = f'output "{name}" has the shape {list(shape)} for inputs of {sum(rows)} rows'
            return [run_alone(execute, request, report) for request in requests]
    bounds = np.cumsum(rows)[:-1]
    parts = [np.split(array, bounds) for array in found]
    return [dict(zip(first.outputs, mine)) for mine in zip(*parts)]
