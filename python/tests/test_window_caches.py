"""GroupQueryAttention whose caches keep the last keys alone (`sliding_window_cache`), beside ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest
import rukh
from models import grouped_attention
from onnx import TensorProto, helper

onnxruntime = pytest.importorskip("onnxruntime")

KV_HEADS, SIZE = 2, 16
PROVIDERS = [name for name in rukh.get_available_providers() if name != "CPUExecutionProvider"] or ["cpu"]


KINDS = {
    "int8": (TensorProto.INT8, np.int8, 8),
    "uint8": (TensorProto.UINT8, np.uint8, 4),
    "float8e4m3fn": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn, 8),
}


def model(window, rotary, element=TensorProto.FLOAT, outputs=3, cache=None, names=("k", "v"), **attributes):
    given = {*names, "cos", "sin"} if rotary else {*names}
    kinds = {"local_window_size": window, "sliding_window_cache": 1, "do_rotary": int(rotary)}
    return grouped_attention(element, given, cache, outputs, **kinds, **attributes)


def opened(data, provider="cpu"):
    """A session whose nodes all run on the provider."""
    options = rukh.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    return rukh.InferenceSession(data, options, providers=[provider])


def rows_after(keys, window, capacity):
    return keys if keys <= capacity else window + (keys - capacity - 1) % (capacity - window + 1)


def inputs_of(rng, batch, steps, dtype, rotary):
    given = {name: rng.standard_normal((batch, steps, n * SIZE)).astype(dtype) for name, n in zip("qkv", (4, 2, 2), strict=True)}
    if rotary:
        angles = np.outer(np.arange(200), 10.0 ** -np.linspace(0, 3, SIZE // 2))
        given |= {"cos": np.cos(angles).astype(dtype), "sin": np.sin(angles).astype(dtype)}
    return given


# Window, room, samples, and the tokens of each run.
CASES = [
    (3, 4, 1, [2, 1, 1, 1, 1, 1, 1]),
    (4, 4, 1, [9, 1, 1, 3, 1, 7, 1]),
    (5, 12, 1, [1, 30, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    (8, 9, 2, [12, 1, 1, 1, 1]),
    (1, 3, 3, [1, 1, 1, 1, 1]),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("rotary", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_as_in_onnxruntime(case, rotary, provider):
    window, capacity, batch, steps = CASES[case]
    for dtype, limit in ((np.float32, 1e-5), (np.float16, 4e-3)):
        rng = np.random.default_rng(case)
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        data = model(window, rotary, element)
        ours, alone = opened(data, provider), opened(model(window, rotary, element, 1), provider)
        theirs = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        shape = (batch, KV_HEADS, capacity, SIZE)
        past = [np.zeros(shape, dtype), np.zeros(shape, dtype)]
        device = "cpu" if provider == "cpu" else "hip"
        in_place = [rukh.OrtValue.ortvalue_from_numpy(np.full(shape, 7, dtype), device) for _ in past]
        keys = 0
        for count in steps:
            keys += count
            given = inputs_of(rng, batch, count, dtype, rotary)
            given |= {"last": np.full(batch, keys - 1, np.int32), "total": np.array([keys], np.int32)}
            feed = given | {"past_k": past[0], "past_v": past[1]}
            wanted, found = theirs.run(None, feed), ours.run(None, feed)
            told = f"{count} of {keys} keys"
            np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=limit, err_msg=told)
            np.testing.assert_array_equal(alone.run(None, feed)[0], found[0], err_msg=told)
            y = run_in_place(ours, given, in_place)
            np.testing.assert_allclose(y, found[0], rtol=0, atol=limit, err_msg=told)
            rows = rows_after(keys, window, capacity)
            for a, b, c in zip(found[1:], wanted[1:], in_place, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a[:, :, :rows], b[:, :, :rows], rtol=0, atol=limit, err_msg=told)
                assert not a[:, :, rows:].any()
                np.testing.assert_allclose(c.numpy()[:, :, :rows], a[:, :, :rows], rtol=0, atol=limit, err_msg=told)
            past = wanted[1:]


def run_in_place(session, given, caches):
    """Past and present in the same memory."""
    binding = session.io_binding()
    for name, x in given.items():
        binding.bind_cpu_input(name, x)
    binding.bind_output("y")
    for name, cache in zip("kv", caches, strict=True):
        binding.bind_ortvalue_input(f"past_{name}", cache)
        binding.bind_ortvalue_output(f"new_{name}", cache)
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].numpy()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_samples_of_different_lengths(provider):
    """Single rows of samples whose caches are filled differently, beside each sample by itself."""
    window, capacity, lengths = 3, 5, [2, 5, 6, 19]
    rng = np.random.default_rng(1)
    session = opened(model(window, True), provider)
    batch = len(lengths)
    feed = inputs_of(rng, batch, 1, np.float32, True)
    feed |= {f"past_{name}": rng.standard_normal((batch, KV_HEADS, capacity, SIZE)).astype(np.float32) for name in "kv"}
    feed |= {"last": np.array(lengths, np.int32) - 1, "total": np.array([max(lengths)], np.int32)}
    together = session.run(None, feed)
    for b, length in enumerate(lengths):
        own = {name: x if name in ("cos", "sin") else x[b : b + 1] for name, x in feed.items() if name != "total"}
        alone = session.run(None, own | {"total": np.array([length], np.int32)})
        for x, y in zip(together, alone, strict=True):
            np.testing.assert_array_equal(x[b : b + 1], y)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("cache", KINDS)
def test_quantized(cache, provider):
    """Beside caches that have room for all keys, of which the last ones must be the same."""
    element, dtype, bits = KINDS[cache]
    kinds = {"kv_cache_bit_width": bits, "k_quant_type": "PER_CHANNEL", "v_quant_type": "PER_TENSOR"}
    names = {"k", "v", "k_scale", "v_scale"}
    for window, capacity, batch, steps in CASES:
        rng = np.random.default_rng(window)
        total = sum(steps)
        plain = grouped_attention(TensorProto.FLOAT, names, element, local_window_size=window, **kinds)
        last_ones = model(window, False, cache=element, names=names, **kinds)
        session, whole = opened(last_ones, provider), opened(plain, provider)
        fixed = {"k_scale": rng.uniform(0.01, 0.03, KV_HEADS * SIZE), "v_scale": np.full(1, 0.02)}
        fixed = {name: x.astype(np.float32) for name, x in fixed.items()}
        columns = SIZE * bits // 8
        past, full = ([np.zeros((batch, KV_HEADS, rows, columns), dtype)] * 2 for rows in (capacity, total))
        keys = 0
        for count in steps:
            keys += count
            given = fixed | inputs_of(rng, batch, count, np.float32, False)
            given |= {"last": np.full(batch, keys - 1, np.int32), "total": np.array([keys], np.int32)}
            wanted = whole.run(None, given | {"past_k": full[0], "past_v": full[1]})
            found = session.run(None, given | {"past_k": past[0], "past_v": past[1]})
            told = f"{count} of {keys} keys, {window} of {capacity}"
            np.testing.assert_allclose(found[0], wanted[0], rtol=0, atol=1e-5, err_msg=told)
            rows = rows_after(keys, window, capacity)
            for a, b in zip(found[1:], wanted[1:], strict=True):
                assert a[:, :, :rows].tobytes() == b[:, :, keys - rows : keys].tobytes(), told
                assert not a[:, :, rows:].astype(np.float32).any(), told
            past, full = found[1:], wanted[1:]


def test_what_does_not_fit():
    feed = inputs_of(np.random.default_rng(0), 1, 1, np.float32, False)
    feed |= {f"past_{name}": np.zeros((1, KV_HEADS, 3, SIZE), np.float32) for name in "kv"}
    feed |= {"last": np.array([0], np.int32), "total": np.array([1], np.int32)}
    with pytest.raises(Exception, match="there is room for 3 keys; allowed are 4 and more"):  # noqa: B017
        opened(model(4, False)).run(None, feed)
    with pytest.raises(Exception, match="sliding_window_cache.*it needs a local_window_size"):  # noqa: B017
        opened(model(-1, False))
    with pytest.raises(Exception, match="with qk_output is not supported"):  # noqa: B017
        opened(model(3, False, qk_output=1))
