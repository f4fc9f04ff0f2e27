"""Sequences: control inputs that the server fills, and states that it keeps."""

import numpy as np
import pytest
from conftest import infer
from models import look_up, running_sum
from test_batches import in_threads
from tritonclient.utils import InferenceServerException

CONFIG = """
max_batch_size: 8
sequence_batching {
  direct { }
  control_input [ {
    name: "start"
    control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ]
  } ]
  state [ { input_name: "sum_in" output_name: "sum_out" data_type: TYPE_FP32 dims: [ 2 ] } ]
}
"""


def test_states_stay_from_request_to_request(server, place):
    name = f"sum-{place[0]}"
    server.add(name, running_sum(), CONFIG + place[1])
    config = server.http.get_model_config(name)
    assert [x["name"] for x in config["input"]] == ["x"]
    assert [y["name"] for y in config["output"]] == ["total"]

    def work(index):
        total = np.zeros((1, 2), np.float32)
        for step in range(10):
            x = np.array([[index, step]], np.float32)
            total += x
            got = infer(
                server.grpc,
                name,
                {"x": x},
                sequence_id=index + 1,
                sequence_start=step == 0,
                sequence_end=step == 9,
            )
            assert (got["total"] == total).all()

    in_threads(work, 16)


def test_states_that_the_model_does_not_have(server):
    config = CONFIG.replace("sum_out", "sum_up")
    server.add("wrong-state", running_sum(), config, load=False)
    with pytest.raises(InferenceServerException, match="sum_up"):
        server.http.load_model("wrong-state")
    config = CONFIG.replace("TYPE_FP32", "TYPE_INT32")
    server.add("wrong-type", running_sum(), config, load=False)
    with pytest.raises(InferenceServerException, match="TYPE_INT32"):
        server.http.load_model("wrong-type")
    server.add("no-control", look_up(), CONFIG, load=False)
    with pytest.raises(InferenceServerException, match="does not have"):
        server.http.load_model("no-control")
