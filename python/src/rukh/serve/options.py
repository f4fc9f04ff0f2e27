"""What is said of a model that is to be served: where it lies, how it runs, on what, and how often."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from .errors import OptionError

# How replicas come and go with the number of requests in flight, unless a model says otherwise.
AUTOSCALING = {"min_replicas": 1, "max_replicas": 4, "upscale_delay_s": 5.0, "downscale_delay_s": 300.0}


@dataclass(frozen=True, kw_only=True)
class Served:
    """What all kinds of models have.

    `path`: as the machines of the cluster find it. `num_cpus` and `num_gpus`: what Ray reserves for a replica. With
    a part of a GPU the model runs on the one that Ray chose, without any it runs on the CPU with `num_cpus` threads.
    `provider_options`, `session_options`: those of docs/options.md. `replicas`: so many, always; without it, as
    `autoscaling` says (Ray's autoscaling_config, over AUTOSCALING). `max_ongoing_requests`: of a replica;
    `max_queued_requests`: those beyond are refused, -1 for no limit. `health_check_period` and
    `health_check_timeout` are seconds, and so is `shutdown_timeout`, for requests in flight when a replica is to go.
    `actor_options`: further ones of Ray's ray_actor_options, such as "resources".
    """

    path: str
    num_cpus: float = 1
    num_gpus: float = 0
    provider_options: Mapping[str, str] = field(default_factory=dict)
    session_options: Mapping[str, str] = field(default_factory=dict)
    replicas: int | None = None
    autoscaling: Mapping[str, Any] = field(default_factory=dict)
    max_ongoing_requests: int | None = None
    max_queued_requests: int = -1
    health_check_period: float = 10.0
    health_check_timeout: float = 30.0
    shutdown_timeout: float = 20.0
    actor_options: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.path, str) or not self.path:
            self._refuse("path", "the path of a model, as a text that is not empty")
        self._need_number("num_cpus", 0)
        self._need_number(
            "num_gpus", 0, 1, why="a replica runs its model on one GPU; more GPUs take more replicas"
        )
        if self.replicas is not None:
            self._need_whole("replicas", 1)
            if self.autoscaling:
                raise OptionError(
                    f"replicas is {self.replicas} and autoscaling is {dict(self.autoscaling)}: give one of them"
                )
        if self.max_ongoing_requests is not None:
            self._need_whole("max_ongoing_requests", 1)
        self._need_whole("max_queued_requests", -1)
        for name in ("health_check_period", "health_check_timeout", "shutdown_timeout"):
            self._need_number(name, 0.001)
        for name in ("num_cpus", "num_gpus"):
            if name in self.actor_options:
                raise OptionError(f'actor_options has "{name}": give {name} as an option of the model')

    @property
    def provider(self) -> str:
        """The library's name of the provider: a replica with a GPU has one, and nothing is run elsewhere unsaid."""
        return "hip" if self.num_gpus > 0 else "cpu"

    @property
    def threads(self) -> int:
        return max(1, math.floor(self.num_cpus))

    def ongoing(self) -> int:
        """Requests that a replica has at once, at most."""
        raise NotImplementedError

    def busy(self) -> float:
        """Requests in flight at a replica that mean that it has enough to do."""
        raise NotImplementedError

    def _need_whole(self, name: str, least: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self._refuse(name, f"whole numbers from {least} on")

    def _need_number(self, name: str, least: float, most: float | None = None, why: str = "") -> None:
        value = getattr(self, name)
        good = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        if not good or value < least or (most is not None and value > most):
            to = f"to {most}" if most is not None else "on"
            self._refuse(name, f"numbers from {least} {to}" + (f" ({why})" if why else ""))

    def _refuse(self, name: str, allowed: str) -> None:
        raise OptionError(f"{name} is {getattr(self, name)!r}; allowed are {allowed}")


@dataclass(frozen=True, kw_only=True)
class Model(Served):
    """A model with tensors: an .onnx file.

    `batching`: None joins requests where all inputs and outputs have the same named first dimension and its rows do
    not change each other's results; False never does; True does it for first dimensions without names too, and
    refuses a model that cannot. `max_batch_size`: rows of a run. `batch_wait`: seconds that the first request of a
    batch waits for others. `concurrent_runs`: of a replica. `sample`: inputs by name for the runs that look after
    the replica's health, in place of zeros.
    """

    batching: bool | None = None
    max_batch_size: int = 32
    batch_wait: float = 0.002
    concurrent_runs: int = 1
    sample: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "model"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batching not in (None, True, False):
            self._refuse("batching", "None, True and False")
        self._need_whole("max_batch_size", 1)
        self._need_number("batch_wait", 0)
        self._need_whole("concurrent_runs", 1)

    def ongoing(self) -> int:
        # One batch runs, the next one waits already.
        return self.max_ongoing_requests or 2 * self.max_batch_size * self.concurrent_runs

    def busy(self) -> float:
        return max(1.0, 0.5 * self.max_batch_size * self.concurrent_runs)


@dataclass(frozen=True, kw_only=True)
class TextModel(Served):
    """A language model: a folder as docs/generate.md describes it.

    `concurrent_requests`: texts that a replica continues at once. `options`: those of the generator (max_length,
    sample, temperature, …), which requests may change but for `max_length`.
    """

    concurrent_requests: int = 4
    options: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_whole("concurrent_requests", 1)
        if "sequences" in self.options:
            raise OptionError("options has sequences: a request is one sequence; send as many requests")

    def ongoing(self) -> int:
        return self.max_ongoing_requests or self.concurrent_requests

    def busy(self) -> float:
        return max(1.0, 0.75 * self.concurrent_requests)


def parse_model(name: str, given: Mapping[str, Any]) -> Model | TextModel:
    """A model of the entries of a configuration file; `kind` is "model" (the default) or "text"."""
    kinds: dict[str, type[Model | TextModel]] = {cls.kind: cls for cls in (Model, TextModel)}
    settings = dict(given)
    kind = settings.pop("kind", "model")
    if kind not in kinds:
        raise OptionError(f'kind of model "{name}" is {kind!r}; allowed are {", ".join(kinds)}')
    known = [option.name for option in fields(kinds[kind])]
    if unknown := [key for key in settings if key not in known]:
        raise OptionError(
            f'model "{name}" has the option {unknown[0]!r}; allowed are kind, {", ".join(known)}'
        )
    if "path" not in settings:
        raise OptionError(f'model "{name}" has no path')
    return kinds[kind](**settings)
