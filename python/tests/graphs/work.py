"""Many graphs in several processes."""

from __future__ import annotations

import collections
import multiprocessing
import multiprocessing.connection
import traceback

import numpy as np
import onnx
from properties.draw import Random

from .check import failure, judges, unstable
from .generate import random_graph
from .keep import store
from .networks import network
from .reduce import reduce


def share(work: list, arguments):
    """Runs the work in processes; one that dies takes only its graph with it."""
    context = multiprocessing.get_context("spawn")
    jobs = max(1, min(arguments.jobs, len(work)))
    parts = [collections.deque(work[i::jobs]) for i in range(jobs)]
    running: dict = {}

    def start(i: int) -> None:
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(list(parts[i]), arguments, there), daemon=True)
        process.start()
        there.close()
        running[here] = (i, process)

    for i in range(jobs):
        start(i)
    making = dict.fromkeys(range(jobs), True)
    while running:
        for here in multiprocessing.connection.wait(list(running)):
            i, process = running[here]
            try:
                said = here.recv()
            except EOFError:
                process.join()
                del running[here]
                if parts[i]:
                    seed, index = parts[i].popleft()
                    where = f"seed {seed}, index {index}: the process died ({process.exitcode})"
                    if making[i]:
                        yield "crashed", f"{where} while ONNX Runtime computed a node", {}
                    else:
                        yield "failed", where, {}
                    making[i] = True
                    if parts[i]:
                        start(i)
                continue
            if said == "made":
                making[i] = False
                continue
            making[i] = True
            parts[i].popleft()
            yield said


def _work(part: list, arguments, there) -> None:
    for seed, index in part:
        there.send(examine(seed, index, arguments, lambda: there.send("made")))


def examine(seed: int, index: int, arguments, made) -> tuple[str, str, dict]:
    """One graph: "same", "failed" or "unstable", with a report. `made`: called before it is checked."""
    kind = arguments.kind or ("networks" if index % 4 == 3 else "nodes")
    try:
        test = (network if kind == "networks" else random_graph)(seed, index)
    except Exception as error:
        return "failed", f"seed {seed}, index {index}: the generator: {error}\n{traceback.format_exc()}", {}
    made()
    counted = collections.Counter(f"operator {node.op_type}" for node in _nodes(test.model))
    counted.update({f"rejected {name}": n for name, n in test.rejected.items()})
    for level in arguments.levels.split(","):
        wrong = failure(test, level, arguments.provider, Random(seed, index))
        if wrong is None:
            continue
        if unstable(test, index):
            return "unstable", wrong, counted
        smallest = reduce(test, lambda t: failure(t, level, arguments.provider) is not None)
        said = judges(smallest)
        if unstable(smallest, index):
            return "unstable", wrong, counted
        text = [f"seed {seed}, index {index}, {kind}, level {level}, {arguments.provider}: {wrong}"]
        text.append(f"reduced: {failure(smallest, level, arguments.provider)}")
        text += [f"    {who}: {what or 'as expected'}" for who, what in said.items()]
        text.append(onnx.printer.to_text(smallest.model))
        for name, x in smallest.feeds[0].items():
            if isinstance(x, np.ndarray):
                text.append(f"{name} = {x.dtype}{list(x.shape)} {np.array2string(x, threshold=30)}")
        if arguments.keep:
            text.append(f"kept as {store(smallest, arguments.keep, f'seed{seed}_{index}')}")
        return "failed", "\n".join(text) + "\n", counted
    return "same", "", counted


def _nodes(model: onnx.ModelProto):
    def inside(nodes):
        for node in nodes:
            yield node
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    yield from inside(attribute.g.node)

    yield from inside(model.graph.node)
    for function in model.functions:
        yield from inside(function.node)
