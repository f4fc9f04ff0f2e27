"""The examples of docs/triton.md."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from conftest import GPU, infer
from models import running_sum
from server import ROOT

PAGE = (ROOT / "docs" / "triton.md").read_text()


def examples(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


CONFIGURATIONS = examples("pbtxt")


def test_the_page_has_its_examples():
    assert len(CONFIGURATIONS) == 4 and len(examples("python")) == 1


@pytest.mark.parametrize("index", range(len(CONFIGURATIONS)))
def test_configurations(server, digits, index):
    config = (
        CONFIGURATIONS[index].replace('backend: "rukh"', "").replace('string_value: "1"', 'string_value: "0"')
    )
    if '"hip"' in config:
        if not GPU:
            pytest.skip("there is no GPU")
        # Here the first one is the only one.
        config = config.replace('string_value: "1"', 'string_value: "0"')
    model, images, scores = digits
    name = f"example-{index}"
    if "sequence_batching" in config:
        server.add(name, running_sum(), config)
        x = np.array([[1, 2]], np.float32)
        for step in range(3):
            got = infer(server.grpc, name, {"x": x}, sequence_id=7, sequence_start=step == 0)["total"]
            assert (got == x * (step + 1)).all()
        return
    server.add(name, model, config)
    got = infer(server.http, name, {"image": images[:2]})["scores"]
    np.testing.assert_allclose(got, scores[:2], rtol=1e-4, atol=1e-4)


def test_the_client(server, digits):
    server.add("digits", digits[0])
    (program,) = examples("python")
    program = program.replace("localhost:8000", server.http_address)
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    want = infer(server.http, "digits", {"image": np.zeros((1, 1, 8, 8), np.float32)})["scores"]
    assert ran.stdout.strip() == str(want)


def test_options_that_are_named_exist():
    """Session options by their names in rukh's own page."""
    options = (ROOT / "docs" / "options.md").read_text()
    section = PAGE.split("\n## Parameters\n")[1].split("\n## ")[0]
    first = section.split("as there:")[1].split("|")[0]
    named = re.findall(r"`([a-z_.]+)", first)
    assert len(named) > 4
    assert [name for name in named if f"| `{name}" not in options] == []


def test_the_page_says_which_server_it_was_tested_with(server):
    version = server.http.get_server_metadata()["version"]
    assert version in os.environ.get("TRITONSERVER", "") or f"server {version.rsplit('.', 1)[0]}" in PAGE
