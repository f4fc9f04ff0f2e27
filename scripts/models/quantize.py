#!/usr/bin/env python3
"""Write quantized variants of exported models with ONNX Runtime's quantizer.

    quantize.py [--models DIR] [--out DIR] [NAME ...]

Variants of each of resnet50, mobilenet_v3_large and bert_base, as <out>/<name>/<variant>.onnx:
  qdq        static, QuantizeLinear and DequantizeLinear around float operators
  qoperator  static, operators that compute on quantized tensors
  dynamic    weights of 8 bits, activations quantized while the model runs
  nbits      weights of 4 bits in blocks of 32 (MatMulNBits); models with large matrix products
  nbits_rounded  the same with accuracy_level 4: engines may round activations to 8 bits
Static variants are calibrated with a few seeded inputs. Needs no network.
"""

import argparse
import logging
import pathlib
import tempfile

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer
from onnxruntime.quantization.shape_inference import quant_pre_process

MODELS = ("resnet50", "mobilenet_v3_large", "bert_base")
VARIANTS = ("qdq", "qoperator", "dynamic", "nbits", "nbits_rounded")

# Seeds of the inputs that calibrate. Comparisons use others.
CALIBRATION_SEEDS = range(4)


def inputs(name, seed):
    """A seeded input of a model, like the ones it was exported with."""
    rng = np.random.default_rng(seed)
    if name != "bert_base":
        return {"input": rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    length, padded = 128, 16
    mask = np.ones((1, length), np.int64)
    mask[:, length - padded :] = 0
    types = np.zeros((1, length), np.int64)
    types[:, length // 2 :] = 1
    return {
        "input_ids": rng.integers(1, 30522, (1, length)),
        "attention_mask": mask,
        "token_type_ids": types,
    }


class SeededInputs(CalibrationDataReader):
    def __init__(self, name):
        self.items = iter([inputs(name, seed) for seed in CALIBRATION_SEEDS])

    def get_next(self):
        return next(self.items, None)


def write(name, variant, model, path):
    """Writes one variant; False where it does not apply to the model."""
    if variant == "dynamic":
        # ONNX Runtime's ConvInteger takes unsigned weights only.
        weights = QuantType.QInt8 if name == "bert_base" else QuantType.QUInt8
        quantize_dynamic(model, path, weight_type=weights)
        return True
    if variant.startswith("nbits"):
        level = 4 if variant == "nbits_rounded" else None
        quantizer = MatMulNBitsQuantizer(
            onnx.load(model), bits=4, block_size=32, is_symmetric=False, accuracy_level=level
        )
        quantizer.process()
        quantizer.model.save_model_to_file(str(path))
        return any(node.op_type == "MatMulNBits" for node in quantizer.model.model.graph.node)
    quantize_static(
        model,
        path,
        SeededInputs(name),
        quant_format=QuantFormat.QDQ if variant == "qdq" else QuantFormat.QOperator,
        # Weights of a channel share a scale in the QDQ variants only, so that both forms are seen.
        per_channel=variant == "qdq",
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
    )
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=pathlib.Path, default=pathlib.Path("build/models"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/quantized"))
    parser.add_argument("names", nargs="*", default=list(MODELS))
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    for name in arguments.names:
        folder = arguments.out / name
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as temporary:
            prepared = pathlib.Path(temporary) / "model.onnx"
            # Exported models keep their batch normalisations apart; this folds them into convolutions.
            quant_pre_process(
                str(arguments.models / name / "model.onnx"), str(prepared), skip_symbolic_shape=True
            )
            for variant in VARIANTS:
                path = folder / f"{variant}.onnx"
                if write(name, variant, prepared, path):
                    print(f"{name} {variant}: {path.stat().st_size / 1e6:.1f} MB", flush=True)
                else:
                    path.unlink()


if __name__ == "__main__":
    main()
