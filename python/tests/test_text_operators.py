"""Operators that exporters of language models write: PagedAttention and products with 4-bit floats against their
definitions, SparseAttention beside ONNX Runtime, PagedAttention within a whole model, and single nodes of all of
them on a GPU where there is one; `make test-hip` runs this on the emulated one."""

from __future__ import annotations

import numpy as np
import pytest
import rukh
from onnx import TensorProto, helper, numpy_helper
from text_cases import HAS_GPU, PROVIDERS, Paged, Sparse, check, session, single_node


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_paged_attention_is_what_it_is_defined_as(provider, dtype):
    for seed in range(40):
        case = Paged(seed, dtype)
        model, given = case.model()
        opened = session(model, provider)
        for name, found, wanted in zip("ykv", opened.run(None, given), case.defined(), strict=True):
            check(found, wanted, dtype, (seed, name, vars(case)))


def test_sequences_are_what_grouped_attention_of_onnx_runtime_makes_of_each():
    onnxruntime = pytest.importorskip("onnxruntime", reason="it computes what the results must be")
    compared = 0
    for seed in range(60):
        case = Paged(seed)
        if case.rotary is not None and (case.size % 16 or case.half % 8):
            continue  # ONNX Runtime does not rotate such heads
        case.norm = case.sinks = case.slots = False
        case.causal, case.written = None, case.slot
        model, given = case.model()
        found = session(model, "cpu").run(None, given)[0]
        for sequence in range(len(case.pasts)):
            grouped, inputs = case.alone(sequence)
            if grouped is None:
                continue
            theirs = onnxruntime.InferenceSession(grouped, providers=["CPUExecutionProvider"])
            check(
                found[case.sequence == sequence],
                theirs.run(["y"], inputs)[0][0],
                np.float32,
                (seed, sequence),
            )


@pytest.mark.parametrize("provider", PROVIDERS)
def test_paged_caches_stay_where_they_are(provider):
    """What a server does: caches are bound once, and each step writes its rows into them."""
    case = Paged(3, packed=True)
    case.slots, case.written = False, case.slot
    model, given = case.model()
    opened = session(model, provider)
    device = "cpu" if provider == "cpu" else "hip"
    values = {name: rukh.Value.ortvalue_from_numpy(array.copy(), device) for name, array in given.items()}
    binding = opened.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("output")
    binding.bind_ortvalue_output("key_cache_out", values["key_cache"])
    binding.bind_ortvalue_output("value_cache_out", values["value_cache"])
    wanted = case.defined()
    # The same tokens again write the same rows: nothing else changes.
    for _ in range(3):
        opened.run_with_iobinding(binding)
        check(binding.get_outputs()[0].numpy(), wanted[0], np.float32, "output")
        check(values["key_cache"].numpy(), wanted[1], np.float32, "keys")
        check(values["value_cache"].numpy(), wanted[2], np.float32, "values")


def whole_model(case, weights, chosen):
    """A layer as exporters write it: a projection, PagedAttention, and another projection. Every weight is an
    initializer; the numbers of tokens, sequences and blocks are free. With `chosen` the operator is in a branch of
    an If, whose other branch gives the queries and the caches as they came."""
    given = case.inputs()
    inputs = ["cumulative_sequence_length", "past_seqlens", "block_table"]
    caches, outputs = ["key_cache", "value_cache"], ["attended", "key_cache_out", "value_cache_out"]
    names = ["" if array is None else "qkv" if name == "query" else name for name, array in given.items()]
    attributes = {name: value for name, value in case.attributes().items() if value is not None}
    node = helper.make_node("PagedAttention", names, outputs, domain="com.microsoft", **attributes)
    describe = helper.make_tensor_value_info
    described = lambda name, kind=TensorProto.FLOAT, shape=None: describe(name, kind, shape)
    attended = [described(name) for name in outputs]
    middle = [node]
    if chosen:
        columns = helper.make_node("Slice", ["qkv", "begin", "end", "axis"], ["attended"])
        kept = [helper.make_node("Identity", [name], [name + "_out"]) for name in caches]
        branches = {
            "then_branch": helper.make_graph([node], "then", [], attended),
            "else_branch": helper.make_graph([columns, *kept], "else", [], attended),
        }
        results = ["chosen", *outputs[1:]]
        middle = [helper.make_node("If", ["attends"], results, **branches)]
    before = helper.make_node("MatMul", ["x", "into"], ["qkv"])
    behind = helper.make_node("MatMul", ["chosen" if chosen else "attended", "out_of"], ["y"])
    graph = helper.make_graph(
        [before, *middle, behind],
        "layer",
        [
            described("x", shape=["tokens", 24]),
            *[described(name, shape=["blocks", "rows", case.kv_heads, case.size]) for name in caches],
            *[described(name, TensorProto.INT32, [None] * given[name].ndim) for name in inputs],
            *([described("attends", TensorProto.BOOL, [])] if chosen else []),
        ],
        [described(name) for name in ["y", *outputs[1:]]],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


@pytest.mark.parametrize("chosen", [False, True], ids=["in the graph", "in a branch"])
@pytest.mark.parametrize("seed", range(8))
def test_paged_attention_within_a_whole_model(seed, chosen):
    case = Paged(seed, packed=True)
    case.slots = case.sinks = False
    case.rotary, case.norm = seed % 2, seed % 3 == 0
    random = np.random.default_rng(seed)
    number = lambda *shape: random.uniform(-0.5, 0.5, shape).astype(np.float32)
    angles, norms = random.uniform(0, 6, (200, case.half)), [number(case.size) + 1 for _ in range(2)]
    columns = np.array([case.heads * case.size], np.int64)
    weights = {
        "into": number(24, (case.heads + 2 * case.kv_heads) * case.size),
        "out_of": number(case.heads * case.size, 10),
        "cos_cache": np.cos(angles).astype(np.float32),
        "sin_cache": np.sin(angles).astype(np.float32),
    }
    if case.norm:
        weights["q_norm_weight"], weights["k_norm_weight"] = norms
    if chosen:
        weights |= {"begin": np.array([0], np.int64), "end": columns, "axis": np.array([1], np.int64)}
    opened = rukh.InferenceSession(whole_model(case, weights, chosen))
    for pasts, news in [([0, 0], [9, 4]), ([9, 4], [1, 1]), ([9, 4, 30], [1, 3, 0]), ([0], [17])]:
        case.pasts, case.news = np.array(pasts, np.int32), np.array(news, np.int32)
        case._draw(len(pasts))
        case.angles, case.weights = angles, norms
        x = number(len(case.qkv), 24)
        case.qkv = x @ weights["into"]
        taken = ["key_cache", "value_cache", "cumulative_sequence_length", "past_seqlens", "block_table"]
        feeds = {"x": x, **{name: case.inputs()[name] for name in taken}}
        for attends in [True, False] if chosen else [True]:
            if chosen:
                feeds["attends"] = np.array(attends)
            attended, *caches = case.defined() if attends else [case.qkv[:, : columns[0]], *case.caches]
            wanted = dict(zip(["key_cache_out", "value_cache_out"], caches), y=attended @ weights["out_of"])
            for asked in [["value_cache_out", "y"], ["y"], ["key_cache_out"]]:
                found = opened.run(asked, feeds)
                for name, got in zip(asked, found, strict=True):
                    check(got, wanted[name], np.float32, (seed, pasts, news, attends, name))


def wrong_cases():
    table = np.array([[0, 99]], np.int32)
    return {
        "block_table": (table, "block_table has 99; allowed is 0 to"),
        "past_seqlens": (np.array([-1], np.int32), "past_seqlens has -1; allowed is 0 to"),
        "cumulative_sequence_length": (np.array([0, 77], np.int32), "cumulative_sequence_length has 77"),
    }


@pytest.mark.parametrize("name", wrong_cases())
def test_wrong_numbers_are_named(name):
    case = Paged(5)
    case.pasts, case.news = np.array([20], np.int32), np.array([3], np.int32)
    case.slots, case.rotary, case.rows = False, None, 16
    case._draw(1)
    model, given = case.model()
    given[name], message = wrong_cases()[name]
    with pytest.raises(rukh.RukhError, match=message) as error:
        session(model, "cpu").run(None, given)
    assert "tested" in str(error.value) and "PagedAttention" in str(error.value)
    if HAS_GPU:
        with pytest.raises(rukh.RukhError, match="out of range"):
            session(model, "hip").run(None, given)


def shared(module, opened, given):
    """A run in which past and present are one buffer, as ONNX Runtime needs it."""
    device = {} if module is rukh else {"device_type": "cpu"}
    values = {
        name: module.OrtValue.ortvalue_from_numpy(array.copy(), **device) for name, array in given.items()
    }
    binding = opened.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("output")
    binding.bind_ortvalue_output("present_key", values["past_key"])
    binding.bind_ortvalue_output("present_value", values["past_value"])
    opened.run_with_iobinding(binding)
    return [value.numpy().copy() for value in binding.get_outputs()]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_sparse_attention_is_that_of_onnx_runtime(provider, dtype):
    onnxruntime = pytest.importorskip("onnxruntime", reason="it computes what the results must be")
    for seed in range(40):
        case = Sparse(seed, dtype)
        model, given = case.model()
        theirs = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
        ours = session(model, provider)
        found = [ours.run(None, given)]
        if provider == "cpu":
            found.append(shared(rukh, ours, given))
        for sample, length in enumerate(case.lengths):
            wanted = case.counted(shared(onnxruntime, theirs, case.alone(sample, given)), 0, length)
            for outputs in found:
                for got, want in zip(case.counted(outputs, sample, length), wanted, strict=True):
                    check(got, want, dtype, (seed, sample, case.attributes, case.lengths, case.rows))


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def e4m3(code):
    sign, exponent, fraction = 1 - 2.0 * (code >> 7), (code >> 3 & 15).astype(int), (code & 7) / 8
    return sign * np.where(exponent == 0, fraction * 2.0**-6, (1 + fraction) * 2.0 ** (exponent - 7))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_products_with_4_bit_floats(provider, dtype):
    for seed in range(30):
        random = np.random.default_rng(seed)
        n, k, block = int(random.integers(1, 70)), 2 * int(random.integers(1, 150)), 16 << random.integers(3)
        lead = [[], [1], [3], [2, 2], [17], [0]][random.integers(6)]
        blocks = -(-k // block)
        scales = random.integers(0x20, 0x40, (n, blocks)).astype(np.uint8)
        stored = random.integers(0, 256, (n, k // 2)).astype(np.uint8)
        inputs = {
            "A": random.uniform(-1, 1, [*lead, k]).astype(dtype),
            "B": stored,
            "weight_scale": scales,
            "weight_scale_2": np.array(random.uniform(0.01, 0.05), np.float32),
            "input_scale": np.array(3, np.float32) if random.integers(2) else None,
            "bias": random.uniform(-1, 1, n).astype(dtype) if random.integers(2) else None,
        }
        model, given = single_node(
            "MatMulBlockQuantizedFp4Weight", inputs, ["Y"], dtype, block_size=int(block)
        )
        codes = np.stack([stored & 15, stored >> 4], -1).reshape(n, k)
        weight = E2M1[codes] * np.repeat(e4m3(scales), block, 1)[:, :k] * float(inputs["weight_scale_2"])
        wanted = inputs["A"].astype(np.float64) @ weight.T
        if inputs["bias"] is not None:
            wanted = wanted + inputs["bias"]
        (found,) = session(model, provider).run(None, given)
        check(found, wanted, dtype, (seed, n, k, block, lead))


def recurrent_cases():
    random = np.random.default_rng(1)
    number = lambda *shape: random.uniform(-0.5, 0.5, shape).astype(np.float32)
    gates = {
        "a": number(2, 5, 4),
        "dt_bias": number(4),
        "decay_scale": -number(4) - 0.6,
        "b": number(2, 5, 4),
    }
    linear = {
        "query": number(2, 5, 64),
        "key": number(2, 5, 32),
        "value": number(2, 5, 96),
        "past_state": number(2, 4, 16, 24),
        "decay": -np.abs(number(2, 5, 4)),
        "beta": np.abs(number(2, 5, 4)),
    }
    rows = {
        "input": number(2, 6, 7),
        "weight": number(6, 1, 4),
        "bias": number(6),
        "past_state": number(2, 6, 3),
    }
    return [
        ("LinearAttentionGate", gates, ["decay", "beta"], {}),
        ("LinearAttention", linear, ["output", "present_state"], {"q_num_heads": 4, "kv_num_heads": 4}),
        ("CausalConvWithState", rows, ["output", "present_state"], {"activation": "silu"}),
    ]


@pytest.mark.skipif(not HAS_GPU, reason="no GPU here; `make test-hip` runs this on the emulated one")
@pytest.mark.parametrize("case", recurrent_cases(), ids=lambda case: case[0])
def test_recurrent_operators_on_a_gpu_give_what_they_give_on_the_cpu(case):
    operator, inputs, outputs, attributes = case
    for dtype in (np.float32, np.float16):
        kept = ("dt_bias", "decay_scale")
        typed = {name: array if name in kept else array.astype(dtype) for name, array in inputs.items()}
        model, given = single_node(operator, typed, outputs, dtype, **attributes)
        on_cpu = session(model, "cpu").run(None, given)
        for found, wanted in zip(session(model, "hip").run(None, given), on_cpu, strict=True):
            check(found, wanted, dtype, operator)
