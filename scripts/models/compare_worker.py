"""The process behind compare_folder.py: one model after another, told on stdin, judged on stdout.

A line in is {"path": …, "name": …}; lines out are {"stage": …} before each runtime's turn and
{"verdict": …, "reason": …} at the end. compare_worker.py SEED
"""

import ctypes
import json
import os
import re
import sys
import zlib

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import rukh

# Operators whose outputs are random numbers: types and shapes are compared.
RANDOM = {
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "BiasDropout",
    "BitmaskDropout",
    "Sampling",
}
# Sizes for dimensions that the model leaves open, one tried after another.
SIZES = (2, 1, 4, 3, 8, 16, 32, 224)
# How the numbers of inputs are chosen, one tried after another.
KINDS = ("named", "small", "zeros", "ones", "sizes")

DTYPES = {
    "float": np.float32,
    "double": np.float64,
    "float16": np.float16,
    "bool": np.bool_,
    "string": np.object_,
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
# Types that ONNX Runtime takes as the bits of another type, with the type's number.
AS_BITS = {
    "bfloat16": (ml_dtypes.bfloat16, np.uint16, onnx.TensorProto.BFLOAT16),
    "float8e4m3fn": (ml_dtypes.float8_e4m3fn, np.uint8, onnx.TensorProto.FLOAT8E4M3FN),
    "float8e4m3fnuz": (ml_dtypes.float8_e4m3fnuz, np.uint8, onnx.TensorProto.FLOAT8E4M3FNUZ),
    "float8e5m2": (ml_dtypes.float8_e5m2, np.uint8, onnx.TensorProto.FLOAT8E5M2),
    "float8e5m2fnuz": (ml_dtypes.float8_e5m2fnuz, np.uint8, onnx.TensorProto.FLOAT8E5M2FNUZ),
}


def main():
    seed = int(sys.argv[1])
    # Whatever a library prints goes elsewhere.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    onnxruntime.set_default_logger_severity(4)

    def tell(**message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    for line in sys.stdin:
        task = json.loads(line)
        verdict, reason = judge(task["path"], task["name"], seed, lambda stage: tell(stage=stage))
        tell(verdict=verdict, reason=reason)


def judge(path, name, seed, stage):
    stage("ONNX Runtime")
    try:
        reference, ort_error = onnxruntime_session(path), None
    except Exception as error:
        reference, ort_error = None, str(error)
    feed = expected = None
    if reference is not None:
        try:
            feed, expected = first_that_runs(reference, name, seed)
        except Exception as error:
            ort_error = str(error)
    stage("rukh")
    try:
        options = rukh.SessionOptions()
        options.intra_op_num_threads = 1
        session = rukh.InferenceSession(path, options)
        outputs = session.run(None, feed) if expected is not None else None
    except Exception as error:
        if ort_error:
            return "both refuse", f"{plain(ort_error)} | rukh: {plain(error)}"
        return "rukh fails", plain(error) + refusal_without_optimizations(path, feed)
    if ort_error:
        return "ORT fails", plain(ort_error)
    if reason := other_interface(session, reference):
        return "differs", reason
    model = onnx.load(path, load_external_data=False)
    names = [output.name for output in reference.get_outputs()]
    reason = outputs_apart(names, outputs, expected, tolerances(model), is_random(model))
    if reason is None:
        return "same", ""
    # What an optimization makes of the model is one thing, the model itself another.
    try:
        plain_session = onnxruntime_session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        expected = run_onnxruntime(plain_session, feed)
    except Exception as error:
        return "differs", f"{reason} (ONNX Runtime refuses it without optimizations: {plain(error)})"
    if outputs_apart(names, outputs, expected, tolerances(model), is_random(model)) is None:
        return "same", f"as ONNX Runtime without its optimizations; with them: {reason}"
    return "differs", reason


def outputs_apart(names, outputs, expected, tolerance, random):
    for output, got, want in zip(names, outputs, expected, strict=True):
        if reason := difference(got, want, tolerance, random):
            return f'output "{output}": {reason}'
    return None


def refusal_without_optimizations(path, feed):
    """A note where ONNX Runtime runs the model only because an optimization takes out what is wrong with it."""
    try:
        session = onnxruntime_session(path, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
        run_onnxruntime(session, feed)
    except Exception as error:
        return f" (and ONNX Runtime without optimizations: {plain(error)})"
    return ""


def plain(error):
    return " ".join(str(error).split())[:400]


def onnxruntime_session(path, level=onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    except Exception:
        # What an optimization of its own breaks still is a model that it runs.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def first_that_runs(session, name, seed):
    """The first inputs that ONNX Runtime takes, and what it gives for them."""
    inputs, first_error = session.get_inputs(), None
    open_sizes = any(not isinstance(size, int) for i in inputs for size in i.shape)
    for size in SIZES if open_sizes else SIZES[:1]:
        for kind in KINDS if inputs else KINDS[:1]:
            generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
            try:
                feed = {i.name: value(i.name, i.type, i.shape, size, kind, generator) for i in inputs}
                return feed, run_onnxruntime(session, feed)
            except Exception as error:
                first_error = first_error or error
    raise first_error or ValueError("the model has no inputs and does not run")


def value(name, type_text, shape, size, kind, generator):
    match = re.fullmatch(r"(\w+)\((.*)\)", type_text)
    outer, inner = match[1], match[2]
    if outer == "seq":
        return [value(name, inner, [size] * 2, size, kind, generator) for _ in range(2)]
    if outer == "optional":
        return value(name, inner, shape or [size], size, kind, generator)
    if outer == "map":
        key, inner = inner.split(",", 1)
        keys = (str(i) if key == "string" else i for i in range(size))
        return {k: value(name, inner, [], size, kind, generator).item() for k in keys}
    if outer == "sparse_tensor":
        dense = value(name, f"tensor({inner})", shape, size, kind, generator)
        return np.where(generator.random(dense.shape) < 0.5, dense, 0).astype(dense.dtype)
    if outer != "tensor":
        raise TypeError(f'input "{name}" is {type_text}, for which there are no values')
    shape = [n if isinstance(n, int) and n >= 0 else size for n in shape]
    if inner in AS_BITS:
        return floats(kind, shape, generator).astype(AS_BITS[inner][0])
    dtype = np.dtype(DTYPES[inner])
    if dtype == np.object_:
        words = np.array(["a", "b c", "1", "2.5", ""], dtype=object)
        return words[generator.integers(0, 4, shape)]
    if dtype == np.bool_:
        return {"zeros": np.zeros, "ones": np.ones}.get(
            kind, lambda shape, _: generator.integers(0, 2, shape).astype(bool)
        )(shape, dtype)
    if dtype.kind == "f":
        return floats(kind, shape, generator).astype(dtype)
    return integers(name.lower(), kind, shape, size, dtype, generator)


def floats(kind, shape, generator):
    if kind in ("zeros", "ones"):
        return np.full(shape, kind == "ones", np.float64)
    numbers = generator.standard_normal(shape)
    return np.abs(numbers) % 1 if kind == "small" else numbers


def integers(name, kind, shape, size, dtype, generator):
    if kind in ("zeros", "ones"):
        return np.full(shape, kind == "ones", dtype)
    if kind == "sizes":
        return np.full(shape, size, dtype)
    if kind == "named":
        if "mask" in name:
            # The first of each row stay: real masks hide what is at an end.
            mask = np.ones(shape, dtype)
            if mask.ndim and mask.shape[-1] > 2:
                mask[..., -1] = 0
            return mask
        if re.search(r"max_len", name):
            return np.full(shape, 12, dtype)
        if re.search(r"min_len|num_beams|num_return", name):
            return np.full(shape, 2 if "beams" in name else 1, dtype)
        if re.search(r"len|seqlens|count|iter|trip|steps?$|^k$|^m$", name):
            return np.full(shape, min(size, 4), dtype)
        if re.search(r"position", name):
            return np.broadcast_to(np.arange(shape[-1] if shape else 1, dtype=dtype), shape).copy()
        if dtype.itemsize == 1 or dtype.kind == "u":
            info = np.iinfo(dtype)
            return generator.integers(info.min // 2, info.max // 2, shape).astype(dtype)
        if re.search(r"ids?$|token|index|indices|label|axis|axes", name):
            return generator.integers(0, 2, shape).astype(dtype)
        return generator.integers(0, 6, shape).astype(dtype)
    return generator.integers(0, 2, shape).astype(dtype)


def run_onnxruntime(session, feed):
    types = {i.name: i.type for i in session.get_inputs()}
    bits = {name: AS_BITS.get(types[name][7:-1]) for name in feed}
    names = [output.name for output in session.get_outputs()]
    low = [AS_BITS.get(output.type[7:-1]) for output in session.get_outputs()]
    if not any(bits.values()) and not any(low):
        given = {name: sparse(array) if "sparse" in types[name] else array for name, array in feed.items()}
        return [dense(result) for result in session.run(names, given)]
    values = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(bits[name][1]), bits[name][2])
        if bits[name]
        else onnxruntime.OrtValue.ortvalue_from_numpy(array)
        for name, array in feed.items()
    }
    results = session.run_with_ort_values(names, values)
    return [
        copy_of(result, kind) if kind else result.numpy() for result, kind in zip(results, low, strict=True)
    ]


def sparse(array):
    """A tensor as ONNX Runtime takes it for a sparse input; rukh takes the tensor."""
    places = np.ascontiguousarray(np.argwhere(array), np.int64)
    device = onnxruntime.OrtDevice.make("cpu", 0)
    values = array[tuple(places.T)]
    shape = np.array(array.shape, np.int64)
    made = onnxruntime.SparseTensor.sparse_coo_from_numpy(shape, values, places, device)
    return onnxruntime.OrtValue.ort_value_from_sparse_tensor(made)


def dense(result):
    """A sparse output as the tensor that it stands for."""
    if type(result).__name__ != "SparseTensor":
        return result
    array = np.zeros(result.dense_shape(), result.values().dtype)
    places = result.get_coo_data().indices()
    array[tuple(places.T) if places.ndim == 2 else np.unravel_index(places, array.shape)] = result.values()
    return array


def copy_of(value, kind):
    """An output of a type that NumPy has not."""
    dtype, size = np.dtype(kind[0]), int(np.prod(value.shape()))
    memory = (ctypes.c_char * (size * dtype.itemsize)).from_address(value.data_ptr())
    return np.frombuffer(memory, dtype).reshape(value.shape()).copy()


def other_interface(session, reference):
    """How the inputs and outputs of two sessions differ in name or type."""
    for side in ("inputs", "outputs"):
        ours, theirs = (
            [(argument.name, argument.type.replace("sparse_", "")) for argument in getattr(s, f"get_{side}")()]
            for s in (session, reference)
        )
        if sorted(ours) != sorted(theirs) if side == "inputs" else ours != theirs:
            return f"the {side} are {ours}, and ONNX Runtime's {theirs}"
    return None


def nodes_of(model):
    graphs = [model.graph.node, *(function.node for function in model.functions)]
    while graphs:
        for node in graphs.pop():
            yield node
            for attribute in node.attribute:
                graphs += [g.node for g in (attribute.g, *attribute.graphs) if g.node]


def is_random(model):
    """Whether outputs are random numbers: types and shapes are compared."""
    return any(
        node.op_type in RANDOM or (node.op_type == "Dropout" and len(node.input) > 2) for node in nodes_of(model)
    )


def tolerances(model):
    """How far from ONNX Runtime's values ours may lie: (part of the largest number, whole steps of integers).

    What goes through integers may round the other way, and what comes after it is one step off. A model that
    computes in half floats anywhere has their precision."""
    operators = {node.op_type for node in nodes_of(model)}
    if any(re.search(r"Quant|QLinear|QAttention|QGemm|Integer|NBits|Bnb4|QMoE", o) for o in operators):
        return 2e-2, 1
    half = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
    types = {initializer.data_type for initializer in model.graph.initializer}
    types |= {value.type.tensor_type.elem_type for value in (*model.graph.input, *model.graph.output)}
    types |= {a.i for node in nodes_of(model) if node.op_type == "Cast" for a in node.attribute if a.name == "to"}
    return (4e-3 if types & half else 1e-4), 0


def difference(got, want, tolerance, random):
    if want is None or got is None:
        return None if want is got else f"is {got!r}, and ONNX Runtime's {want!r}"
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return f"is {type(got).__name__} of {len(got)}, and ONNX Runtime's a list of {len(want)}"
        return next(filter(None, (difference(g, w, tolerance, random) for g, w in zip(got, want))), None)
    if isinstance(want, dict):
        if not isinstance(got, dict) or list(got) != list(want):
            return f"has the keys {list(got)[:5]}, and ONNX Runtime's {list(want)[:5]}"
        # Numbers of Python here, of NumPy there.
        values = (np.array(list(d.values()), np.float64) for d in (got, want))
        return difference(*values, tolerance, random)
    got, want = np.asarray(got), np.asarray(want)
    text = "OSU"
    if got.dtype != want.dtype and not (got.dtype.kind in text and want.dtype.kind in text):
        return f"is {got.dtype}, and ONNX Runtime's {want.dtype}"
    if got.shape != want.shape:
        return f"has shape {list(got.shape)}, and ONNX Runtime's {list(want.shape)}"
    if random or want.size == 0:
        return None
    if want.dtype.kind in "iub":
        apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
        if apart.max() > (tolerance[1] if want.dtype.itemsize == 1 and want.dtype.kind != "b" else 0):
            at = np.unravel_index(apart.argmax(), apart.shape)
            return f"{np.count_nonzero(apart)} of {want.size} differ; at {list(map(int, at))} {got[at]} and {want[at]}"
        return None
    if want.dtype.kind in text:
        return None if (got == want).all() else f"{got.tolist()[:3]} and {want.tolist()[:3]}"
    return numbers_apart(got, want, tolerance[0])


def numbers_apart(got, want, limit):
    # A narrow type's own step, four times.
    narrow = {2: {"float16": 4e-3, "bfloat16": 3.2e-2}.get(want.dtype.name, 0.0), 1: 0.25}
    limit = max(limit, narrow.get(want.dtype.itemsize, 0.0))
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    got, want = got.astype(wide), want.astype(wide)
    if (np.isnan(got) != np.isnan(want)).any():
        return f"NaN at {np.isnan(got).sum()} places, and ONNX Runtime's at {np.isnan(want).sum()}, of {want.size}"
    unequal = ~((got == want) | np.isnan(want))
    if not (np.isfinite(got) | ~unequal).all() or not (np.isfinite(want) | ~unequal).all():
        return "infinite at other places"
    finite = np.abs(want[np.isfinite(want)])
    if unequal.any() and (apart := np.abs(got - want)[unequal]).max() > limit * max(finite.max(initial=0), 1e-3):
        return f"{apart.max():.3g} apart at a largest of {finite.max():.3g}; {unequal.sum()} of {want.size} differ"
    return None


if __name__ == "__main__":
    main()
