"""Operators that a program defines as functions over arrays."""

import gc
import pathlib
import weakref

import numpy as np
import pytest
import rukh
from onnx import TensorProto, helper

FLOAT, STRING, INT64 = TensorProto.FLOAT, TensorProto.STRING, TensorProto.INT64
MODELS = pathlib.Path(__file__).resolve().parents[2] / "capi-tests" / "models"


def model(nodes, inputs, outputs):
    made = [helper.make_node(op, i, o, domain=d, **attributes) for op, d, i, o, attributes in nodes]

    def values(given):
        return [
            helper.make_tensor_value_info(name, element, shape) for name, (element, shape) in given.items()
        ]

    graph = helper.make_graph(made, "graph", values(inputs), values(outputs))
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()


def session(data, *operators):
    options = rukh.SessionOptions()
    for operator in operators:
        options.add_operator(operator)
    return rukh.InferenceSession(data, options)


SCALE = {"inputs": {"x": "T"}, "outputs": {"y": "T"}, "types": {"T": ["float", np.float64]}}


@pytest.mark.parametrize("shapes", [None, lambda x, factor: x])
def test_a_function_runs_nodes(shapes):
    kept = []

    @rukh.operator("test.ops", "Scale", attributes={"factor": 1.0}, shapes=shapes, **SCALE)
    def scale(x, factor):
        kept.append(x)
        return x * np.float32(factor)

    made = session(str(MODELS / "operators.onnx"), scale)
    for rows in (1, 3, 1):
        x = np.tile(np.array([1, 3], np.float32), (rows, 1))
        (y,) = made.run(None, {"x": x})
        np.testing.assert_array_equal(y, np.tile(np.array([24, 21], np.float32), (rows, 1)))
    np.testing.assert_array_equal(kept[0], [10, 20] if kept[0].ndim == 1 else [[7, 0.5]])
    np.testing.assert_array_equal(scale(np.float32(2), 3), 6)


def test_every_kind_of_attribute_input_and_output():
    told = {}

    @rukh.operator(
        "my",
        "Everything",
        inputs={"x": "float", "gap?": "float", "words*": "string"},
        outputs={"y": "float", "joined?": "string"},
        attributes={
            "i": 1,
            "f": 0.5,
            "s": "text",
            "ints": [1, 2],
            "floats": [0.5],
            "strings": ["a"],
            "t": np.arange(3, dtype=np.int64),
            "needed": rukh.Required(rukh.AttributeType.INT),
        },
    )
    def everything(x, gap, *words, **attributes):
        assert gap is None
        told.update(attributes)
        return x[x > 0], np.array(["+".join(parts) for parts in zip(*words)], dtype=object)

    given = {"needed": 4, "ints": [7], "strings": ["b", "ü"], "f": 2.0}
    data = model(
        [("Everything", "my", ["x", "", "a", "b"], ["y", "joined"], given), ("Neg", "", ["y"], ["z"], {})],
        {"x": (FLOAT, ["n"]), "a": (STRING, ["m"]), "b": (STRING, ["m"])},
        {"z": (FLOAT, ["k"]), "joined": (STRING, ["m"])},
    )
    made = session(data, everything)
    z, joined = made.run(None, {"x": np.array([-1, 2, 3], np.float32), "a": ["p", "q"], "b": ["r", "s"]})
    assert z.tolist() == [-2, -3] and joined.tolist() == ["p+r", "q+s"]
    np.testing.assert_array_equal(told.pop("t"), [0, 1, 2])
    assert told == {
        "i": 1,
        "f": 2.0,
        "s": "text",
        "ints": [7],
        "floats": [0.5],
        "strings": ["b", "ü"],
        "needed": 4,
    }


@pytest.mark.parametrize(
    "name", ["Relu", "Identity", "Cast", "Neg", "Transpose", "Shape", "Constant", "Dropout", "Loop"]
)
@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_ALL"])
def test_names_that_the_standard_has_mean_nothing_in_another_domain(name, level):
    own = rukh.operator("my", name, inputs={"x": "float"}, outputs={"y": "float"}, shapes=lambda x: x)
    data = model(
        [
            ("MatMul", "", ["x", "x"], ["product"], {}),
            (name, "my", ["product"], ["own"], {}),
            ("Relu", "", ["own"], ["relu"], {}),
            (name, "my", ["relu"], ["again"], {}),
            ("Add", "", ["again", "x"], ["y"], {}),
        ],
        {"x": (FLOAT, [2, 2])},
        {"y": (FLOAT, [2, 2])},
    )
    options = rukh.SessionOptions()
    options.add_operator(own(lambda x: x - 3))
    options.graph_optimization_level = rukh.GraphOptimizationLevel[level]
    x = np.array([[1, 2], [-1, 3]], np.float32)
    (y,) = rukh.InferenceSession(data, options).run(None, {"x": x})
    np.testing.assert_array_equal(y, np.maximum(x @ x - 3, 0) - 3 + x)


DATA = model([("Op", "my", ["x"], ["y"], {})], {"x": (FLOAT, ["n"])}, {"y": (FLOAT, ["n"])})


def op(function, **more):
    return rukh.operator("my", "Op", inputs={"x": "float"}, outputs={"y": "float"}, **more)(function)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: 1 / 0, r"\(my.Op\): ZeroDivisionError: division by zero"),
        (lambda x: x.astype(np.int32), r"tensor\(int32\) was given; allowed is tensor\(float\)"),
        (lambda x: (), "returned without making output 0"),
        (lambda x, y: x, "TypeError"),
    ],
)
def test_functions_that_fail(function, text):
    made = session(DATA, op(function))
    with pytest.raises(rukh.RukhError, match=text):
        made.run(None, {"x": np.ones(2, np.float32)})


def test_definitions_that_are_wrong():
    with pytest.raises(ValueError, match="the standard has an operator of this name"):
        rukh.operator("", "Relu", inputs={"x": "float"}, outputs={"y": "float"})(lambda x: x)
    with pytest.raises(ValueError, match="neither a type variable nor"):
        rukh.operator("my", "Op", inputs={"x": "flaot"}, outputs={"y": "float"})(lambda x: x)
    options = rukh.SessionOptions()
    options.add_operator(op(lambda x: x))
    with pytest.raises(ValueError, match="my.Op of version 1 already"):
        options.add_operator(op(lambda x: x))
    with pytest.raises(rukh.RukhError, match="x: the shape"):
        session(DATA, op(lambda x: x, shapes=lambda x: (_ for _ in ()).throw(ValueError("x: the shape"))))
    with pytest.raises(rukh.RukhError, match=r"nowhere\.so"):
        options.register_custom_ops_library("nowhere.so")


def test_what_is_not_used_any_more_goes():
    class Function:
        def __call__(self, x):
            return x

    function = Function()
    gone = weakref.ref(function)
    made = session(DATA, op(function))
    del function
    (y,) = made.run(None, {"x": np.ones(2, np.float32)})
    assert y.tolist() == [1, 1] and gone() is not None
    del made
    gc.collect()
    assert gone() is None


def test_sequences_and_bodies_of_scan():
    kept = []

    @rukh.operator("my", "Doubled", inputs={"s": "seq(T)"}, outputs={"d": "seq(T)"}, types={"T": ["float"]})
    def doubled(s):
        kept.extend(s)
        return [2 * item for item in s]

    data = model(
        [
            ("SequenceConstruct", "", ["a", "b"], ["s"], {}),
            ("Doubled", "my", ["s"], ["d"], {}),
            ("ConcatFromSequence", "", ["d"], ["y"], {"axis": 0}),
        ],
        {"a": (FLOAT, ["n"]), "b": (FLOAT, ["m"])},
        {"y": (FLOAT, ["k"])},
    )
    made = session(data, doubled)
    for _ in range(2):
        (y,) = made.run(None, {"a": np.float32([1, 2]), "b": np.float32([3])})
        assert y.tolist() == [2, 4, 6]
    assert [item.tolist() for item in kept] == [[1, 2], [3]] * 2

    body = helper.make_graph(
        [
            helper.make_node("Op", ["sum"], ["own"], domain="my"),
            helper.make_node("Add", ["own", "x"], ["next"]),
            helper.make_node("Identity", ["next"], ["out"]),
        ],
        "body",
        [helper.make_tensor_value_info(name, FLOAT, []) for name in ("sum", "x")],
        [helper.make_tensor_value_info(name, FLOAT, []) for name in ("next", "out")],
    )
    scan = model(
        [("Scan", "", ["start", "xs"], ["end", "all"], {"body": body, "num_scan_inputs": 1})],
        {"start": (FLOAT, []), "xs": (FLOAT, ["n"])},
        {"end": (FLOAT, []), "all": (FLOAT, ["n"])},
    )
    for shapes in (None, lambda x: x):
        made = session(scan, op(lambda x: 10 * x, shapes=shapes))
        end, everything = made.run(None, {"start": np.float32(1), "xs": np.float32([1, 2, 3])})
        assert end == 1123 and everything.tolist() == [11, 112, 1123]
