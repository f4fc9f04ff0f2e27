"""What rukh.serve does beside Ray: signatures, batches, samples, options. None of it needs Ray."""

import subprocess
import sys

import numpy as np
import pytest
import rukh
from models import model
from onnx import TensorProto, helper
from rukh.serve import Model, OptionError, RequestError, TextModel
from rukh.serve.batches import Report, Request, run_batch
from rukh.serve.options import parse_model
from rukh.serve.samples import make_sample, rows_are_apart
from rukh.serve.signature import Signature

INT64 = TensorProto.INT64


def opened(data, batching=None):
    session = rukh.InferenceSession(data)
    return session, Signature.of("m", session, batching)


def scale():
    return model([("Mul", ["x", "x"], ["y"])], x=["n", "w"], y=["n", "w"])


def lookup():
    table = helper.make_tensor("table", TensorProto.FLOAT, [4, 2], np.arange(8.0))
    return model([("Gather", ["table", "i"], ["y"])], [table], i=(INT64, ["n"]), y=["n", 2])


def test_ray_is_not_needed_by_the_package():
    code = (
        "import sys; sys.modules['ray'] = None\n"
        "import rukh, rukh.serve\n"
        "rukh.serve.Model(path='a')\n"
        "try: rukh.serve.application\n"
        "except ImportError as error: assert 'pip install rukh[serve]' in str(error), error\n"
        "else: raise SystemExit('no error')\n"
        "assert not any(name.split('.')[0] in ('ray', 'starlette') for name in sys.modules if name != 'ray')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("x", "y", "batches"),
    [
        (["n", 3], ["n", 3], True),
        ([2, 3], [2, 3], False),
        (["n", 3], ["m", 3], False),
        ([None, 3], [None, 3], False),
        ([], [], False),
    ],
)
def test_shapes_decide_over_batching(x, y, batches):
    data = model([("Neg", ["x"], ["y"])], x=x, y=y)
    assert opened(data)[1].batches == batches
    assert not opened(data, batching=False)[1].batches


def test_batching_that_cannot_be_is_refused():
    with pytest.raises(OptionError, match=r'batching is True for model "m".*"x" has the type .* \[2, 3\]'):
        opened(model([("Neg", ["x"], ["y"])], x=[2, 3], y=[2, 3]), batching=True)
    with pytest.raises(OptionError, match="batching is True"):
        opened(
            model(
                [("SequenceConstruct", ["x"], ["s"])],
                x=["n"],
                s=helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])),
            ),
            batching=True,
        )


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({}, None, 'model "m" also needs the input "x"; given are none'),
        ({"x": np.zeros((1, 2), np.float32), "z": 1}, None, 'no input "z"; it has "x"'),
        (
            {"x": np.zeros((1, 2), np.float64)},
            None,
            'input "x" of model "m" has elements of type FP64; the model takes FP32',
        ),
        (
            {"x": np.zeros(2, np.float32)},
            None,
            r"shape \[2\], of rank 1; the model takes \[n, w\], of rank 2",
        ),
        ({"x": np.zeros((1, 2), np.float32)}, ["q"], 'no output "q"; it has "y"'),
        ({"x": None}, None, "is a NoneType; allowed are NumPy arrays"),
    ],
)
def test_a_request_that_does_not_fit_is_refused(inputs, outputs, message):
    with pytest.raises(RequestError, match=message):
        opened(scale())[1].check(inputs, outputs)


def test_first_dimensions_must_agree():
    _, signature = opened(model([("Add", ["a", "b"], ["c"])], a=["n", 1], b=["n", 1], c=["n", 1]))
    a = np.zeros((2, 1), np.float32)
    signature.check({"a": a, "b": a}, None)
    with pytest.raises(RequestError, match=r"'a': 2, 'b': 1.*must be equal"):
        signature.check({"a": a, "b": a[:1]}, None)


def test_tensors_are_arrays():
    # What is no array cannot be joined with others.
    _, signature = opened(scale())
    with pytest.raises(RequestError, match='input "x" of model "m" is a list; allowed are NumPy arrays'):
        signature.check({"x": [[1.0, 2.0]]}, None)


def test_fixed_sizes_must_be_kept():
    _, signature = opened(model([("Neg", ["x"], ["y"])], x=["n", 3], y=["n", 3]))
    with pytest.raises(
        RequestError, match=r"shape \[1, 4\], with 4 in dimension 1; the model takes \[n, 3\]"
    ):
        signature.check({"x": np.zeros((1, 4), np.float32)}, None)


def test_requests_of_other_shapes_run_apart_and_all_come_back():
    session, _ = opened(scale())
    random = np.random.default_rng(2)
    shapes = [(1, 3), (2, 3), (1, 5), (3, 3), (2, 5), (0, 3)]
    requests = [Request({"x": random.random(shape, np.float32)}, ("y",)) for shape in shapes]
    outcomes, report = run_batch(session.run, requests)
    assert report.runs == [4, 2]
    for request, outcome in zip(requests, outcomes):
        np.testing.assert_allclose(outcome["y"], request.inputs["x"] ** 2, rtol=1e-6)


def test_a_fault_is_its_own_requests_alone():
    session, _ = opened(lookup())
    rows = [[0], [9], [3, 1], [-7], [2]]
    outcomes, report = run_batch(session.run, [Request({"i": np.array(row)}, ("y",)) for row in rows])
    assert report.runs == [5, 1, 1, 1, 1, 1]
    for row, outcome in zip(rows, outcomes):
        if row in ([9], [-7]):
            assert isinstance(outcome, rukh.InvalidDataError)
        else:
            assert outcome["y"].tolist() == [[2 * i, 2 * i + 1] for i in row]


@pytest.mark.parametrize("wrong", ["\ud800", 5, None])
def test_a_text_that_is_none_fails_alone(wrong):
    text = (TensorProto.STRING, ["n"])
    session = rukh.InferenceSession(model([("Identity", ["x"], ["y"])], x=text, y=text))
    requests = [Request({"x": np.array([item], object)}, ("y",)) for item in ("a", wrong, "b")]
    first, second, third = run_batch(session.run, requests)[0]
    assert (first["y"].tolist(), third["y"].tolist()) == (["a"], ["b"])
    assert isinstance(second, (UnicodeEncodeError, TypeError))


def test_rows_without_room_beside_each_other_run_apart():
    def run(_outputs, inputs):
        if len(inputs["x"]) > 1:
            raise MemoryError("no room")
        return [inputs["x"]]

    outcomes, report = run_batch(run, [Request({"x": np.full((1, 1), i)}, ("y",)) for i in range(3)])
    assert report.runs == [3, 1, 1, 1]
    assert [outcome["y"].item() for outcome in outcomes] == [0, 1, 2]


def test_outputs_that_do_not_grow_with_the_rows_are_not_cut():
    session = rukh.InferenceSession(model([("ReduceSum", ["x"], ["y"])], x=["n", 2], y=[1, 1]))
    requests = [Request({"x": np.full((rows, 2), rows, np.float32)}, ("y",)) for rows in (1, 2)]
    outcomes, report = run_batch(session.run, requests)
    assert [float(outcome["y"].item()) for outcome in outcomes] == [2, 8]
    assert 'output "y" has the shape [1, 1] for inputs of 3 rows' in report.unjoinable


def test_a_failing_device_is_the_fault_of_no_request():
    def fail(_outputs, _inputs):
        raise rukh.DeviceError("lost")

    outcomes, report = run_batch(fail, [Request({"x": np.zeros((1, 1), np.float32)}, ("y",))] * 3)
    assert report.runs == [3]
    assert all(isinstance(outcome, rukh.DeviceError) for outcome in outcomes)


def test_rows_that_change_each_other_are_found():
    for operator, apart in (("Softmax", False), ("Relu", True)):
        attributes = {"axis": 0} if operator == "Softmax" else {}
        node = helper.make_node(operator, ["x"], ["y"], **attributes)
        session, signature = opened(model([node], x=["n", 4], y=["n", 4]))
        assert signature.batches
        sample = make_sample(signature, {})
        assert rows_are_apart(signature, session.run, sample) == apart


def test_rows_quantized_together_are_found():
    nodes = [
        ("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        ("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    data = model(nodes, x=["n", 4], y=["n", 4])
    session, signature = opened(data)
    assert not rows_are_apart(signature, session.run, make_sample(signature, {}))


def test_samples():
    _, signature = opened(lookup())
    assert make_sample(signature, {})["i"].tolist() == [0]
    assert make_sample(signature, {"i": [3]})["i"].dtype == np.int64
    with pytest.raises(
        OptionError, match='sample has the input "j", which model "m" does not have; it has i'
    ):
        make_sample(signature, {"j": [3]})
    with pytest.raises(RequestError, match="of rank 2"):
        make_sample(signature, {"i": [[3]]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": ""}, "path is ''; allowed are the path of a model"),
        ({"num_gpus": 2}, "num_gpus is 2; allowed are numbers from 0 to 1 .*more replicas"),
        ({"num_cpus": -1}, "num_cpus is -1"),
        ({"num_cpus": float("nan")}, "num_cpus is nan"),
        ({"max_batch_size": 0}, "max_batch_size is 0; allowed are whole numbers from 1 on"),
        ({"max_batch_size": True}, "max_batch_size is True"),
        ({"batch_wait": -0.1}, "batch_wait is -0.1"),
        ({"batching": "yes"}, "batching is 'yes'; allowed are None, True and False"),
        ({"replicas": 2, "autoscaling": {"max_replicas": 3}}, "give one of them"),
        ({"replicas": 0}, "replicas is 0"),
        ({"health_check_timeout": 0}, "health_check_timeout is 0"),
        ({"actor_options": {"num_cpus": 2}}, 'actor_options has "num_cpus"'),
    ],
)
def test_options_that_are_wrong_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        Model(**{"path": "m.onnx", **options})


def test_models_of_configuration_files():
    found = parse_model("m", {"path": "a.onnx", "max_batch_size": 8, "num_gpus": 0.5})
    assert (found.max_batch_size, found.provider, found.ongoing()) == (8, "hip", 16)
    assert isinstance(parse_model("t", {"path": "a", "kind": "text"}), TextModel)
    for given, message in (
        ({"path": "a", "kind": "image"}, "kind of model \"m\" is 'image'; allowed are model, text"),
        ({"path": "a", "size": 1}, "has the option 'size'; allowed are kind, path"),
        ({}, 'model "m" has no path'),
        ({"path": "a", "kind": "text", "options": {"sequences": 2}}, "a request is one sequence"),
    ):
        with pytest.raises(OptionError, match=message):
            parse_model("m", given)


def test_a_report_begins_empty():
    assert (Report().runs, Report().unjoinable) == ([], "")
