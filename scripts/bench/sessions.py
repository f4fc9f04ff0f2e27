#!/usr/bin/env python3
"""Throughput of two sessions that run at the same time, over that of one session with all threads.

    sessions.py --models DIR [--threads N] [--rounds N] [--turn MS] [NAME…]

Three ways take turns, in another order each round: one session with N threads; two sessions with N/2 threads each,
called from two threads; two sessions with N threads each, likewise, which must not hinder each other. Prints
Markdown: runs a second of the first way, and how many times that the others do.
"""

import argparse
import pathlib
import statistics
import threading
import time

import numpy as np
import rukh


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--turn", type=float, default=500, help="milliseconds of a turn (default 500)")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    names = arguments.names or sorted(path.parent.name for path in arguments.models.glob("*/model.onnx"))
    threads = arguments.threads
    print(f"| model | one session, {threads} threads: runs/s | two of {max(threads // 2, 1)} | two of {threads} |")
    print("|---|---|---|---|")
    for name in names:
        with np.load(arguments.models / name / "sample.npz") as stored:
            feed = {key[3:]: stored[key] for key in stored.files if key.startswith("in:")}
        model = arguments.models / name / "model.onnx"
        ways = [[opened(model, t) for _ in range(n)] for n, t in ((1, threads), (2, max(threads // 2, 1)), (2, threads))]
        rates = [[] for _ in ways]
        for i in range(arguments.rounds):
            for way in (0, 1, 2)[i % 3 :] + (0, 1, 2)[: i % 3]:
                rates[way].append(throughput(ways[way], feed, arguments.turn / 1e3))
        one = statistics.median(rates[0])
        # Of rates in the same round, so that what slows a round down slows all of it.
        halves, both = (statistics.median(b / a for a, b in zip(rates[0], way)) for way in rates[1:])
        print(f"| {name} | {one:.1f} | {halves:.2f} | {both:.2f} |", flush=True)


def opened(model, threads):
    options = rukh.SessionOptions()
    options.intra_op_num_threads = threads
    return rukh.InferenceSession(model, options, providers=["cpu"])


def throughput(sessions, feed, seconds):
    """Runs a second of all sessions together, each called from a thread of its own."""
    for session in sessions:
        session.run(None, feed)
    counts = [0] * len(sessions)
    barrier = threading.Barrier(len(sessions) + 1)

    def call(i):
        barrier.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            sessions[i].run(None, feed)
            counts[i] += 1

    callers = [threading.Thread(target=call, args=(i,)) for i in range(len(sessions))]
    for caller in callers:
        caller.start()
    barrier.wait()
    begin = time.perf_counter()
    for caller in callers:
        caller.join()
    return sum(counts) / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
