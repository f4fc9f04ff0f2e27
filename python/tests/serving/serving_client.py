"""What the tests of rukh.serve share: a client, and models."""

import concurrent.futures
import http.client
import json
import os
import pathlib
import signal
import time

import numpy as np
import serving_failing
from models import model
from onnx import TensorProto, helper
from ray import cloudpickle

HOST, PORT = "127.0.0.1", int(os.environ.get("RUKH_TEST_SERVE_PORT", "18431"))
ROOT = pathlib.Path(__file__).resolve().parents[3]
DIGITS = str(ROOT / "examples" / "digits" / "digits.onnx")
TALK = str(ROOT / "examples" / "generate" / "model")

# Replicas have no path to this folder.
cloudpickle.register_pickle_by_value(serving_failing)


def ask(path, body=None, headers=None, timeout=120):
    """The status, the document and the headers of a reply; GET without a body, which is JSON or bytes."""
    connection = http.client.HTTPConnection(HOST, PORT, timeout=timeout)
    try:
        data = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        connection.request("GET" if data is None else "POST", path, data, headers or {})
        reply = connection.getresponse()
        content = reply.read()
    finally:
        connection.close()
    is_json = reply.headers.get("Content-Type", "").startswith("application/json")
    return reply.status, json.loads(content) if is_json else content, reply.headers


def infer(name, path="", parameters=None, **inputs):
    """The status and the outputs by name (or what was wrong) for arrays, in JSON."""
    datatypes = {"f4": "FP32", "i8": "INT64", "f8": "FP64"}
    entries = [
        {
            "name": key,
            "datatype": datatypes.get(array.dtype.str[1:], "BYTES"),
            "shape": list(array.shape),
            "data": array.ravel().tolist(),
        }
        for key, array in inputs.items()
    ]
    body = {"inputs": entries, "parameters": parameters or {}}
    status, document, _ = ask(f"{path}/v2/models/{name}/infer", body)
    if status != 200:
        return status, document["error"]
    outputs = {item["name"]: np.array(item["data"]).reshape(item["shape"]) for item in document["outputs"]}
    return status, outputs


def at_once(calls):
    """What all the calls give, made at the same time."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return [future.result() for future in [pool.submit(call) for call in calls]]


def kill(handle, how=signal.SIGKILL):
    """Sends a signal to the replica that answers; its process."""
    pid = handle.identify.remote().result(timeout_s=60)["pid"]
    os.kill(pid, how)
    return pid


def wait_for(condition, seconds=90):
    """What the condition gives once that is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.2)
    return found


def write(folder, name, data):
    path = folder / f"{name}.onnx"
    path.write_bytes(data)
    return str(path)


def square(folder):
    return write(folder, "square", model([("Mul", ["x", "x"], ["y"])], x=["n", "w"], y=["n", "w"]))


def lookup(folder):
    """A row of a table for each number from 0 to 3."""
    table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], np.arange(8.0))
    data = model([("Gather", ["table", "i"], ["y"])], [table], i=(TensorProto.INT64, ["n"]), y=["n", 2])
    return write(folder, "lookup", data)


def fixed(folder):
    return write(folder, "fixed", model([("Neg", ["x"], ["y"])], x=[2, 3], y=[2, 3]))


def mixing(folder):
    """Each row depends on all the others."""
    node = helper.make_node("Softmax", ["x"], ["y"], axis=0)
    return write(folder, "mixing", model([node], x=["n", 2], y=["n", 2]))


def echo(folder):
    text = (TensorProto.STRING, ["n"])
    return write(folder, "echo", model([("Identity", ["x"], ["y"])], x=text, y=text))
