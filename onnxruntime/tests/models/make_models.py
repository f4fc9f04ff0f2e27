"""Writes the models that the tests of this folder run.

    python onnxruntime/tests/models/make_models.py      (needs the packages onnx and onnxruntime)
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, checker, helper, save
from onnxruntime import AdapterFormat, OrtValue


def optionals() -> None:
    """Twice the tensor that an optional holds, and whether it holds one; and the input as an optional."""
    node = helper.make_node
    tensor = helper.make_tensor_type_proto(TensorProto.FLOAT, ["n"])
    optional = helper.make_optional_type_proto(tensor)
    graph = helper.make_graph(
        [
            node("OptionalHasElement", ["maybe"], ["there"]),
            node("OptionalGetElement", ["maybe"], ["x"]),
            node("Add", ["x", "x"], ["twice"]),
            node("Optional", ["twice"], ["held"]),
        ],
        "optionals",
        [helper.make_value_info("maybe", optional)],
        [
            helper.make_tensor_value_info("there", TensorProto.BOOL, []),
            helper.make_value_info("held", optional),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    checker.check_model(model)
    save(model, Path(__file__).parent / "optionals.onnx")


def adapted() -> None:
    """An adapter for capi-tests/models/adapted.onnx: A of rank 2, all ones, and B, all 0.25."""
    tensors = {"lora_a": np.ones((4, 2), np.float32), "lora_b": np.full((2, 3), 0.25, np.float32)}
    adapter = AdapterFormat()
    adapter.set_adapter_version(1)
    adapter.set_model_version(3)
    adapter.set_parameters({name: OrtValue.ortvalue_from_numpy(tensor) for name, tensor in tensors.items()})
    adapter.export_adapter(str(Path(__file__).parent / "adapted.onnx_adapter"))


optionals()
adapted()
