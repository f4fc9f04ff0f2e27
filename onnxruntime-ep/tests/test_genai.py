"""onnxruntime-genai from the package index generates text on rukh through the plugin.

Each run is a process of its own, because a process registers one plugin of a name.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import GPU, LIBRARY, ROOT

pytest.importorskip("onnxruntime_genai", reason="onnxruntime-genai is not installed")
if not GPU:
    pytest.skip("needs a GPU or the emulated one: RUKH_REQUIRE_HIP=1 and RUKH_HIP_LIBRARY", allow_module_level=True)

MODEL = ROOT / "examples" / "generate" / "model"

PROGRAM = """
import sys
import onnxruntime_genai

folder, registration, library = sys.argv[1:]
if registration:
    onnxruntime_genai.register_execution_provider_library(registration, library)
model = onnxruntime_genai.Model(onnxruntime_genai.Config(folder))
tokenizer = onnxruntime_genai.Tokenizer(model)
parameters = onnxruntime_genai.GeneratorParams(model)
parameters.set_search_options(max_length=48)
generator = onnxruntime_genai.Generator(model, parameters)
generator.append_tokens(tokenizer.encode("the bird"))
while not generator.is_done():
    generator.generate_next_token()
print([int(token) for token in generator.get_sequence(0)])
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The example's model, with the line in its configuration that asks for AMD's GPUs."""
    folder = tmp_path_factory.mktemp("genai") / "model"
    shutil.copytree(MODEL, folder)
    file = folder / "genai_config.json"
    config = json.loads(file.read_text())
    config["model"]["decoder"]["session_options"]["provider_options"] = [{"AMDGPU": {}}]
    file.write_text(json.dumps(config))
    return folder


def generate(folder, registration="", **variables):
    command = [sys.executable, "-c", PROGRAM, str(folder), registration, LIBRARY]
    ran = subprocess.run(
        command, env=os.environ | variables, capture_output=True, check=False, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout.splitlines()[-1])


def test_text_is_that_of_the_cpu_provider(model):
    expected = generate(MODEL)
    assert len(expected) > 5
    # Registered by the program; and found by onnxruntime-genai itself, which gives it the provider's name.
    assert generate(model, "AMDGPU.virtual") == expected
    assert generate(model, AMDGPU_EP_PATH=LIBRARY, RUKH_VIRTUAL_DEVICE="1") == expected
