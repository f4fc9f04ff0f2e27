#!/usr/bin/env python3
"""Carry a model without its weights: write them anew elsewhere, from a seed.

    seeded.py strip MODEL.onnx DIR    DIR/model.onnx, whose large weights are external, and DIR/weights.json
    seeded.py fill DIR                DIR/weights.bin: normal numbers with each weight's own mean and spread

`strip` needs onnx; `fill` needs numpy alone. The results mean nothing, but two providers must agree on them.
"""

import json
import pathlib
import sys

import numpy

LARGE = 4096  # bytes; smaller weights stay in the model, with shapes and axes among them


def strip(model_path, folder):
    import onnx
    from onnx import TensorProto, external_data_helper, numpy_helper

    folder.mkdir(parents=True, exist_ok=True)
    model = onnx.load(model_path)
    weights, offset = [], 0
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.nbytes < LARGE or tensor.data_type != TensorProto.FLOAT:
            continue
        weights.append(
            {
                "offset": offset,
                "count": int(array.size),
                "mean": float(array.mean()),
                "std": float(array.std()),
                "positive": bool((array > 0).all()),
            }
        )
        tensor.ClearField("float_data")
        # onnx marks as external only what has raw data.
        tensor.raw_data = b"0"
        external_data_helper.set_external_data(tensor, "weights.bin", offset=offset, length=array.nbytes)
        tensor.ClearField("raw_data")
        offset += array.nbytes + -array.nbytes % 64
    (folder / "weights.json").write_text(json.dumps(weights))
    (folder / "model.onnx").write_bytes(model.SerializeToString())


def fill(folder):
    generator = numpy.random.default_rng(7)
    with open(folder / "weights.bin", "wb") as file:
        for weight in json.loads((folder / "weights.json").read_text()):
            file.seek(weight["offset"])
            numbers = generator.standard_normal(weight["count"], dtype=numpy.float32)
            numbers = numbers * numpy.float32(weight["std"]) + numpy.float32(weight["mean"])
            file.write((numpy.abs(numbers) + 1e-3 if weight["positive"] else numbers).tobytes())


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["strip", model, folder]:
            strip(model, pathlib.Path(folder))
        case ["fill", folder]:
            fill(pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
