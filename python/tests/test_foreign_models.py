"""What exporters write that the standard does not say, or says otherwise: it runs as in ONNX Runtime.

The expected numbers are ONNX Runtime's, of the same models and inputs.
"""

import numpy as np
import pytest
import rukh
from models import info, model
from onnx import AttributeProto, TensorProto, helper, numpy_helper


def run(data, **feed):
    return rukh.InferenceSession(data).run(None, feed)


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def with_domain(nodes, ir_version=10, **values):
    """A model that imports ai.onnx 15 alone."""
    initializers = values.pop("initializers", ())
    proto = helper.make_model(
        helper.make_graph(
            nodes,
            "graph",
            [info(name, value) for name, value in values.items() if name != "y"],
            [info("y", values["y"])],
            list(initializers),
        ),
        opset_imports=[helper.make_opsetid("", 15)],
        ir_version=ir_version,
    )
    return proto.SerializeToString()


def test_operators_of_a_domain_that_is_not_imported():
    node = helper.make_node("QuickGelu", ["x"], ["y"], domain="com.microsoft")
    (y,) = run(with_domain([node], x=[2], y=[2]), x=np.array([1, -1], np.float32))
    np.testing.assert_allclose(y, [0.84579575, -0.15420423], rtol=1e-6)
    node = helper.make_node("Nothing", ["x"], ["y"], domain="com.somebody")
    with pytest.raises(rukh.InvalidModelError, match="com.somebody"):
        rukh.InferenceSession(with_domain([node], x=[2], y=[2]))


def test_the_later_of_two_imports_of_a_domain_counts():
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("Relu", ["x"], ["y"])], "graph", [info("x", [1])], [info("y", [1])]
        ),
        opset_imports=[helper.make_opsetid("", 0), helper.make_opsetid("", 13)],
        ir_version=8,
    )
    assert run(proto.SerializeToString(), x=np.array([-1], np.float32))[0].tolist() == [0]


def test_layer_normalization_before_the_standard_had_it():
    # `epsion` is how ONNX Runtime's own test models spell it; it never checked the names.
    node = helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"], epsion=1e-5, axis=-1)
    ones, zeros = constant("s", [1, 1]), constant("b", [0, 0])
    (y,) = run(with_domain([node], initializers=[ones, zeros], x=[1, 2], y=[1, 2]), x=np.array([[1, 3]], np.float32))
    np.testing.assert_allclose(y, [[-0.999995, 0.999995]], rtol=1e-6)


def test_layer_normalization_without_a_type_for_statistics():
    node = helper.make_node("LayerNormalization", ["x", "s"], ["y"], stash_type=0)
    data = model([node], [constant("s", [1, 1], np.float16)], x=(10, [1, 2]), y=(10, [1, 2]))
    np.testing.assert_allclose(run(data, x=np.array([[1, 3]], np.float16))[0], [[-1, 1]], rtol=1e-3)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_loop_whose_body_declares_the_rank_of_its_counter(rank):
    shape = [1] * rank
    nodes = [helper.make_node("Identity", ["c"], ["d"])]
    nodes += [helper.make_node("Squeeze", ["i"], ["n"]) if rank else helper.make_node("Identity", ["i"], ["n"])]
    body = helper.make_graph(
        nodes,
        "body",
        [info("i", shape, TensorProto.INT64), info("c", shape, TensorProto.BOOL)],
        [info("d", shape, TensorProto.BOOL), info("n", [], TensorProto.INT64)],
    )
    data = model([helper.make_node("Loop", ["m", ""], ["y"], body=body)], m=(7, []), y=(7, ["n"]))
    assert run(data, m=np.array(3))[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize("declared, found", [((2, "n"), (0, 2, 0)), ((None, 3), (0, 0, 3)), ((2, 3), (0, 2, 3))])
def test_scan_outputs_of_a_loop_that_never_runs(declared, found):
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Identity", ["x"], ["y"])],
        "body",
        [info("i", [], TensorProto.INT64), info("c", [], TensorProto.BOOL)],
        [info("d", [], TensorProto.BOOL), info("y", declared)],
    )
    data = model([helper.make_node("Loop", ["m", ""], ["s"], body=body)], m=(7, []), x=["a", "b"], s=["k", "l", "m"])
    assert run(data, m=np.array(0), x=np.ones((2, 3), np.float32))[0].shape == found


def test_two_constants_of_one_name():
    nodes = [
        helper.make_node("Constant", [], ["c"], value=constant("", [1])),
        helper.make_node("Add", ["x", "c"], ["y"]),
        helper.make_node("Constant", [], ["c"], value=constant("", [5])),
    ]
    assert run(model(nodes, [constant("c", [9])], x=[1], y=[1]), x=np.zeros(1, np.float32))[0].tolist() == [5]
    nodes = [helper.make_node("Add", ["x", "c"], ["y"])]
    data = model(nodes, [constant("c", [9]), constant("c", [7])], x=[1], y=[1])
    assert run(data, x=np.zeros(1, np.float32))[0].tolist() == [7]


def overridable(ir_version=8):
    """y = x · w + 1, with a value for w."""
    proto = helper.make_model(
        helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "one"], ["y"])],
            "graph",
            [info("x", ["n", 2]), info("w", [2, 2]), info("one", ["k"])],
            [info("y", ["n", 2])],
            [constant("w", [[1, 0], [0, 1]]), constant("one", [1])],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=ir_version,
    )
    return proto.SerializeToString()


def test_an_initializer_that_is_an_input_may_be_given():
    session = rukh.InferenceSession(overridable())
    assert [i.name for i in session.get_inputs()] == ["x"]
    assert [(i.name, i.type, i.shape) for i in session.get_overridable_initializers()] == [
        ("w", "tensor(float)", [2, 2]),
        ("one", "tensor(float)", ["k"]),
    ]
    x, twice = np.array([[1, 2]], np.float32), np.eye(2, dtype=np.float32) * 2
    for _ in range(2):
        assert session.run(None, {"x": x})[0].tolist() == [[2, 3]]
        assert session.run(None, {"x": x, "w": twice})[0].tolist() == [[3, 5]]
        assert session.run(None, {"one": np.array([5, 6], np.float32), "x": x})[0].tolist() == [[6, 8]]
        assert session.run(None, {"one": np.zeros(1, np.float32), "w": twice, "x": x})[0].tolist() == [[2, 4]]
    with pytest.raises(rukh.InvalidInputError, match='"w"'):
        session.run(None, {"x": x, "w": x})


def test_an_initializer_that_is_an_input_may_be_bound():
    session = rukh.InferenceSession(overridable())
    binding = session.io_binding()
    binding.bind_cpu_input("x", np.array([[1, 2]], np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[2, 3]]
    binding.bind_cpu_input("w", np.zeros((2, 2), np.float32))
    session.run_with_iobinding(binding)
    assert binding.copy_outputs_to_cpu()[0].tolist() == [[1, 1]]


def test_before_version_4_all_initializers_are_inputs_and_none_may_be_given():
    session = rukh.InferenceSession(overridable(ir_version=3))
    assert session.get_overridable_initializers() == []
    x = np.array([[1, 2]], np.float32)
    assert session.run(None, {"x": x})[0].tolist() == [[2, 3]]
    with pytest.raises(Exception, match="Invalid input name: w"):
        session.run(None, {"x": x, "w": np.eye(2, dtype=np.float32)})


@pytest.mark.parametrize("scale, codes, back", [(-0.5, [0, 2, 0], [-1.0, -2.5]), (0.0, [255, 0, 0], [0, 0])])
def test_scales_that_are_not_positive(scale, codes, back):
    for constant_scale in (False, True):
        values = {"x": ["n"], "y": (2, ["n"])} | ({} if constant_scale else {"s": []})
        feed = {} if constant_scale else {"s": np.array(scale, np.float32)}
        scales = [constant("s", scale)] if constant_scale else []
        data = model([("QuantizeLinear", ["x", "s"], ["y"])], scales, **values)
        assert run(data, x=np.array([1, -1, 0], np.float32), **feed)[0].tolist() == codes
        data = model([("DequantizeLinear", ["x", "s"], ["y"])], scales, **(values | {"x": (2, ["n"]), "y": ["n"]}))
        assert run(data, x=np.array([2, 5], np.uint8), **feed)[0].tolist() == back


def test_whole_numbers_to_a_negative_power():
    data = model([("Pow", ["x", "e"], ["y"])], x=(7, ["n"]), e=(7, ["n"]), y=(7, ["n"]))
    x, e = np.array([0, 1, -1, 2]), np.array([-1, -2, -3, -1])
    assert run(data, x=x, e=e)[0].tolist() == [np.iinfo(np.int64).min, 1, -1, 0]


def test_squeeze_by_a_list_without_axes():
    data = model([("Squeeze", ["x", "a"], ["y"])], [constant("a", [], np.int64)], x=[3, 1, 5, 1], y=[3, 5])
    assert run(data, x=np.zeros((3, 1, 5, 1), np.float32))[0].shape == (3, 5)


def test_celu_of_alpha_0():
    data = model([helper.make_node("Celu", ["x"], ["y"], alpha=0.0)], x=["n"], y=["n"])
    np.testing.assert_array_equal(run(data, x=np.array([-1, 0, 2], np.float32))[0], [0, np.nan, np.nan])


def test_the_mask_of_old_dropouts_is_zero():
    nodes = [helper.make_node("Dropout", ["x"], ["y", "m"])]
    for opset, kept in ((10, False), (13, True)):
        y, mask = run(model(nodes, opset=opset, x=[2], y=[2], m=(9, [2])), x=np.ones(2, np.float32))
        assert (y.tolist(), mask.tolist()) == ([1, 1], [kept] * 2)


def test_truth_values_by_way_of_strings():
    nodes = [
        helper.make_node("Cast", ["x"], ["s"], to=TensorProto.STRING),
        helper.make_node("Cast", ["s"], ["y"], to=TensorProto.INT16),
    ]
    assert run(model(nodes, x=(9, [2]), y=(5, [2])), x=np.array([True, False]))[0].tolist() == [1, 0]


def test_image_scaler():
    node = helper.make_node("ImageScaler", ["x"], ["y"], scale=0.5, bias=[1.0, 2.0])
    data = model([node], opset=8, x=[1, 2, 1, 2], y=[1, 2, 1, 2])
    x = np.array([[[[1, 2]], [[3, 4]]]], np.float32)
    assert run(data, x=x)[0].tolist() == [[[[1.5, 2.0]], [[3.5, 4.0]]]]


def counting_decoder(table):
    """A decoder whose likeliest token is the one after the last, and whose past counts what it read."""
    kinds = {"input_ids": ["b", "s"], "position_ids": ["b", "s"], "attention_mask": ["b", "t"]}
    past, present = [2, "b", 1, "p", 1], [2, "b", 1, "t", 1]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["logits"]),
        helper.make_node("Cast", ["position_ids"], ["positions"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["positions", "axes"], ["row"]),
        helper.make_node("Concat", ["row", "row"], ["rows"], axis=0),
        helper.make_node("Concat", ["past_0", "rows"], ["present_0"], axis=3),
    ]
    return helper.make_graph(
        nodes,
        "decoder",
        [*(info(name, shape, TensorProto.INT32) for name, shape in kinds.items()), info("past_0", past)],
        [info("logits", ["b", "s", 5]), info("present_0", present)],
        [*table, constant("axes", [0, 2, 4], np.int64)],
    )


def generation(operator, inputs, outputs, captured=False, **attributes):
    likelihoods = np.full((5, 5), -4, np.float32)
    for token in range(5):
        likelihoods[token, (token + 1) % 5] = 3
        likelihoods[token, (token + 2) % 5] = 2
    table = [constant("table", likelihoods)]
    decoder = counting_decoder([] if captured else table)
    node = helper.make_node(operator, inputs, outputs, domain="com.microsoft", decoder=decoder, **attributes)
    whole = [constant(name, [n], np.int32) for name, n in (("max", 6), ("min", 1), ("beams", 2), ("returned", 2))]
    shapes = {"sequences": ["b", "n", "m"] if operator == "BeamSearch" else ["b", "m"], "scores": ["b", "n"]}
    proto = helper.make_model(
        helper.make_graph(
            [node],
            "graph",
            [info("ids", ["b", "s"], TensorProto.INT32)],
            [info(o, shapes[o], TensorProto.INT32 if o == "sequences" else TensorProto.FLOAT) for o in outputs],
            [*whole, constant("one", [1.0]), *(table if captured else [])],
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
    )
    return proto.SerializeToString()


GREEDY = ["ids", "max", "min", "one"]
BEAMS = ["ids", "max", "min", "beams", "returned", "one", "one"]
PROMPTS = np.array([[1, 1], [2, 3]], np.int32)


def test_greedy_search_ends_and_pads():
    data = generation("GreedySearch", GREEDY, ["sequences"], eos_token_id=4, pad_token_id=0)
    assert run(data, ids=PROMPTS)[0].tolist() == [[1, 1, 2, 3, 0, 0], [2, 3, 0, 0, 0, 0]]


def test_sampling_of_the_likeliest_alone_is_greedy():
    data = generation("Sampling", GREEDY, ["sequences"], eos_token_id=4, pad_token_id=0, top_p=0.1)
    assert run(data, ids=PROMPTS)[0].tolist() == [[1, 1, 2, 3, 0, 0], [2, 3, 0, 0, 0, 0]]


@pytest.mark.parametrize("captured", [False, True])
def test_beam_search(captured):
    # What the decoder captures is no input of the node, also where inputs are left out.
    inputs = BEAMS[:6] if captured else BEAMS
    attributes = {"captured": captured} | {"eos_token_id": 4, "pad_token_id": 0, "early_stopping": 0, "model_type": 0}
    sequences, scores = run(generation("BeamSearch", inputs, ["sequences", "scores"], **attributes), ids=PROMPTS)
    onnxruntime = pytest.importorskip("onnxruntime", reason="the expected sequences are those of ONNX Runtime")
    data = generation("BeamSearch", inputs, ["sequences", "scores"], **attributes)
    other = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = other.run(None, {"ids": PROMPTS})
    assert sequences.tolist() == expected[0].tolist()
    np.testing.assert_allclose(scores, expected[1], rtol=1e-5)


def test_caches_whose_rows_belong_to_other_beams():
    generator = np.random.default_rng(1)
    heads, size, room, past = 2, 4, 5, 3
    node = helper.make_node(
        "DecoderMaskedMultiHeadAttention",
        ["q", "k", "v", "", "", "past_k", "past_v", "past_length", "beams", "origins"],
        ["y", "present_k", "present_v"],
        domain="com.microsoft",
        num_heads=heads,
        past_present_share_buffer=1,
    )
    row, cache = ["n", 1, heads * size], ["n", heads, room, size]
    data = helper.make_model(
        helper.make_graph(
            [node],
            "graph",
            [info("q", row), info("k", row), info("v", row), info("past_k", cache), info("past_v", cache)]
            + [info("past_length", [1], 6), info("beams", [1], 6), info("origins", ["b", "w", "t"], 6)],
            [info("y", row), info("present_k", cache), info("present_v", cache)],
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=8,
    ).SerializeToString()
    shape = lambda dims: [2 if d == "n" else d for d in dims]
    draw = lambda dims: generator.standard_normal(shape(dims)).astype(np.float32)
    feed = {"q": draw(row), "k": draw(row), "v": draw(row), "past_k": draw(cache), "past_v": draw(cache)}
    origins = np.array([[[1, 0, 1, 0, 0], [0, 0, 1, 0, 0]]], np.int32)
    single = {"past_length": np.array([past], np.int32), "beams": np.array([2], np.int32)}
    y = run(data, **feed, **single, origins=origins)[0]
    for beam in range(2):
        sources = [*origins[0, beam, :past], beam]
        keys, values = (
            np.stack([feed[name][s, :, t] for t, s in enumerate(sources[:-1])], 1) for name in ("past_k", "past_v")
        )
        new = [feed[name][beam].reshape(1, heads, size).transpose(1, 0, 2) for name in ("q", "k", "v")]
        keys, values = np.concatenate([keys, new[1]], 1), np.concatenate([values, new[2]], 1)
        scores = new[0] @ keys.transpose(0, 2, 1) / np.sqrt(size)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        want = (weights / weights.sum(-1, keepdims=True) @ values).transpose(1, 0, 2).reshape(1, -1)
        np.testing.assert_allclose(y[beam], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape, plain", [((2, 3), [[1, 0, 1], [0, 1, 0]]), ((1, 1), None), ((2, 1), None)])
def test_masks_with_negative_numbers_and_masks_of_one_column(shape, plain):
    inputs = ["x", "w", "b", "m"]
    node = helper.make_node("Attention", inputs, ["y"], domain="com.microsoft", num_heads=2)
    values = {"x": [2, 3, 4], "w": [4, 12], "b": [12], "y": [2, 3, 4]}
    graph = helper.make_graph(
        [node],
        "graph",
        [*(info(name, values[name]) for name in "xwb"), info("m", ["r", "c"], TensorProto.INT32)],
        [info("y", values["y"])],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    data = helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString()
    generator = np.random.default_rng(0)
    feed = {name: generator.standard_normal(values[name]).astype(np.float32) for name in "xwb"}
    given = np.array([[1, -1, 2], [0, 5, -7]] if plain else np.full(shape, -3), np.int32)
    same = np.array(plain, np.int32) if plain else np.ones((2, 3), np.int32)
    np.testing.assert_array_equal(run(data, **feed, m=given)[0], run(data, **feed, m=same)[0])


def test_sparse_inputs_are_given_as_dense_tensors():
    sparse = helper.make_sparse_tensor_type_proto(TensorProto.FLOAT, [2, 3])
    node = helper.make_node("SparseToDenseMatMul", ["a", "b"], ["y"], domain="com.microsoft")
    graph = helper.make_graph(
        [node], "graph", [helper.make_value_info("a", sparse), info("b", [3, 1])], [info("y", [2, 1])]
    )
    data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 12)], ir_version=7).SerializeToString()
    a, b = np.array([[0, 2, 0], [3, 0, 0]], np.float32), np.array([[1], [2], [3]], np.float32)
    assert run(data, a=a, b=b)[0].tolist() == [[4], [3]]


def test_a_constant_may_be_sparse_and_an_output_be_read_as_sparse():
    values = helper.make_tensor("", TensorProto.FLOAT, [2], [1.5, -2.0])
    places = helper.make_tensor("", TensorProto.INT64, [2], [2, 3])
    node = helper.make_node("Constant", [], ["y"])
    # ONNX Runtime writes sparse initializers as the attribute `value`.
    attribute = node.attribute.add(name="value", type=AttributeProto.SPARSE_TENSOR)
    attribute.sparse_tensor.CopyFrom(helper.make_sparse_tensor(values, places, [2, 3]))
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])])
    session = rukh.InferenceSession(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    (value,) = session.run_with_ort_values(["y"], {})
    sparse = value.as_sparse_tensor()
    assert (sparse.dense_shape(), sparse.values().tolist()) == ([2, 3], [1.5, -2.0])
    assert sparse.as_coo_view().indices().tolist() == [2, 3]
