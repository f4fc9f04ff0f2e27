"""Drawn nodes of operators that exporters of language models write, with what comes out by their definitions."""

from __future__ import annotations

import numpy as np
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
        pick = lambda *choices: choices[random.integers(len(choices))]
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
        number = lambda *shape: random.uniform(-1, 1, shape).astype(self.dtype)
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

    def alone(self, sequence):
        """GroupQueryAttention of one sequence over a dense past; None where it has no new token."""
        past, rows = int(self.pasts[sequence]), self.sequence == sequence
        if not rows.any():
            return None, None
        places = [self.place(sequence, position) for position in range(past)]
        flat = [cache.reshape(-1, self.kv_heads, self.size)[places] for cache in self.caches]
        inputs = {
            "qkv": self.qkv[rows][None],
            "key": None,
            "value": None,
            "past_key": flat[0].swapaxes(0, 1)[None],
            "past_value": flat[1].swapaxes(0, 1)[None],
            "seqlens_k": np.array([past + rows.sum() - 1], np.int32),
            "total_sequence_length": np.array([past + rows.sum()], np.int32),
            "cos_cache": self.inputs()["cos_cache"],
            "sin_cache": self.inputs()["sin_cache"],
        }
        attributes = self.attributes()
        del attributes["is_causal"]
        # There the window counts the query's own key too.
        attributes["local_window_size"] = -1 if self.window < 0 else self.window + 1
        return single_node("GroupQueryAttention", inputs, ["y", "k", "v"], self.dtype, **attributes)

    def model(self):
        outputs = ["output", "key_cache_out", "value_cache_out"]
        return single_node("PagedAttention", self.inputs(), outputs, self.dtype, **self.attributes())


class Sparse:
    """A drawn SparseAttention."""

    def __init__(self, seed, dtype):
        random = np.random.default_rng(seed)
        pick = lambda *choices: choices[random.integers(len(choices))]
        number = lambda *shape: random.uniform(-1, 1, shape).astype(dtype)
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
