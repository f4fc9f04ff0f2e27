"""GroupQueryAttention with caches of 8 and 4 bits: beside ONNX Runtime, and of float8 beside the formula in NumPy."""

import ml_dtypes
import numpy as np
import onnx
import pytest
import rukh
from models import grouped_attention
from onnx import TensorProto, helper

onnxruntime = pytest.importorskip("onnxruntime")

HEADS, KV_HEADS = 4, 2
PROVIDERS = [name for name in rukh.get_available_providers() if name != "CPUExecutionProvider"] or ["cpu"]
KINDS = {"int8": (TensorProto.INT8, np.int8, 8), "uint8": (TensorProto.UINT8, np.uint8, 4)}

KINDS_BY_FORMULA = KINDS | {"float8e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 8)}


def model(element, cache, bits, key_type, value_type, optional=(), **attributes):
    kinds = {"k_quant_type": key_type, "v_quant_type": value_type, "kv_cache_bit_width": bits}
    return grouped_attention(element, {*optional, "k_scale", "v_scale"}, cache, **kinds, **attributes)


def opened(data, provider):
    """A session whose nodes all run on the provider."""
    options = rukh.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return rukh.InferenceSession(data, options, providers=[provider])


def scales(rng, kind, size):
    count = {"PER_TENSOR": 1, "PER_CHANNEL": KV_HEADS * size}[kind]
    return rng.uniform(0.01, 0.03, count).astype(np.float32)


def feed(rng, dtype, size, cache, bits, kinds, steps, lengths, capacity, optional):
    """Inputs of `steps` new tokens, after which sample `b` has `lengths[b]`."""
    batch, f = len(lengths), lambda *shape: rng.standard_normal(shape).astype(dtype)
    packed = "k" not in optional
    columns = (HEADS + (2 * KV_HEADS if packed else 0)) * size
    given = {"q": f(batch, steps, columns)}
    if not packed:
        given |= {name: f(batch, steps, KV_HEADS * size) for name in "kv"}
    shape = (batch, KV_HEADS, capacity, size * bits // 8)
    for name in ("past_k", "past_v"):
        if cache == ml_dtypes.float8_e4m3fn:
            given[name] = (50 * rng.standard_normal(shape)).astype(cache)
        else:
            least, most = np.iinfo(cache).min, np.iinfo(cache).max
            given[name] = rng.integers(least, most, shape, cache, endpoint=True)
    if "cos" in optional:
        given |= {name: f(capacity + 9, size // 2) for name in ("cos", "sin")}
    if "sink" in optional:
        given["sink"] = f(HEADS)
    given |= {"k_scale": scales(rng, kinds[0], size), "v_scale": scales(rng, kinds[1], size)}
    return given | {"last": np.array(lengths, np.int32) - 1, "total": np.array([max(lengths)], np.int32)}


# Optional inputs, attributes, head size, new tokens, lengths, room in the caches.
CASES = [
    (("k", "v"), {}, 16, 1, [6], 8),
    (("k", "v", "cos", "sin"), {"do_rotary": 1}, 64, 1, [700, 300], 1000),
    (("cos", "sin", "sink"), {"do_rotary": 1, "rotary_interleaved": 1, "local_window_size": 5}, 32, 2, [30], 33),
    (("k", "v"), {"softcap": 3.0}, 16, 9, [9, 9], 12),
    (("k", "v", "cos", "sin"), {"do_rotary": 1, "scale": 0.2}, 48, 70, [200], 210),
    (("k", "v"), {}, 24, 5, [5], 5),
]


@pytest.mark.parametrize("cache", KINDS)
@pytest.mark.parametrize("kind", ["PER_TENSOR", "PER_CHANNEL"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_as_in_onnxruntime(cache, kind, case):
    optional, attributes, size, steps, lengths, capacity = CASES[case]
    element, dtype, bits = KINDS[cache]
    kinds = (kind, kind)
    for number, limit in ((np.float32, 2e-4), (np.float16, 5e-3)):
        rng = np.random.default_rng(case)
        data = model(helper.np_dtype_to_tensor_dtype(np.dtype(number)), element, bits, *kinds, optional, **attributes)
        given = feed(rng, number, size, dtype, bits, kinds, steps, lengths, capacity, optional)
        wanted = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, given)
        for provider in PROVIDERS:
            found = opened(data, provider).run(None, given)
            assert [(a.shape, a.dtype) for a in found] == [(b.shape, b.dtype) for b in wanted]
            largest = max(1.0, np.abs(wanted[0].astype(np.float64)).max())
            np.testing.assert_allclose(found[0].astype(np.float64), wanted[0], rtol=0, atol=limit * largest)
            for a, b in zip(found[1:], wanted[1:], strict=True):
                check_caches(a, b, lengths, bits, number)


def check_caches(a, b, lengths, bits, number):
    """Equal bytes; rotations of half-precision numbers may be rounded otherwise, and then be the neighbour."""
    for sample, length in enumerate(lengths):
        for of in (a, b):
            assert of[sample, :, :length].any()
        x, y = a[sample, :, :length], b[sample, :, :length]
        if bits == 4:
            x, y = (np.stack([z & 15, z >> 4]) for z in (x, y))
        apart = np.abs(x.astype(np.int32) - y)
        assert apart.max() <= 1 and (apart != 0).mean() <= (0.02 if number == np.float16 else 1e-4)


def columns_of(scale, size):
    return scale if scale.size == 1 else scale.reshape(KV_HEADS, 1, size)


def quantized(x, scale, cache):
    """What a cache keeps of `[batch, kv_heads, rows, size]`."""
    x = x.astype(np.float32) / columns_of(scale, x.shape[-1])
    if cache == ml_dtypes.float8_e4m3fn:
        return np.clip(x, -448, 448).astype(cache)
    if cache == np.int8:
        return np.clip(np.rint(x), -128, 127).astype(np.int8)
    halves = (np.clip(np.rint(x), -8, 7) + 8).astype(np.uint8)
    return halves[..., ::2] | halves[..., 1::2] << 4


def numbers(kept, scale, cache):
    if cache == np.uint8:
        kept = np.stack([kept & 15, kept >> 4], -1).reshape(*kept.shape[:-1], -1).astype(np.float32) - 8
    kept = kept.astype(np.float32)
    return kept * columns_of(scale, kept.shape[-1])


def by_formula(given, cache, size, lengths):
    """The outputs of a node with causal attention and nothing else: y, and both caches."""
    steps, past = given["q"].shape[1], [given["past_k"].copy(), given["past_v"].copy()]
    scale = [given["k_scale"], given["v_scale"]]
    y = np.zeros(given["q"].shape, np.float32)
    for kept, name, s in zip(past, "kv", scale, strict=True):
        new = given[name].reshape(len(lengths), steps, KV_HEADS, size).transpose(0, 2, 1, 3)
        for b, length in enumerate(lengths):
            kept[b, :, length - steps : length] = quantized(new[b : b + 1], s, cache)[0]
            kept[b, :, length:] = np.zeros(1, cache)
    k, v = (numbers(kept, s, cache) for kept, s in zip(past, scale, strict=True))
    for b, length in enumerate(lengths):
        for row in range(steps):
            seen = length - steps + row + 1
            for head in range(HEADS):
                q = given["q"][b, row, head * size :][:size].astype(np.float32)
                scores = k[b, head // (HEADS // KV_HEADS), :seen] @ q / np.sqrt(size)
                weights = np.exp(scores - scores.max())
                values = v[b, head // (HEADS // KV_HEADS), :seen]
                y[b, row, head * size : (head + 1) * size] = weights / weights.sum() @ values
    return [y, *past]


# Head size, new tokens, lengths, room in the caches.
SHAPES = [(10, 2, [30, 20], 33), (64, 1, [300, 5], 300), (8, 3, [3, 3], 4), (64, 3, [40, 11], 40), (256, 2, [9, 9], 9)]


@pytest.mark.parametrize("cache", KINDS_BY_FORMULA)
@pytest.mark.parametrize("kinds", [("PER_TENSOR", "PER_CHANNEL"), ("PER_CHANNEL", "PER_TENSOR")])
def test_as_the_formula_says(cache, kinds):
    """Also what ONNX Runtime does not take: float8, keys with one scale and values with many, several rows of several
    samples, any size of a head."""
    element, dtype, bits = KINDS_BY_FORMULA[cache]
    for size, steps, lengths, capacity in SHAPES:
        rng = np.random.default_rng(size)
        data = model(TensorProto.FLOAT, element, bits, *kinds, ("k", "v"))
        given = feed(rng, np.float32, size, dtype, bits, kinds, steps, lengths, capacity, ("k", "v"))
        wanted = by_formula(given, dtype, size, lengths)
        for provider in PROVIDERS:
            session = opened(data, provider)
            found = session.run(None, given)
            np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-4 * max(1, np.abs(wanted[0]).max()))
            assert [(y.dtype, y.tobytes()) for y in found[1:]] == [(y.dtype, y.tobytes()) for y in wanted[1:]]
            check_in_place(session, "cpu" if provider == "cpu" else "hip", given, found, lengths)


def check_in_place(session, device, given, found, lengths):
    """Past and present in the same memory: only new rows are written."""
    binding = session.io_binding()
    caches = ("past_k", "past_v")
    values = {
        name: rukh.OrtValue.ortvalue_from_numpy(x.copy(), device if name in caches else "cpu")
        for name, x in given.items()
    }
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_output("y")
    for name in "kv":
        binding.bind_ortvalue_output(f"new_{name}", values[f"past_{name}"])
    for _ in range(2):
        session.run_with_iobinding(binding)
        np.testing.assert_array_equal(binding.get_outputs()[0].numpy(), found[0])
        for name, y in zip(caches, found[1:], strict=True):
            cache = values[name].numpy()
            for b, length in enumerate(lengths):
                assert cache[b, :, :length].tobytes() == y[b, :, :length].tobytes()
                assert cache[b, :, length:].tobytes() == given[name][b, :, length:].tobytes()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("cache", KINDS_BY_FORMULA)
def test_steps_in_place(cache, provider):
    """Runs of one token with the same buffers, as a recorded graph repeats them: the memory alone tells how many keys there
    are."""
    element, dtype, bits = KINDS_BY_FORMULA[cache]
    size, capacity, device = 64, 40, "cpu" if provider == "cpu" else "hip"
    rng, kinds = np.random.default_rng(1), ("PER_CHANNEL", "PER_TENSOR")
    session = opened(model(TensorProto.FLOAT, element, bits, *kinds, ("k", "v")), provider)
    given = feed(rng, np.float32, size, dtype, bits, kinds, 1, [20, 9], capacity, ("k", "v"))
    given["total"] = np.array([capacity], np.int32)
    binding = session.io_binding()
    values = {name: rukh.OrtValue.ortvalue_from_numpy(x.copy(), device) for name, x in given.items()}
    values["total"] = rukh.OrtValue.ortvalue_from_numpy(given["total"])
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    y = rukh.OrtValue.ortvalue_from_numpy(np.zeros_like(given["q"]), device)
    binding.bind_ortvalue_output("y", y)
    for name in "kv":
        binding.bind_ortvalue_output(f"new_{name}", values[f"past_{name}"])
    for step in range(8):
        lengths = [20 + step, 9 + 2 * step]
        given |= {name: rng.standard_normal(given[name].shape).astype(np.float32) for name in "qkv"}
        given["last"] = np.array(lengths, np.int32) - 1
        for name in ("q", "k", "v", "last"):
            values[name].update_inplace(given[name])
        session.run_with_iobinding(binding)
        wanted = by_formula(given, dtype, size, lengths)
        limit = 1e-4 * max(1, np.abs(wanted[0]).max())
        np.testing.assert_allclose(y.numpy(), wanted[0], rtol=0, atol=limit, err_msg=str(step))
        for name, new in zip(("past_k", "past_v"), wanted[1:], strict=True):
            kept = values[name].numpy()
            for b, length in enumerate(lengths):
                assert kept[b, :, length - 1].tobytes() == new[b, :, length - 1].tobytes(), step
                given[name][b, :, length - 1] = new[b, :, length - 1]


@pytest.mark.parametrize("cache", [None, "int8"])
@pytest.mark.parametrize("positions", [[[5]], [[5], [7]]])
def test_prompts_of_one_token_in_place(cache, positions):
    """A prompt, as the model's own total tells, may have one position for all samples, and samples without a token, also
    where past and present are one buffer with room for more: what the CPU gives."""
    size, capacity, lengths = 16, 8, [1, 0]
    optional = ("k", "v", "cos", "sin", "positions")
    element, dtype, bits = KINDS_BY_FORMULA[cache or "int8"]
    kinds = ("PER_TENSOR", "PER_CHANNEL")
    if cache:
        data = model(TensorProto.FLOAT, element, bits, *kinds, optional, do_rotary=1)
    else:
        data = grouped_attention(TensorProto.FLOAT, set(optional), do_rotary=1)
    rng = np.random.default_rng(3)
    given = feed(rng, np.float32, size, dtype, bits, kinds, 1, lengths, capacity, optional)
    given["positions"] = np.array(positions, np.int64)
    data, total = onnx.load_from_string(data), given.pop("total")
    total[:] = 1
    data.graph.initializer.append(onnx.numpy_helper.from_array(total, "total"))
    data.graph.input.remove(next(x for x in data.graph.input if x.name == "total"))
    data = data.SerializeToString()
    if not cache:
        past = rng.standard_normal((2, KV_HEADS, capacity, size)).astype(np.float32)
        given |= {"past_k": past, "past_v": -past}
        del given["k_scale"], given["v_scale"]
    wanted = opened(data, "cpu").run(None, given)
    for provider in PROVIDERS:
        device, session = "cpu" if provider == "cpu" else "hip", opened(data, provider)
        caches = {n: rukh.OrtValue.ortvalue_from_numpy(given[n].copy(), device) for n in ("past_k", "past_v")}
        binding = session.io_binding()
        for name, x in given.items():
            binding.bind_ortvalue_input(name, caches.get(name) or rukh.OrtValue.ortvalue_from_numpy(x))
        binding.bind_output("y")
        for name in "kv":
            binding.bind_ortvalue_output(f"new_{name}", caches[f"past_{name}"])
        session.run_with_iobinding(binding)
        np.testing.assert_allclose(binding.get_outputs()[0].numpy(), wanted[0], rtol=0, atol=1e-5)
        for name, new in zip(("past_k", "past_v"), wanted[1:], strict=True):
            np.testing.assert_allclose(caches[name].numpy()[0, :, 0], new[0, :, 0], rtol=0, atol=1e-6)


def test_what_does_not_fit():
    """Errors name the thing, what was given and what is allowed."""

    def refused(match, *arguments, **change):
        data = model(*arguments)
        kinds = ("PER_TENSOR", "PER_TENSOR")
        given = feed(np.random.default_rng(0), np.float32, 16, np.int8, 8, kinds, 1, [3], 8, ("k", "v")) | change
        with pytest.raises(Exception, match=match):  # noqa: B017 - of any class, with this text
            rukh.InferenceSession(data, providers=["cpu"]).run(None, given)

    both, f32, i8 = ("PER_TENSOR", "PER_TENSOR"), TensorProto.FLOAT, TensorProto.INT8
    refused("kv_cache_bit_width.*5 is not allowed; allowed are 8 and 4", f32, i8, 5, *both, ("k", "v"))
    refused("its type is int8; with 4 bits a number allowed is uint8", f32, i8, 4, *both, ("k", "v"))
    refused("NONE together, or neither", f32, i8, 8, "NONE", "PER_TENSOR", ("k", "v"))
    refused("PER_ROW.*allowed are NONE, PER_TENSOR, PER_CHANNEL", f32, i8, 8, "PER_ROW", "PER_TENSOR", ("k", "v"))
    refused("with a k_quant_type of NONE allowed is that of query", f32, i8, 8, "NONE", "NONE", ("k", "v"))
    two = np.ones(2, np.float32)
    refused("k_scale.* 2; allowed is 1|k_scale has 2 elements; allowed are 1", f32, i8, 8, *both, ("k", "v"), k_scale=two)
