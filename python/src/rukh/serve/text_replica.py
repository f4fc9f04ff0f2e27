"""A replica of a language model, which continues texts piece by piece."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ray import serve

from .._errors import DeviceError, PoisonedError
from ..generation import Generator, Stop
from .device import device_options
from .errors import RequestError
from .measures import ReplicaMeasures
from .options import TextModel
from .protocol import TextRequest
from .sending import Piece
from .signature import Signature
from .workers import Workers


class TextReplica:
    """Each request has a cache of its own beside the model's weights, which all share."""

    def __init__(self, name: str, model: TextModel) -> None:
        self._name = name
        self._model = model
        self._failed: Exception | None = None
        self._measures = ReplicaMeasures(name)
        self._making = threading.Lock()
        self._workers = Workers(model.ongoing())
        settings: dict[str, Any] = {"intra_op_threads": model.threads, **model.session_options}
        options = device_options(model)
        self._first = Generator(model.path, model.provider, options, settings, **model.options)
        self._check()

    async def stream(self, request: TextRequest) -> AsyncIterator[Piece]:
        """The pieces of the text that continues the request's. The same request gives the same pieces."""
        generator = await self._workers.run(self._begin, request)
        left = request.max_tokens
        while True:
            piece, stop = await self._workers.run(self._next, generator)
            if left is not None:
                left -= 1
                if left == 0 and stop is None:
                    stop = "length"
            if piece or stop:
                yield piece, stop
            if stop:
                return

    async def describe(self) -> Signature:
        return Signature(self._name, (), (), text=True)

    async def identify(self) -> dict[str, Any]:
        """Which process this is."""
        return {"pid": os.getpid(), "replica": serve.get_replica_context().replica_id.unique_id}

    async def check_health(self) -> None:
        """Generates a token; Ray replaces a replica whose check raises or takes too long."""
        if self._failed is not None:
            raise self._failed
        await self._workers.check(self._check)

    def __del__(self) -> None:
        if hasattr(self, "_workers"):
            self._workers.close()

    def _begin(self, request: TextRequest) -> Generator:
        options = {**self._model.options, **request.options}
        generator = self._another(options)
        if request.messages is not None:
            generator.chat(request.messages)
        else:
            assert request.text is not None
            if not request.text:
                raise RequestError('"text_input" is empty; allowed is a text of a character or more')
            generator.append(request.text)
        return generator

    def _another(self, options: Mapping[str, Any]) -> Generator:
        # One thread at a time may ask a generator for another.
        with self._making:
            return self._first.beside(**options)

    def _next(self, generator: Generator) -> Piece:
        started = time.monotonic()
        outcome = "ok"
        try:
            if generator.stop() == Stop.NO:
                generator.next()
                self._measures.generated()
            stop = generator.stop()
            return generator.text(), None if stop == Stop.NO else stop.name.lower()
        except Exception as error:
            outcome = type(error).__name__
            if isinstance(error, (DeviceError, PoisonedError)):
                self._failed = error
            raise
        finally:
            self._measures.ran(1, time.monotonic() - started, outcome)

    def _check(self) -> None:
        """Any tokenizer has a token 0."""
        generator = self._another(self._model.options)
        generator.append([0])
        generator.next()
