"""The sweep over nodes and blocks (scripts/bench/sweep.py): a few small cases, and its tables."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rukh

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/bench/sweep.py"


@pytest.fixture
def environment():
    pytest.importorskip("onnxruntime")
    source = Path(rukh.__file__).parents[1]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}


def test_a_few_cases(tmp_path, environment):
    command = [sys.executable, str(SCRIPT), "--dry-run", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    (run,) = json.loads((tmp_path / "sweep.json").read_text())["runs"]
    assert {case["kind"] for case in run["cases"]} == {"conv 3×3", "MaxPool", "MatMul", "block: shuffle"}
    for case in run["cases"]:
        assert case["difference"] < 1e-5 and case["ratio"] > 0 and len(case["rukh"]) == 2, case
        assert f"| {case['kind']}: {case['case']} |" in done.stdout
    assert (tmp_path / "sweep.svg").read_text().count("<title>") == len(run["cases"])


def test_every_case_is_a_model(environment):
    """With shapes that fit, as ONNX's own inference sees them."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import blocks, convolutions, nodes, onnx\n"
        "cases = [*convolutions.CASES, *nodes.CASES, *blocks.CASES]\n"
        "names = [(case.kind, case.name) for case in cases]\n"
        "assert len(set(names)) == len(names) > 300, [name for name in names if names.count(name) > 1]\n"
        "for case in cases:\n"
        "    if not any(large in case.name for large in ('30522', '11008', '14336', '30000')):\n"
        "        model = onnx.load_from_string(case.build()[0])\n"
        "        told = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)\n"
        "        if case.kind not in ('MatMulNBits', 'GroupQueryAttention'):\n"
        "            assert all(y.type.WhichOneof('value') for y in told.graph.output), case.name\n"
    )
    command = [sys.executable, "-c", code, str(SCRIPT.parent / "shapes")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_tables_say_what_is_slow_and_what_is_wrong():
    sys.path.insert(0, str(SCRIPT.parent / "shapes"))
    import report

    def case(name, ratio, difference=0.0):
        return {"kind": "conv", "case": name, "work": 1000, "difference": difference} | {
            "rukh": [2.0, 1.0], "onnxruntime": [2 * ratio, ratio], "ratio": ratio,
        }  # fmt: skip

    cases = [case("a", 2.0), case("b", 0.5), case("c", 1.0, 0.5), {"kind": "x", "case": "d", "error": "no such"}]
    run = {"isa": "avx2", "threads": 1, "precision": "f32", "peer": "onnxruntime", "cases": cases}
    text = report.table([run], 1)
    assert "rukh's speed over ONNX Runtime's" in text and "| ONNX Runtime, µs |" in text
    assert "| conv | 3 | 1.00 | 0.50 | b |" in text
    assert text.count("| conv: ") == 1 and "| conv: b | 0.50 | 1.0 | 0.5 |" in text
    assert "* conv: c: outputs differ by 5.0e-01" in text and "* x: d was not run: no such" in text
    assert [report.wrong(case, "f32") for case in cases[:3]] == [False, False, True]
    assert report.wrong(case("e", 1.0, float("nan")), "f32")
    assert "<title>conv: b: 0.50</title>" in report.picture([run])
    assert report.picture([run | {"cases": cases[3:]}]) == ""
    beside = run | {"peer": "openvino", "cases": [cases[0] | {"openvino": [3.0, 2.5]}]}
    assert "| conv: a | 2.00 | 1.0 | 2.5 |" in report.table([beside], 1)
    assert "over OpenVINO's" in report.picture([beside])
