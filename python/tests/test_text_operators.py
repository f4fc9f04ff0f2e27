"""Operators that exporters of language models write: PagedAttention and products with 4-bit floats against their
definitions, SparseAttention beside ONNX Runtime, and all of them on a GPU where there is one; `make test-hip` runs this on
the emulated one."""

from __future__ import annotations

import numpy as np
import pytest
import rukh
from onnx import TensorProto, helper

TYPES = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16, np.int32: TensorProto.INT32}
TYPES[np.uint8] = TensorProto.UINT8
TOLERANCE = {np.float32: 3e-5, np.float16: 6e-3}
HAS_GPU = rukh.get_available_providers() != ["CPUExecutionProvider"]
PROVIDERS = ["cpu", "hip"] if HAS_GPU else ["cpu"]


def single_node(operator, inputs, outputs, dtype, **attributes):
    """A model of one node. `inputs`: arrays by name, None for one that is left out."""
    given = {name: array for name, array in inputs.items() if array is not None}
    names = [name if name in given else "" for name in inputs]
    attributes = {name: value for name, value in attributes.items() if value is not None}
    node = helper.make_node(operator, names, outputs, name="tested", domain="com.microsoft", **attributes)
    described = [(n, TYPES[a.dtype.type], [None] * a.ndim) for n, a in given.items()]
    graph = helper.make_graph(
        [node],
        "graph",
        [helper.make_tensor_value_info(*each) for each in described],
        [helper.make_tensor_value_info(name, TYPES[dtype], None) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return model.SerializeToString(), given


def session(model, provider):
    """A session of which every node runs on the provider."""
    if provider == "cpu":
        return rukh.InferenceSession(model, providers=["CPUExecutionProvider"])
    options = rukh.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return rukh.InferenceSession(model, options, providers=["hip"])


def check(found, wanted, dtype, what):
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    assert found.shape == wanted.shape, what
    np.testing.assert_allclose(found, wanted, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype], err_msg=str(what))


class Paged:
    """A drawn PagedAttention: inputs, attributes, and what comes out by the operator's definition."""

    def __init__(self, seed, dtype=np.float32, packed=None):
        self.random = random = np.random.default_rng(seed)
        pick = lambda *choices: choices[random.integers(len(choices))]  # noqa: E731
        self.dtype = dtype
        self.kv_heads, self.group = int(random.integers(1, 4)), int(random.integers(1, 5))
        self.heads, self.size = self.kv_heads * self.group, pick(8, 16, 24, 64)
        self.rows = pick(16, 16, 32)
        count = int(random.integers(1, 5))
        self.pasts = random.integers(0, 60, count).astype(np.int32)
        self.news = random.integers(0, pick(2, 12), count).astype(np.int32)
        self.news[0] = max(self.news[0], 1)
        self.packed = bool(random.integers(2)) if packed is None else packed
        self.rotary = pick(None, 0, 1)
        self.half = self.size // 2 if random.integers(2) else self.size // 4
        self.causal, self.window = pick(None, 1, 0), pick(-1, -1, 0, 7)
        self.softcap, self.scale = pick(None, 5.0), pick(None, 0.3)
        self.norm, self.sinks, self.slots = (bool(random.integers(4) == 0) for _ in range(3))
        self._draw(count)

    def _draw(self, count):
        random, tokens = self.random, int(self.news.sum())
        number = lambda *shape: random.uniform(-1, 1, shape).astype(self.dtype)  # noqa: E731
        pages = int(max(-(-(p + n) // self.rows) for p, n in zip(self.pasts, self.news))) + 1
        blocks = count * pages + 2
        self.table = random.permutation(blocks)[: count * pages].reshape(count, pages).astype(np.int32)
        self.qkv = number(tokens, (self.heads + 2 * self.kv_heads) * self.size)
        self.caches = [number(blocks, self.rows, self.kv_heads, self.size) for _ in range(2)]
        self.angles = random.uniform(0, 6, (int((self.pasts + self.news).max()), self.half))
        self.sink, self.weights = number(self.heads), [number(self.size) + 1 for _ in range(2)]
        self.sequence = np.repeat(np.arange(count), self.news)
        starts = np.cumsum(self.news) - self.news
        self.position = np.arange(tokens) - starts[self.sequence] + self.pasts[self.sequence]
        self.slot = np.array([self.place(s, p) for s, p in zip(self.sequence, self.position)], np.int32)
        self.written = self.slot.copy()
        if self.slots:
            self.written[random.integers(0, 3, tokens) == 0] = -1

    def place(self, sequence, position):
        return self.table[sequence, position // self.rows] * self.rows + position % self.rows

    def inputs(self):
        q, k, v = np.split(self.qkv, np.cumsum([self.heads, self.kv_heads]) * self.size, axis=1)
        cos, sin = np.cos(self.angles).astype(self.dtype), np.sin(self.angles).astype(self.dtype)
        rotated = self.rotary is not None
        return {
            "query": self.qkv if self.packed else q,
            "key": None if self.packed else k,
            "value": None if self.packed else v,
            "key_cache": self.caches[0],
            "value_cache": self.caches[1],
            "cumulative_sequence_length": np.concatenate([[0], np.cumsum(self.news)]).astype(np.int32),
            "past_seqlens": self.pasts,
            "block_table": self.table,
            "cos_cache": cos if rotated else None,
            "sin_cache": sin if rotated else None,
            "slot_mapping": self.written if self.slots else None,
            "head_sink": self.sink if self.sinks else None,
            "q_norm_weight": self.weights[0] if self.norm else None,
            "k_norm_weight": self.weights[1] if self.norm else None,
        }

    def attributes(self):
        return {
            "num_heads": self.heads,
            "kv_num_heads": self.kv_heads,
            "local_window_size": self.window,
            "is_causal": self.causal,
            "softcap": self.softcap,
            "scale": self.scale,
            "do_rotary": None if self.rotary is None else 1,
            "rotary_interleaved": self.rotary,
        }

    def changed(self, x, weight):
        """Rows of heads [token, head, size], normalised and rotated."""
        x = x.astype(np.float64)
        if self.norm:
            x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * weight.astype(np.float64)
        if self.rotary is None:
            return x
        angles = self.angles[self.position][:, None]
        cos, sin = (f(angles).astype(self.dtype).astype(np.float64) for f in (np.cos, np.sin))
        turned = x[..., : 2 * self.half]
        if self.rotary:
            a, b = turned[..., ::2], turned[..., 1::2]
            pair = np.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(turned.shape)
        else:
            a, b = turned[..., : self.half], turned[..., self.half :]
            pair = np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)
        return np.concatenate([pair, x[..., 2 * self.half :]], -1)

    def defined(self):
        tokens = len(self.qkv)
        parts = self.qkv.reshape(tokens, -1, self.size)
        q = self.changed(parts[:, : self.heads], self.weights[0])
        k = self.changed(parts[:, self.heads : self.heads + self.kv_heads], self.weights[1])
        v = parts[:, self.heads + self.kv_heads :].astype(np.float64)
        caches = [cache.astype(np.float64) for cache in self.caches]
        flat = [cache.reshape(-1, self.kv_heads, self.size) for cache in caches]
        kept = self.written >= 0
        for cache, rows in zip(flat, (k, v)):
            cache[self.written[kept]] = rows[kept]
        scale = self.scale or 1 / np.sqrt(self.size)
        y = np.zeros((tokens, self.heads, self.size))
        for token in range(tokens):
            sequence, position = self.sequence[token], self.position[token]
            seen = np.arange(self.pasts[sequence] + self.news[sequence])
            if self.causal != 0:
                seen = seen[seen <= position]
            if self.window >= 0:
                seen = seen[seen >= position - self.window]
            places = [self.place(sequence, p) for p in seen]
            for head in range(self.heads):
                keys, values = (cache[places, head // self.group] for cache in flat)
                scores = keys @ q[token, head] * scale
                if self.softcap:
                    scores = self.softcap * np.tanh(scores / self.softcap)
                weights = np.exp(scores)
                total = weights.sum() + (np.exp(np.float64(self.sink[head])) if self.sinks else 0)
                y[token, head] = weights @ values / total
        return [y.reshape(tokens, -1), *caches]

    def model(self):
        outputs = ["output", "key_cache_out", "value_cache_out"]
        return single_node("PagedAttention", self.inputs(), outputs, self.dtype, **self.attributes())


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_paged_attention_is_what_it_is_defined_as(provider, dtype):
    for seed in range(40):
        case = Paged(seed, dtype)
        model, given = case.model()
        opened = session(model, provider)
        for name, found, wanted in zip("ykv", opened.run(None, given), case.defined(), strict=True):
            check(found, wanted, dtype, (seed, name, vars(case)))


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


class Sparse:
    """A drawn SparseAttention."""

    def __init__(self, seed, dtype):
        random = np.random.default_rng(seed)
        pick = lambda *choices: choices[random.integers(len(choices))]  # noqa: E731
        number = lambda *shape: random.uniform(-1, 1, shape).astype(dtype)  # noqa: E731
        kv_heads, layouts, block = pick(1, 2), pick(1, 2, 4), pick(16, 32, 64)
        heads, size, batch = kv_heads * layouts * pick(1, 2), pick(16, 32, 64), int(random.integers(1, 4))
        blocks = int(random.integers(2, 7))
        room = blocks * block
        prompt = bool(random.integers(2))
        total = int(random.integers(2, room + 1))
        rows = total if prompt else min(pick(1, 1, 3), total)
        self.lengths = random.integers(1 if prompt else rows, total + 1, batch).astype(np.int32)
        self.lengths[0] = total
        packed, rotary = bool(random.integers(2)), pick(None, 0, 1)
        begins, seen = np.zeros((layouts, blocks + 1), np.int32), []
        for layout in range(layouts):
            listed = [
                [c for c in range(row + 1) if c == row or random.integers(3) == 0] for row in range(blocks)
            ]
            begins[layout, 1:] = np.cumsum([len(columns) for columns in listed])
            seen.append([c for columns in listed for c in columns])
        most = max(len(columns) for columns in seen)
        columns = np.array([line + [-1] * (most - len(line)) for line in seen], np.int32)
        width = (heads + 2 * kv_heads if packed else heads) * size
        new = [None, None] if packed else [number(batch, rows, kv_heads * size) for _ in range(2)]
        past = [number(batch, kv_heads, room, size) for _ in range(2)]
        angles = random.uniform(0, 6, (room, size // 2))
        turns = [f(angles).astype(dtype) if rotary is not None else None for f in (np.cos, np.sin)]
        self.rows, self.prompt, self.dtype = rows, prompt, dtype
        self.inputs = {
            "query": number(batch, rows, width),
            "key": new[0],
            "value": new[1],
            "past_key": past[0],
            "past_value": past[1],
            "block_row_indices": begins,
            "block_col_indices": columns,
            "total_sequence_length": np.array([total], np.int32),
            "key_total_sequence_lengths": self.lengths,
            "cos_cache": turns[0],
            "sin_cache": turns[1],
        }
        self.attributes = {
            "num_heads": heads,
            "kv_num_heads": kv_heads,
            "sparse_block_size": block,
            "scale": pick(None, 0.3),
            "do_rotary": None if rotary is None else 1,
            "rotary_interleaved": rotary,
        }

    def model(self):
        outputs = ["output", "present_key", "present_value"]
        return single_node("SparseAttention", self.inputs, outputs, self.dtype, **self.attributes)

    def alone(self, sample, given):
        """The inputs of one sample. ONNX Runtime's CPU provider reads the probabilities of all but the first from where those
        of samples of equal lengths would be."""
        length, new, by_sample = self.lengths[sample], ("query", "key", "value"), ("past_key", "past_value")
        given = dict(given)
        for name in (*new, *by_sample):
            if name in given:
                rows = length if self.prompt and name in new else None
                given[name] = given[name][sample : sample + 1, :rows]
        for name in ("total_sequence_length", "key_total_sequence_lengths"):
            given[name] = np.array([length], np.int32)
        return given

    def counted(self, outputs, sample, length):
        """What counts of a sample's outputs: not the queries and keys behind a prompt's end."""
        y, keys, values = (output[sample] for output in outputs)
        return [y[: length if self.prompt else None], keys[:, :length], values[:, :length]]


def shared(module, opened, given):
    """A run in which past and present are one buffer, as ONNX Runtime needs it."""
    device = {} if module is rukh else {"device_type": "cpu"}
    values = {name: module.OrtValue.ortvalue_from_numpy(array.copy(), **device) for name, array in given.items()}
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
        model, given = single_node("MatMulBlockQuantizedFp4Weight", inputs, ["Y"], dtype, block_size=int(block))
        codes = np.stack([stored & 15, stored >> 4], -1).reshape(n, k)
        weight = E2M1[codes] * np.repeat(e4m3(scales), block, 1)[:, :k] * float(inputs["weight_scale_2"])
        wanted = inputs["A"].astype(np.float64) @ weight.T
        if inputs["bias"] is not None:
            wanted = wanted + inputs["bias"]
        (found,) = session(model, provider).run(None, given)
        check(found, wanted, dtype, (seed, n, k, block, lead))


def recurrent_cases():
    random = np.random.default_rng(1)
    number = lambda *shape: random.uniform(-0.5, 0.5, shape).astype(np.float32)  # noqa: E731
    gates = {"a": number(2, 5, 4), "dt_bias": number(4), "decay_scale": -number(4) - 0.6, "b": number(2, 5, 4)}
    linear = {
        "query": number(2, 5, 64),
        "key": number(2, 5, 32),
        "value": number(2, 5, 96),
        "past_state": number(2, 4, 16, 24),
        "decay": -np.abs(number(2, 5, 4)),
        "beta": np.abs(number(2, 5, 4)),
    }
    rows = {"input": number(2, 6, 7), "weight": number(6, 1, 4), "bias": number(6), "past_state": number(2, 6, 3)}
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
