"""The benchmark of whole models on a GPU (scripts/bench/gpu_models.py), as far as it goes without one."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import rukh

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/bench/gpu_models.py"


def test_results_of_several_runs_come_together(tmp_path):
    spec = importlib.util.spec_from_file_location("gpu_results", SCRIPT.parent / "gpu/results.py")
    results = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(results)
    out = tmp_path / "results.json"
    engine = lambda latency, rate: {"latency_ms": latency, "throughput": rate, "difference": 1e-3, "launches": 7}
    for case, engines in (
        ("a b1", {"compile": engine(2.0, 500.0), "rukh": engine(4.0, 1000.0)}),
        ("b b1", {"compile": engine(3.0, 300.0)}),
        # Later, and once more.
        ("b b1", {"rukh": engine(9.0, 1.0), "rukh-tuned": {"error": "ended with 1"}}),
        ("b b1", {"rukh": engine(1.5, 150.0)}),
    ):
        results.add(out, {"device": "X"}, case, engines)
    found = json.loads(out.read_text())
    assert list(found["cases"]["b b1"]) == ["compile", "rukh", "rukh-tuned"]
    table = results.table(found, "compile")
    assert "| b b1 | rukh | 1.500 | 150.0 | 2.00 | 1.0e-03 | 7 |" in table
    assert "| b b1 | rukh-tuned | ended with 1 |" in table
    # Latency: 0.5 and 2; throughput: 2 and 0.5.
    assert "| rukh | 2 | 1.00 | 1.00 |" in table


def test_a_small_model_runs_on_the_cpu(tmp_path):
    for package in ("torch", "onnxscript"):
        pytest.importorskip(package)
    source = Path(rukh.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])}
    out = tmp_path / "results.json"
    command = [sys.executable, str(SCRIPT), "--dry-run", "--rounds", "2", "--seconds", "0.02"]
    command += ["--out", str(out), "--models", str(tmp_path / "models")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    engines = json.loads(out.read_text())["cases"]["tiny b2"]
    assert set(engines) == {"torch", "rukh"}
    for name, found in engines.items():
        assert found["difference"] < 1e-4 and found["latency_ms"] > 0 and found["throughput"] > 0, (name, found)
        assert found["calls"] >= 2
    assert "| tiny b2 | rukh |" in done.stdout
