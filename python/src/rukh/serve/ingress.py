"""The door: the Open Inference Protocol, version 2, over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from .. import RUKH_VERSION
from .errors import (
    MethodError,
    RequestError,
    ServingError,
    TooLargeError,
    UnavailableError,
    UnknownModelError,
    status_of,
)
from .measures import IngressMeasures
from .protocol import InferRequest, TextRequest, read_request, read_text_request, write_reply
from .readiness import Readiness
from .routes import VERSION, Route, find_route
from .sending import Deadline, Piece, cause_of, send, stream
from .signature import Signature

logger = logging.getLogger("ray.serve")

# How many replicas had a request, the last of which answered.
ATTEMPTS = "Rukh-Attempts"

_EXTENSIONS = ["binary_tensor_data", "generate"]


class Ingress:
    """Checks requests, sends them to the models' replicas, and again when one of those dies.

    `models`: a deployment handle of each. `deadline`: seconds for a reply, those of all attempts. `settings`: what a
    change of which is to start replicas of the ingress anew.
    """

    def __init__(
        self, models: Mapping[str, Any], deadline: float, max_request_bytes: int, settings: Any = None
    ) -> None:
        self._models = dict(models)
        self._deadline = deadline
        self._max_bytes = max_request_bytes
        self._signatures: dict[str, Signature] = {}
        self._measures = IngressMeasures()
        self._readiness = Readiness(list(self._models))

    async def __call__(self, request: Request) -> Response:
        started = time.monotonic()
        model = ""
        try:
            path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
            route = find_route(request.method, path)
            if route.model is not None:
                self._handle(route.model)
                model = route.model
            response = await self._answer(route, request)
        except asyncio.CancelledError:
            # The client has gone.
            self._measures.replied(model, 499, time.monotonic() - started)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
            response = _refusal(error)
        self._measures.replied(model, response.status_code, time.monotonic() - started)
        return response

    async def _answer(self, route: Route, request: Request) -> Response:
        if route.model is None:
            if route.action == "health/ready":
                return _ready(await self._readiness.of_all(), list(self._models))
            if route.action == "health/live":
                return JSONResponse({"live": True})
            return JSONResponse({"name": "rukh", "version": RUKH_VERSION, "extensions": _EXTENSIONS})
        if route.action == "ready":
            return _ready(await self._readiness.of(route.model), [route.model])
        if route.action == "":
            return JSONResponse(_described(await self._signature(route.model)))
        body = await self._body(request)
        if route.action == "infer":
            length = request.headers.get("inference-header-content-length")
            return await self._infer(route.model, read_request(body, length))
        return await self._generate(route, read_text_request(body))

    async def _infer(self, model: str, request: InferRequest) -> Response:
        deadline = self._until(model, request.timeout)
        (await self._signature(model, deadline)).check(request.inputs, request.output_names())
        handle = self._handle(model)
        outputs = await send(deadline, lambda: handle.answer.remote(request.inputs, request.output_names()))
        body, headers = write_reply(model, request, outputs)
        return Response(body, headers={**headers, ATTEMPTS: str(deadline.attempts)})

    async def _generate(self, route: Route, request: TextRequest) -> Response:
        assert route.model is not None
        deadline = self._until(route.model, request.timeout)
        if not (await self._signature(route.model, deadline)).text:
            raise RequestError(f'model "{route.model}" has tensors: use infer, not {route.action}')
        handle = self._handle(route.model).options(stream=True)
        pieces = stream(deadline, lambda: handle.stream.remote(request))
        reply = {"model_name": route.model, "model_version": VERSION}
        if request.id is not None:
            reply["id"] = request.id
        if route.action == "generate":
            texts = [piece async for piece in pieces]
            stop = texts[-1][1] if texts else None
            text = "".join(text for text, _ in texts)
            return JSONResponse({**reply, "text_output": text, "parameters": {"finish_reason": stop}})
        # What is wrong with the request shows before the first piece, while there is a status to say so with.
        first = await anext(pieces, None)
        return StreamingResponse(_events(reply, first, pieces), media_type="text/event-stream")

    def _handle(self, model: str) -> Any:
        if model not in self._models:
            names = ", ".join(f'"{name}"' for name in self._models)
            raise UnknownModelError(f'there is no model "{model}"; there are {names}')
        return self._models[model]

    def _until(self, model: str, wanted: float | None = None) -> Deadline:
        """The deadline of a request; a client may want a shorter one."""
        seconds = self._deadline if wanted is None else min(wanted, self._deadline)
        return Deadline(model, seconds, lambda reason: self._measures.retried(model, reason))

    async def _signature(self, model: str, deadline: Deadline | None = None) -> Signature:
        """What a model takes and gives; asked for once."""
        if model not in self._signatures:
            handle = self._handle(model)
            self._signatures[model] = await send(deadline or self._until(model), handle.describe.remote)
        return self._signatures[model]

    async def _body(self, request: Request) -> bytes:
        if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
            raise RequestError(f"the request has the Content-Encoding {encoding!r}; allowed is none")
        said = request.headers.get("content-length", "0")
        size = int(said) if said.isdecimal() else 0
        parts = []
        read = 0
        if size <= self._max_bytes:
            async for part in request.stream():
                read += len(part)
                parts.append(part)
                if read > self._max_bytes:
                    break
        if max(size, read) > self._max_bytes:
            raise TooLargeError(
                f"the request has {max(size, read)} bytes or more; allowed are {self._max_bytes} (max_request_bytes)"
            )
        return b"".join(parts)


def _refusal(error: Exception) -> Response:
    """The reply that tells of an error."""
    error = cause_of(error) if isinstance(cause_of(error), Exception) else error  # type: ignore[assignment]
    status = 400 if isinstance(error, ClientDisconnect) else status_of(error)
    if status >= 500 and not isinstance(error, ServingError):
        logger.error("a request failed", exc_info=error)
    headers = {}
    if isinstance(error, UnavailableError):
        headers["Retry-After"] = "1"
    if isinstance(error, MethodError):
        headers["Allow"] = error.allowed
    return JSONResponse({"error": str(error)}, status, headers)


def _ready(ready: bool, models: list[str]) -> Response:
    if ready:
        return JSONResponse({"ready": True})
    names = ", ".join(f'"{model}"' for model in models)
    return JSONResponse({"ready": False, "error": f"not every model has a running replica, of {names}"}, 503)


def _described(signature: Signature) -> dict[str, Any]:
    inputs = [port.described() for port in signature.inputs]
    outputs = [port.described() for port in signature.outputs]
    if signature.text:
        inputs = [{"name": "text_input", "datatype": "BYTES", "shape": [1]}]
        outputs = [{"name": "text_output", "datatype": "BYTES", "shape": [1]}]
    return {
        "name": signature.model,
        "versions": [VERSION],
        "platform": "onnx_rukh",
        "inputs": inputs,
        "outputs": outputs,
    }


async def _events(
    reply: dict[str, Any], first: Piece | None, pieces: AsyncGenerator[Piece, None]
) -> AsyncIterator[bytes]:
    """Server-sent events, one a piece; an error that comes later is the last of them."""

    def event(piece: Piece) -> bytes:
        text, stop = piece
        document = {**reply, "text_output": text}
        if stop is not None:
            document["parameters"] = {"finish_reason": stop}
        return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"

    try:
        if first is not None:
            yield event(first)
        async for piece in pieces:
            yield event(piece)
    except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
        yield (
            b"data: "
            + json.dumps({**reply, "error": str(cause_of(error))}, ensure_ascii=False).encode()
            + b"\n\n"
        )
    finally:
        # A client that has gone needs no more.
        await pieces.aclose()
