"""Which models have a replica that runs, as Ray's controller tells, so that replicas with much to do need not answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from ray import serve

# An answer is good for so many seconds.
_FRESH = 1.0


class Readiness:
    """Of the models of the application that this process belongs to."""

    def __init__(self, models: Sequence[str]) -> None:
        self._models = models
        self._asked = -_FRESH
        self._ready: dict[str, bool] = {}

    async def of_all(self) -> bool:
        ready = await self._states()
        return all(ready.get(model, False) for model in self._models)

    async def of(self, model: str) -> bool:
        return (await self._states()).get(model, False)

    async def _states(self) -> dict[str, bool]:
        if time.monotonic() - self._asked >= _FRESH:
            application = serve.get_replica_context().app_name
            found = await asyncio.get_running_loop().run_in_executor(None, serve.status)
            self._asked = time.monotonic()
            self._ready = _running(found.applications.get(application))
        return self._ready


def _running(application: Any) -> dict[str, bool]:
    """Of each deployment whether it serves: by a replica, or by starting one when a request comes."""
    if application is None:
        return {}
    return {
        name: found.replica_states.get("RUNNING", 0) > 0
        or (found.status == "HEALTHY" and not any(found.replica_states.values()))
        for name, found in application.deployments.items()
    }
