#!/usr/bin/env python3
"""Run every .onnx file below folders with rukh and with ONNX Runtime, and compare what they give.

    compare_folder.py [--seed N] [--jobs N] [--timeout S] [--json FILE] [--only TEXT] [--list VERDICT,…] FOLDER…

Each model runs in a worker process on inputs made from the seed and the model's name: sizes, masks, indices
and lengths get values that models take, and several kinds of them are tried until ONNX Runtime takes one.
Names, types, shapes and values of all outputs are compared. The verdicts:

  same           rukh gives what ONNX Runtime gives
  differs        it gives something else
  rukh fails     it reports an error, crashes or takes too long
  ORT fails      ONNX Runtime does not run the model, and rukh does
  both refuse    neither does
  no model       the file is a git-lfs pointer

Prints a table of counts for each folder and the models that are not the same; ends with 1 when there are any.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import select
import subprocess
import sys
import threading

VERDICTS = ("same", "differs", "rukh fails", "ORT fails", "both refuse", "no model")
WORKER = pathlib.Path(__file__).with_name("compare_worker.py")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds that a model may take in all")
    parser.add_argument("--json", type=pathlib.Path, help="where the results go as JSON")
    parser.add_argument("--only", default="", help="only models with this text in their path")
    parser.add_argument("--list", default="differs,rukh fails", help="the verdicts whose models are named")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    models = [
        (folder, path)
        for folder in arguments.folders
        for path in sorted(folder.rglob("*.onnx"))
        if arguments.only in str(path) and path.is_file()
    ]
    print(f"{len(models)} files, seed {arguments.seed}", flush=True)
    workers = threading.local()

    def judge(entry):
        folder, path = entry
        if not hasattr(workers, "own"):
            workers.own = Worker(arguments.seed, arguments.timeout)
        name = str(path.relative_to(folder))
        return {"folder": str(folder), "model": name, **workers.own.judge(path, name)}

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as executor:
        results = list(executor.map(judge, models))
    report(results, arguments.list.split(","))
    if arguments.json:
        arguments.json.write_text(json.dumps({"seed": arguments.seed, "results": results}, indent=1) + "\n")
    return any(result["verdict"] in ("differs", "rukh fails") for result in results)


def report(results, listed):
    print("| folder | " + " | ".join(VERDICTS) + " | same, of those that ONNX Runtime runs |")
    print("|---" * (len(VERDICTS) + 2) + "|")
    for folder in dict.fromkeys(result["folder"] for result in results):
        counts = collections.Counter(r["verdict"] for r in results if r["folder"] == folder)
        judged = sum(counts[verdict] for verdict in VERDICTS[:3])
        share = f"{counts['same']} of {judged} ({100 * counts['same'] / max(judged, 1):.1f} %)"
        print(f"| {folder} | " + " | ".join(str(counts[v]) for v in VERDICTS) + f" | {share} |")
    for verdict in listed:
        for result in results:
            if result["verdict"] == verdict:
                print(f"{verdict}: {result['folder']}/{result['model']}: {result['reason']}")


class Worker:
    """A process that compares models one after another, started anew when one ends or stops it."""

    def __init__(self, seed, timeout):
        self._seed, self._timeout, self._process = seed, timeout, None

    def judge(self, path, name):
        with path.open("rb") as file:
            if file.read(40).startswith(b"version https://git-lfs"):
                return {"verdict": "no model", "reason": "a git-lfs pointer"}
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, WORKER, str(self._seed)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,  # so that nothing waits where select does not see it
            )
        process = self._process
        process.stdin.write(json.dumps({"path": str(path), "name": name}).encode() + b"\n")
        process.stdin.flush()
        stage = "start"
        while True:
            ready, _, _ = select.select([process.stdout], [], [], self._timeout)
            line = process.stdout.readline() if ready else b""
            if line:
                message = json.loads(line)
                if "verdict" in message:
                    return message
                stage = message["stage"]
                continue
            process.kill()
            code = process.wait()
            self._process = None
            what = f"process ended with {code}" if ready else f"no end after {self._timeout:g} s"
            verdict = "rukh fails" if stage == "rukh" else "ORT fails"
            return {"verdict": verdict, "reason": f"{what}, while {stage} ran"}


if __name__ == "__main__":
    sys.exit(main())
