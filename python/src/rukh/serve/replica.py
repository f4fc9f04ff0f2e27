"""A replica of a model with tensors: opened once, run for many requests."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from ray import serve

from .._errors import DeviceError, PoisonedError, RukhError
from ..inference import InferenceSession
from ..options import SessionOptions
from .batches import Outcome, Report, Request, run_alone, run_batch
from .device import device_options
from .errors import OptionError, RequestError
from .measures import ReplicaMeasures
from .options import Model
from .samples import make_sample, rows_are_apart
from .signature import Signature
from .workers import Workers

logger = logging.getLogger("ray.serve")


class ModelReplica:
    """Runs requests, joined where the model allows. Its methods are called through a deployment handle."""

    def __init__(self, name: str, model: Model) -> None:
        self._name = name
        self._model = model
        self._failed: Exception | None = None
        self._measures = ReplicaMeasures(name)
        self._workers = Workers(model.concurrent_runs)
        self._session = _open(name, model)
        self._signature = Signature.of(name, self._session, model.batching)
        self._sample = self._proven_sample()
        if self._signature.batches and not rows_are_apart(self._signature, self._execute, self._sample):
            self._stop_batching("its rows change each other's results")
        self._join = serve.batch(
            max_batch_size=model.max_batch_size,
            batch_wait_timeout_s=model.batch_wait,
            max_concurrent_batches=model.concurrent_runs,
            batch_size_fn=lambda requests: sum(max(1, request.rows) for request in requests),
        )(self._run_batch)

    async def infer(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """The wanted outputs (all of them for None) by name."""
        outcome = await self.answer(inputs, outputs)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def answer(self, inputs: Mapping[str, Any], outputs: Sequence[str] | None = None) -> Outcome:
        """As `infer`, with what is wrong given and not raised: Ray logs what is raised, and a wrong request is the
        client's matter."""
        names = tuple(outputs or (port.name for port in self._signature.outputs))
        try:
            self._signature.check(inputs, names)
        except RequestError as error:
            return error
        request = Request(inputs, names)
        if self._signature.is_joinable(inputs) and 0 < request.rows <= self._model.max_batch_size:
            return await self._join(request)
        return await self._workers.run(self._run_one, request)

    async def describe(self) -> Signature:
        """What the model takes and gives."""
        return self._signature

    async def identify(self) -> dict[str, Any]:
        """Which process this is, where its model runs, and how many runs and requests there were."""
        return {
            "pid": os.getpid(),
            "replica": serve.get_replica_context().replica_id.unique_id,
            "providers": self._session.get_providers(),
            "provider_options": self._session.get_provider_options(),
            "batches": self._signature.batches,
            "runs": self._measures.runs,
            "requests": self._measures.requests,
        }

    async def check_health(self) -> None:
        """Runs the model; Ray replaces a replica whose check raises or takes too long."""
        if self._failed is not None:
            raise self._failed
        await self._workers.check(self._check)

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            self._workers.close()

    async def _run_batch(self, requests: list[Request]) -> list[Outcome]:
        outcomes, report = await self._workers.run(run_batch, self._execute, requests)
        self._note(report)
        return outcomes

    def _run_one(self, request: Request) -> Outcome:
        report = Report()
        outcome = run_alone(self._execute, request, report)
        self._note(report)
        return outcome

    def _execute(self, outputs: Sequence[str], inputs: Mapping[str, Any]) -> Sequence[Any]:
        started = time.monotonic()
        outcome = "ok"
        try:
            return self._session.run(list(outputs), dict(inputs))
        except Exception as error:
            outcome = type(error).__name__
            if isinstance(error, (DeviceError, PoisonedError)):
                # What a device lost it does not find again; a new replica may get another one.
                self._failed = error
            raise
        finally:
            rows = [np.shape(value)[0] for value in inputs.values() if np.ndim(value)]
            self._measures.ran(rows[0] if rows else 1, time.monotonic() - started, outcome)

    def _note(self, report: Report) -> None:
        for requests in report.runs:
            self._measures.joined(requests)
        if report.unjoinable:
            self._stop_batching(report.unjoinable)

    def _stop_batching(self, why: str) -> None:
        if self._model.batching:
            logger.warning('model "%s" is told to batch, and %s', self._name, why)
            return
        logger.warning('model "%s" runs each request by itself: %s', self._name, why)
        signature = self._signature
        self._signature = Signature(
            signature.model, signature.inputs, signature.outputs, signature.overridable, batches=False
        )

    def _check(self) -> None:
        names = [port.name for port in self._signature.outputs]
        self._session.run(names, dict(self._sample))

    def _proven_sample(self) -> dict[str, Any]:
        """Inputs that the model was seen to run."""
        try:
            sample = make_sample(self._signature, self._model.sample)
            self._session.run([port.name for port in self._signature.outputs], dict(sample))
        except (RukhError, RequestError) as error:
            if isinstance(error, (DeviceError, PoisonedError)):
                raise
            shapes = {port.name: list(port.shape) for port in self._signature.inputs}
            raise OptionError(
                f'model "{self._name}" ({self._model.path}) cannot run the inputs that look after its health: {error}. '
                f"Give sample, with values for the inputs {shapes} that it can run"
            ) from error
        return sample


def _open(name: str, model: Model) -> InferenceSession:
    options = SessionOptions()
    options.intra_op_num_threads = model.threads
    for key, value in model.session_options.items():
        options.add_session_config_entry(key, str(value))
    try:
        return InferenceSession(model.path, options, providers=[(model.provider, device_options(model))])
    except RukhError as error:
        error.args = (f'model "{name}" cannot be opened: {error}',)
        raise
