"""The threads of a replica that runs of a model take. What waits for them does not hold up the replica's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


class Workers:
    """`runs` threads for requests, and one for the replica's health, which does not wait for theirs."""

    def __init__(self, runs: int) -> None:
        self._runs = ThreadPoolExecutor(runs, "rukh-run")
        self._health = ThreadPoolExecutor(1, "rukh-health")

    async def run(self, function: Callable[..., Found], *arguments: object) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._runs, function, *arguments)

    async def check(self, function: Callable[..., Found], *arguments: object) -> Found:
        return await asyncio.get_running_loop().run_in_executor(self._health, function, *arguments)

    def close(self) -> None:
        """Waits for what runs, and starts nothing more."""
        self._runs.shutdown(wait=True, cancel_futures=True)
        self._health.shutdown(wait=True, cancel_futures=True)
