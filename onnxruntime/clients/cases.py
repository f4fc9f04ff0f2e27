"""Writes the cases that the clients run: models with inputs, and the outputs that are expected.

    python cases.py small FOLDER DIGITS
    python cases.py exported FOLDER MODELS

`small` writes two folders of cases: plain, with the digits model DIGITS of the examples and small models made here, and
extensions, with operators of onnxruntime-extensions. Expected is what ONNX Runtime gives. `exported` writes cases of
models in the folder MODELS that `make models` writes: there, expected is what PyTorch gave.

A case is a folder with model.onnx and tensors.txt, whose lines have fields with a blank between them:

    strict                                      where a GPU is asked for, all of the model must run on it
    input NAME TYPE 0 FILE DIMENSION...
    output NAME TYPE TOLERANCE FILE DIMENSION...

TYPE is float32, int64 or string. FILE in the case's folder has the elements in row-major order, little-endian; a string ends
with a NUL. TOLERANCE is the largest difference of an element that is allowed, 0 for what is not a float.
"""

import pathlib
import re
import shutil
import sys
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

CONTRIB = "ai.onnx.contrib"
OPSET = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
RANDOM = np.random.default_rng(7)
# Of the exported models one for text, whose samples have batches of two sizes, a recurrent one and one for pictures. Their
# runs on an emulated GPU take seconds.
EXPORTED = ("all_minilm_l6_v2", "lstm_classifier", "mobilenet_v3_large")


def weight(name: str, *shape: int) -> onnx.TensorProto:
    values = RANDOM.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    return numpy_helper.from_array(values.astype(np.float32), name)


def numbers(name: str, values: list[int]) -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model(nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: list[Any]) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=OPSET, producer_name="rukh", ir_version=8)
    onnx.checker.check_model(made)
    return made


def value(name: str, ty: int, shape: list[Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ty, shape)


def convolutions() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A small network for images: convolutions, pooling, a classifier."""
    node = helper.make_node
    made = model(
        [
            node("Conv", ["image", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
            node("Relu", ["c1"], ["r1"]),
            node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p1", "w2"], ["c2"], group=4, pads=[1, 1, 1, 1]),
            node("HardSwish", ["c2"], ["r2"]),
            node("GlobalAveragePool", ["r2"], ["g"]),
            node("Flatten", ["g"], ["f"]),
            node("Gemm", ["f", "w3", "b3"], ["logits"], transB=1),
            node("Softmax", ["logits"], ["scores"], axis=1),
        ],
        [value("image", TensorProto.FLOAT, ["batch", 3, "height", "width"])],
        [value("scores", TensorProto.FLOAT, ["batch", 5])],
        [
            weight("w1", 8, 3, 3, 3),
            weight("b1", 8),
            weight("w2", 8, 2, 3, 3),
            weight("w3", 5, 8),
            weight("b3", 5),
        ],
    )
    return made, {"image": RANDOM.standard_normal((2, 3, 12, 10)).astype(np.float32)}


def attention() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """A layer as language models have: tokens to vectors, attention over any length, normalization, two outputs."""
    node = helper.make_node
    made = model(
        [
            node("Gather", ["table", "tokens"], ["x"]),
            node("LayerNormalization", ["x", "scale"], ["n"]),
            node("MatMul", ["n", "wq"], ["q"]),
            node("MatMul", ["n", "wk"], ["k"]),
            node("MatMul", ["n", "wv"], ["v"]),
            node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]),
            node("MatMul", ["q", "kt"], ["s"]),
            node("Softmax", ["s"], ["a"], axis=-1),
            node("MatMul", ["a", "v"], ["o"]),
            node("Add", ["x", "o"], ["hidden"]),
            node("ReduceMean", ["hidden"], ["pooled"], axes=[1], keepdims=0),
        ],
        [value("tokens", TensorProto.INT64, ["batch", "length"])],
        [
            value("hidden", TensorProto.FLOAT, ["batch", "length", 16]),
            value("pooled", TensorProto.FLOAT, ["batch", 16]),
        ],
        [weight("table", 50, 16), weight("wq", 16, 16), weight("wk", 16, 16), weight("wv", 16, 16)]
        + [numpy_helper.from_array(np.ones(16, np.float32), "scale")],
    )
    return made, {"tokens": RANDOM.integers(0, 50, (2, 7)).astype(np.int64)}


def words() -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Strings in and out: words become numbers, and numbers words."""
    node = helper.make_node
    labels = {"keys_strings": ["rukh", "elephant", "über"], "values_int64s": [1, 2, 3], "default_int64": -1}
    made = model(
        [
            node("LabelEncoder", ["words"], ["numbers"], domain="ai.onnx.ml", **labels),
            node("Cast", ["numbers"], ["texts"], to=TensorProto.STRING),
        ],
        [value("words", TensorProto.STRING, ["count"])],
        [value("numbers", TensorProto.INT64, ["count"]), value("texts", TensorProto.STRING, ["count"])],
        [],
    )
    return made, {"words": np.array(["elephant", "rukh", "", "über", "bird"], dtype=object)}


def extensions(folder: pathlib.Path) -> None:
    """Operators of the package onnxruntime-extensions, with an attribute; what they give is what Python gives."""
    node = helper.make_node
    graph = helper.make_graph(
        [
            node(
                "StringRegexReplace",
                ["words", "pattern", "rewrite"],
                ["replaced"],
                domain=CONTRIB,
                global_replace=1,
            ),
            node("StringUpper", ["replaced"], ["upper"], domain=CONTRIB),
            node("StringLength", ["upper"], ["lengths"], domain=CONTRIB),
        ],
        "extensions",
        [value("words", TensorProto.STRING, ["count"])],
        [value("upper", TensorProto.STRING, ["count"]), value("lengths", TensorProto.INT64, ["count"])],
        [
            helper.make_tensor("pattern", TensorProto.STRING, [1], [b"[aeiou]+"]),
            helper.make_tensor("rewrite", TensorProto.STRING, [1], [b"-"]),
        ],
    )
    made = helper.make_model(graph, opset_imports=[*OPSET, helper.make_opsetid(CONTRIB, 1)], ir_version=8)
    words = np.array(["elephant", "rukh", "", "aeiou bird"], dtype=object)
    upper = [re.sub("[aeiou]+", "-", word).upper() for word in words]
    outputs = {"upper": np.array(upper, dtype=object), "lengths": np.array([len(word) for word in upper])}
    save(folder, made.SerializeToString(), {"words": words}, outputs)


def write(folder: pathlib.Path, made: bytes, inputs: dict[str, np.ndarray]) -> None:
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    save(folder, made, inputs, dict(zip(names, session.run(names, inputs))))


def save(folder: pathlib.Path, made: bytes, inputs: dict[str, np.ndarray], outputs: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(made)
    texts = any(array.dtype == object for array in (*inputs.values(), *outputs.values()))
    save_tensors(folder, inputs, outputs, tolerance=1e-4, strict=not texts)


def save_tensors(
    folder: pathlib.Path,
    inputs: dict[str, np.ndarray],
    outputs: dict[str, np.ndarray],
    tolerance: float,
    strict: bool,
) -> None:
    """The tensors of a case. `tolerance` is the largest difference allowed, over the largest magnitude of the output."""
    lines = ["strict"] if strict else []
    for role, arrays in (("input", inputs), ("output", outputs)):
        for index, (name, array) in enumerate(arrays.items()):
            is_text = array.dtype == object
            file = f"{role}{index}.bin"
            texts = "".join(f"{text}\0" for text in array.reshape(-1)) if is_text else ""
            (folder / file).write_bytes(texts.encode() if is_text else np.ascontiguousarray(array).tobytes())
            is_float = role == "output" and array.dtype == np.float32
            allowed = tolerance * float(np.abs(array).max()) if is_float else 0
            fields = [role, name, "string" if is_text else array.dtype, allowed, file, *array.shape]
            lines.append(" ".join(map(str, fields)))
    (folder / "tensors.txt").write_text("".join(f"{line}\n" for line in lines))


def exported(root: pathlib.Path, models: pathlib.Path) -> None:
    """Models of PyTorch: each sample that was stored with one is a case."""
    for name in EXPORTED:
        samples = sorted((models / name).glob("sample*.npz"))
        if not samples:
            raise SystemExit(f"{models / name} has no samples; `make models` writes them")
        for sample in samples:
            folder = root / f"{name}-{sample.stem}"
            folder.mkdir(parents=True)
            (folder / "model.onnx").symlink_to((models / name / "model.onnx").resolve())
            arrays = np.load(sample)
            inputs = {key[3:]: arrays[key] for key in arrays if key.startswith("in:")}
            outputs = {key[4:]: arrays[key] for key in arrays if key.startswith("out:")}
            save_tensors(folder, inputs, outputs, tolerance=1e-3, strict=True)


def small(root: pathlib.Path, digits: pathlib.Path) -> None:
    extensions(root / "extensions" / "strings")
    folder = root / "plain"
    image = RANDOM.random((3, 1, 8, 8)).astype(np.float32)
    write(folder / "digits", digits.read_bytes(), {"image": image})
    for function in (convolutions, attention, words):
        made, inputs = function()
        write(folder / function.__name__, made.SerializeToString(), inputs)


if __name__ == "__main__":
    kind, folder, source = sys.argv[1:]
    shutil.rmtree(folder, ignore_errors=True)
    {"small": small, "exported": exported}[kind](pathlib.Path(folder), pathlib.Path(source))
