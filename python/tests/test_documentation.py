"""The Python code that the documentation shows, run beside the model it names."""

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCKS = [
    block
    for page in (ROOT / "README.md", ROOT / "docs" / "user-guide.md")
    for block in re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_code_of_the_documentation_runs(block):
    subprocess.run([sys.executable, "-c", block], cwd=ROOT / "examples" / "digits", check=True)
