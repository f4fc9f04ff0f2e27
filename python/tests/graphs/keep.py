"""Cases that are kept: a model as `cases/NAME.onnx`, its feeds and outputs beside it as `NAME.npz`."""

from __future__ import annotations

import pathlib

import numpy as np
import onnx

from .generate import Sample

CASES = pathlib.Path(__file__).parent / "cases"


def store(test: Sample, folder: pathlib.Path, name: str) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.onnx"
    path.write_bytes(test.model.SerializeToString())
    arrays = {}
    for k, (feed, expected) in enumerate(zip(test.feeds, test.expected)):
        arrays |= {f"{k}/in/{n}": np.asarray(x) for n, x in feed.items()}
        arrays |= {f"{k}/out/{n}": np.asarray(y) for n, y in zip(test.outputs, expected)}
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    return path


def load(path: pathlib.Path) -> Sample:
    model = onnx.load(path)
    arrays = dict(np.load(path.with_suffix(".npz")))
    feeds, expected = [], []
    for k in range(1 + max(int(name.split("/")[0]) for name in arrays)):
        feeds.append({n[len(f"{k}/in/") :]: x for n, x in arrays.items() if n.startswith(f"{k}/in/")})
        expected.append({n[len(f"{k}/out/") :]: y for n, y in arrays.items() if n.startswith(f"{k}/out/")})
    outputs = list(expected[0])
    return Sample(model, feeds, outputs, [[found[name] for name in outputs] for found in expected])
