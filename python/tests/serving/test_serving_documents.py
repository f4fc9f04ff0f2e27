"""Runs what docs/serving.md shows, in the order of the page."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
import serving_client as client
import yaml
from ray import serve
from rukh.serve.options import Model, TextModel, parse_model
from serving_client import ROOT, wait_for

PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def blocks(language, *words):
    return [
        code for kind, code in BLOCKS if kind == language and any(word in code for word in words or ("",))
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Has what the page names."""
    shutil.copy(client.DIGITS, tmp_path)
    shutil.copytree(client.TALK, tmp_path / "talk")
    monkeypatch.chdir(tmp_path)
    # Of this environment, as a reader's shell has them.
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
    return tmp_path


def at_port(code, port):
    return code.replace("localhost:8000", f"127.0.0.1:{port}").replace("port: 8000", f"port: {port}")


def shell(code, port):
    done = subprocess.run(
        ["sh", "-eu"], check=False, input=at_port(code, port), capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_python_and_the_shell_that_asks(cluster, folder, capfd):
    names = {}
    for code in blocks("python"):
        # Replicas do not have this folder for their own.
        absolute = code.replace('"digits.onnx"', repr(client.DIGITS)).replace(
            'path="talk"', f"path={client.TALK!r}"
        )
        exec(compile(at_port(absolute, client.PORT), "docs/serving.md", "exec"), names)  # noqa: S102 - it is the page
    printed = capfd.readouterr().out
    assert "(2, 10)" in printed
    assert names["scores"].shape == (5, 10)
    (asking,) = blocks("sh", "request.json")
    assert '"scores"' in shell(asking, client.PORT)
    (texts,) = blocks("sh", "generate_stream")
    assert shell(texts, client.PORT).count("★") == 4
    for name in ("rukh", "talk", "own"):
        serve.delete(name)


def test_the_configuration_file_starts_a_server(folder):
    (config,) = blocks("yaml", "import_path")
    (folder / "config.yaml").write_text(at_port(config, client.PORT + 1))
    (command,) = blocks("sh", "serve run")
    (asking,) = blocks("sh", "request.json")
    env = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    with open(folder / "log", "w") as log:
        # In a session of its own, so that it can be ended with all that it started. What a shell starts in the background
        # ignores SIGINT, and so would the server.
        command = ["env", "--default-signal=INT", *command.split()]
        server = subprocess.Popen(command, stdout=log, stderr=log, env=env, start_new_session=True)
    try:
        wait_for(lambda: server.poll() is not None or is_ready(client.PORT + 1), 180)
        assert server.poll() is None, (folder / "log").read_text()
        assert '"scores"' in shell(asking, client.PORT + 1)
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(timeout=60)


def is_ready(port):
    done = subprocess.run(
        ["curl", "-sf", f"http://127.0.0.1:{port}/v2/health/ready"], capture_output=True, check=False
    )
    return done.returncode == 0


def test_the_kserve_file_runs_the_command_of_the_page():
    (service,) = blocks("yaml", "InferenceService")
    (container,) = yaml.safe_load(service)["spec"]["predictor"]["containers"]
    (command,) = blocks("sh", "serve run")
    assert container["command"] == command.split()
    (config,) = blocks("yaml", "import_path")
    port = yaml.safe_load(config)["http_options"]["port"]
    assert container["readinessProbe"]["httpGet"]["port"] == port == container["ports"][0]["containerPort"]


def test_the_tables_have_every_option_with_its_default():
    rows = {}
    for names, default in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|([^|]*)\|", PAGE, re.MULTILINE):
        found = re.findall(r"`(\w+)`", names)
        rows.update(zip(found, [part.strip() for part in default.split(",")] * len(found), strict=False))
    for model in (parse_model("m", {"path": "a"}), TextModel(path="a")):
        for name, value in vars(model).items():
            if name == "path" or (
                isinstance(model, TextModel) and name in ("concurrent_requests", "options")
            ):
                continue
            assert name in rows, name
            if isinstance(value, (int, float)) and not isinstance(model, TextModel):
                assert float(rows[name]) == value, name
    assert isinstance(parse_model("m", {"path": "a"}), Model)


def test_the_metrics_of_the_page_are_those_that_are_counted():
    source = (ROOT / "python" / "src" / "rukh" / "serve" / "measures.py").read_text(encoding="utf-8")
    counted = set(re.findall(r'"(rukh_\w+)"', source))
    assert counted == set(re.findall(r"`ray_(rukh_\w+)`", PAGE))
