#!/usr/bin/env python3
"""Memory and time of many sessions on one model, with and without shared weights.

    shared_weights.py --models DIR [--sessions N] [--provider cpu|hip] [NAME…]

Each way runs in a process of its own: it opens the sessions one after the other, each runs once, all stay open. Prints
Markdown: what the process holds in anonymous memory (and what the GPU's arenas hold) with one session and with all, what
opening the first and the second takes, and whether all sessions gave the same bytes.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

import numpy as np


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=pathlib.Path, required=True)
    parser.add_argument("--sessions", type=int, default=10)
    parser.add_argument("--provider", default="cpu")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    if arguments.child:
        print(
            json.dumps(
                measure(arguments.models, arguments.child == "shared", arguments.sessions, arguments.provider)
            )
        )
        return
    names = arguments.names or sorted(path.parent.name for path in arguments.models.glob("*/model.onnx"))
    print(
        f"| model | weights | one: host MB | {arguments.sessions}: host MB | one: GPU MB | {arguments.sessions}: GPU MB |"
        " first open, ms | second, ms | same bytes |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for name in names:
        for way in ("shared", "apart"):
            command = [sys.executable, __file__, "--models", str(arguments.models / name), "--child", way]
            command += ["--sessions", str(arguments.sessions), "--provider", arguments.provider]
            told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            row = json.loads(told.splitlines()[-1])
            cells = [
                f"{row[key]:.2f}" if key.endswith("open") else f"{row[key]:.0f}"
                for key in ("host_one", "host_all", "gpu_one", "gpu_all", "first_open", "second_open")
            ]
            print(f"| {name} | {way} | {' | '.join(cells)} | {row['same']} |", flush=True)


def measure(folder, shared, count, provider):
    """What one way takes, in MB and ms."""
    import rukh  # noqa: PLC0415 (the process that starts the others needs no library)

    with np.load(folder / "sample.npz") as stored:
        feed = {key[3:]: stored[key] for key in stored.files if key.startswith("in:")}
    options = rukh.SessionOptions()
    options.add_session_config_entry("share_weights", str(int(shared)))
    sessions, opens, outputs, host, gpu = [], [], [], [], []
    for _ in range(count):
        start = time.perf_counter()
        sessions.append(rukh.InferenceSession(folder / "model.onnx", options, providers=[provider]))
        opens.append(1e3 * (time.perf_counter() - start))
        outputs.append([np.asarray(output).tobytes() for output in sessions[-1].run(None, feed)])
        host.append(anonymous())
        gpu.append(rukh.memory_stats()["reserved_bytes.all.current"] / 1e6 if provider != "cpu" else 0)
    return {
        "host_one": host[0],
        "host_all": host[-1],
        "gpu_one": gpu[0],
        "gpu_all": gpu[-1],
        "first_open": opens[0],
        "second_open": opens[1],
        "same": all(output == outputs[0] for output in outputs),
    }


def anonymous():
    """Anonymous memory of this process, in MB."""
    for line in pathlib.Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no RssAnon")


if __name__ == "__main__":
    main()
