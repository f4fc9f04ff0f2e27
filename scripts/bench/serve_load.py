#!/usr/bin/env python3
"""Load on rukh.serve while replicas are killed: every answer is checked, and none may be lost.

    serve_load.py [--minutes 10] [--clients 8] [--replicas 2] [--kill-every 20] [--json FILE]

Starts Ray on this machine, serves the digits example by the Open Inference Protocol, and lets clients ask without a
pause: requests of 1 to 4 images in JSON or in bytes, and some that are wrong on purpose, which must be refused. A
replica is killed by SIGKILL again and again. At the end the counts are printed; the exit status is 1 when an answer was
wrong or lost. Needs ray[serve] and numpy, and RUKH_LIBRARY and PYTHONPATH as the tests have them.
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import signal
import sys
import threading
import time

import numpy as np
import rukh

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.onnx"
HOST = "127.0.0.1"
HEADER = "Inference-Header-Content-Length"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--kill-every", type=float, default=20, help="seconds; 0 kills none")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--json", type=pathlib.Path, help="a file for the counts")
    arguments = parser.parse_args()
    handle = start(arguments.replicas, arguments.port)
    images = np.random.default_rng(7).random((360, 1, 8, 8), dtype=np.float32)
    session = rukh.InferenceSession(DIGITS)
    scores = np.concatenate([session.run(None, {"image": images[i : i + 1]})[0] for i in range(len(images))])
    tally = run(arguments, handle, images, scores)
    print(json.dumps(tally, indent=2))
    if arguments.json:
        arguments.json.write_text(json.dumps(tally, indent=2) + "\n")
    stop()
    return 1 if tally["wrong"] or tally["lost"] or not tally["right"] else 0


def start(replicas, port):
    """The handle of a served model, on a Ray of its own."""
    import ray
    from ray import serve
    from rukh.serve import Model, application

    ray.init(num_cpus=replicas + 4, include_dashboard=False, log_to_driver=False)
    serve.start(http_options={"host": HOST, "port": port})
    model = Model(path=str(DIGITS), replicas=replicas, max_batch_size=32)
    serve.run(application({"digits": model}, deadline=60), name="load")
    return serve.get_deployment_handle("digits", app_name="load")


def stop():
    import ray
    from ray import serve

    serve.shutdown()
    ray.shutdown()


def run(arguments, handle, images, scores):
    """The counts of a whole run."""
    end = time.monotonic() + 60 * arguments.minutes
    clients = [Client(arguments.port, images, scores, seed) for seed in range(arguments.clients)]
    threads = [threading.Thread(target=client.ask, args=(end,)) for client in clients]
    for thread in threads:
        thread.start()
    kills = 0
    while arguments.kill_every and time.monotonic() + arguments.kill_every < end:
        time.sleep(arguments.kill_every)
        kills += kill_one(handle)
    for thread in threads:
        thread.join()
    counts = sum((client.counts for client in clients), collections.Counter())
    seconds = np.array([second for client in clients for second in client.seconds])
    return {
        "minutes": arguments.minutes,
        "clients": arguments.clients,
        "replicas": arguments.replicas,
        "requests": len(seconds),
        **{name: counts[name] for name in ("right", "refused", "wrong", "lost", "resent", "retries")},
        "kills": kills,
        "requests_per_second": round(len(seconds) / (60 * arguments.minutes), 1),
        "milliseconds": {
            name: round(float(1000 * np.quantile(seconds, at)), 1)
            for name, at in (("median", 0.5), ("p99", 0.99), ("most", 1.0))
        },
        "failures": [failure for client in clients for failure in client.failures][:10],
    }


def kill_one(handle):
    """Kills the replica that answers, and says how many that were."""
    try:
        found = handle.identify.remote().result(timeout_s=15)
    except Exception as error:  # noqa: BLE001 - one that dies meanwhile is asked for nothing
        print(f"no replica told its process: {error}", file=sys.stderr)
        return 0
    os.kill(found["pid"], signal.SIGKILL)
    return 1


class Client:
    """Asks one thing after the other, over one connection."""

    def __init__(self, port, images, scores, seed):
        self._port = port
        self._images = images
        self._scores = scores
        self._random = np.random.default_rng(seed)
        self.counts = collections.Counter()
        self.seconds = []
        self.failures = []

    def ask(self, end):
        connection = http.client.HTTPConnection(HOST, self._port, timeout=90)
        while time.monotonic() < end:
            started = time.monotonic()
            kind = self._random.choice(["json", "bytes", "wrong"], p=[0.45, 0.45, 0.1])
            chosen = self._random.integers(0, len(self._images), self._random.integers(1, 5))
            body, headers = self._request(kind, chosen)
            try:
                connection.request("POST", "/v2/models/digits/infer", body, headers)
                reply = connection.getresponse()
                content = reply.read()
            except OSError as error:
                connection.close()
                self._fail("lost", repr(error))
            else:
                self._check(kind, chosen, reply, content)
            self.seconds.append(time.monotonic() - started)

    def _request(self, kind, chosen):
        images = self._images[chosen]
        entry = {"name": "image", "datatype": "FP32", "shape": list(images.shape)}
        if kind == "bytes":
            entry["parameters"] = {"binary_data_size": images.nbytes}
            head = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
            return head + images.tobytes(), {HEADER: str(len(head))}
        if kind == "wrong":
            entry["shape"] = [len(images), 1, 4, 16]
        entry["data"] = images.ravel().tolist()
        return json.dumps({"inputs": [entry]}).encode(), {}

    def _check(self, kind, chosen, reply, content):
        if kind == "wrong":
            good = reply.status == 400 and b"the model takes" in content
            return (
                self.counts.update(refused=1)
                if good
                else self._fail("wrong", f"{reply.status} {content[:200]!r}")
            )
        if reply.status != 200:
            return self._fail("lost", f"{reply.status} {content[:300]!r}")
        attempts = int(reply.headers["Rukh-Attempts"])
        self.counts.update(retries=attempts - 1, resent=int(attempts > 1))
        if kind == "bytes":
            found = np.frombuffer(content[int(reply.headers[HEADER]) :], np.float32)
        else:
            found = np.array(json.loads(content)["outputs"][0]["data"], np.float32)
        expected = self._scores[chosen]
        if found.size == expected.size and np.allclose(found.reshape(expected.shape), expected, 1e-4, 1e-4):
            return self.counts.update(right=1)
        return self._fail("wrong", f"{found.size} elements for {expected.size}, or others")

    def _fail(self, kind, what):
        self.counts.update({kind: 1})
        self.failures.append(what)


if __name__ == "__main__":
    sys.exit(main())
