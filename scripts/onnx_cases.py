#!/usr/bin/env python3
"""Write the ONNX standard's backend test cases as files: OUT/<kind>/test_<case>/.

Each case is a folder with `model.onnx` and `test_data_set_<n>/{input,output}_<i>.pb`, the layout
that ONNX's own backend test suite uses. A value is a TensorProto, SequenceProto, MapProto or
OptionalProto, as the model's type says.
"""

import argparse
import json
import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.backend.test.case.model as model_cases
import onnx.backend.test.case.node as node_cases
from onnx import TensorProto, numpy_helper


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    shutil.rmtree(out, ignore_errors=True)
    cases = [*node_cases.collect_testcases(), *model_cases.collect_testcases()]
    written = 0
    for case in cases:
        # Cases of kind "real" only name a model to download.
        if case.model is not None:
            write(case, out / case.kind / case.name)
            written += 1
    (out / "VERSION").write_text(onnx.__version__ + "\n")
    print(f"{written} cases of onnx {onnx.__version__} in {out}")


def write(case, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    (folder / "data.json").write_text(json.dumps({"rtol": case.rtol, "atol": case.atol}))
    for number, (inputs, outputs) in enumerate(case.data_sets):
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for kind, values, infos in (
            ("input", inputs, case.model.graph.input),
            ("output", outputs, case.model.graph.output),
        ):
            for i, (value, info) in enumerate(zip(values, infos)):
                (data / f"{kind}_{i}.pb").write_bytes(proto(value, info).SerializeToString())


def proto(value, info):
    """The protobuf message of a test value, by the type that the model declares for it."""
    if info.type.HasField("map_type"):
        return numpy_helper.from_dict(value, info.name)
    if info.type.HasField("sequence_type"):
        return numpy_helper.from_list(value, info.name)
    if info.type.HasField("optional_type"):
        return numpy_helper.from_optional(value, info.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


if __name__ == "__main__":
    sys.exit(main())
