#!/usr/bin/env python3
"""Compile models, open the artifacts, and compare their answers with the models' bit for bit.

    compare_compiled.py --command RUKH [--targets cpu,gfx1100] [--provider cpu|hip] [--folder DIR] [--given] MODEL…

Each model is compiled without a GPU, then run with generated inputs, as a model and as an artifact, on the provider.
Beside the answers it is looked at whether weights were packed when the artifact was opened, and how much memory that
files do not back the process had then, as a share of the weights. --given: the folder has the artifacts already, as
NAME.rukh. Prints Markdown, a row a model; ends with 1 when an answer differs, or when weights were packed.

With RUKH_HIP_LIBRARY and AMDEMU_ARCH the provider hip is an emulated GPU.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import numpy as np

# RssAnon of an artifact that is open, over its weights; less than this many bytes is the process itself.
MOST = 0.15
LITTLE = 24 << 20


def name_of(model: pathlib.Path) -> str:
    """Folder and file, as names of files are often alike: bert_base.model, bert_base.qdq."""
    return f"{model.parent.name}.{model.stem}"


def compile_model(command: str, model: pathlib.Path, artifact: pathlib.Path, targets: str) -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}
    environment = {k: v for k, v in os.environ.items() if k not in ("RUKH_HIP_LIBRARY", "RUKH_REQUIRE_HIP")}
    arguments = [command, "compile", str(model), "-o", str(artifact), "--target", targets]
    subprocess.run(arguments, env=environment | hidden, check=True, capture_output=True)


def answers(command: str, file: pathlib.Path, provider: list[str], out: pathlib.Path) -> dict[str, np.ndarray]:
    out.unlink(missing_ok=True)
    arguments = [command, "run", str(file), "--generate", *provider, "--output", str(out)]
    subprocess.run(arguments, check=True, capture_output=True)
    with np.load(out) as found:
        return {name: found[name] for name in found.files}


def facts(command: str, file: pathlib.Path, provider: list[str]) -> dict:
    told = subprocess.run([command, "info", str(file), "--json", *provider], check=True, capture_output=True)
    return json.loads(told.stdout)


def compare(options: argparse.Namespace, model: pathlib.Path) -> bool:
    artifact = options.folder / f"{name_of(model)}.rukh"
    provider = ["--provider", options.provider]
    began = time.perf_counter()
    if not options.given:
        compile_model(options.command, model, artifact, options.targets)
    compiled = time.perf_counter() - began
    out = options.folder / "answers.npz"
    fall_back = ["--option", "fallback=cpu"] if options.provider == "hip" else []
    want = answers(options.command, model, provider + fall_back, out)
    got = answers(options.command, artifact, provider, out)
    same = want.keys() == got.keys() and all(want[n].tobytes() == got[n].tobytes() for n in want)
    told = facts(options.command, artifact, provider)
    weights, opened = told["weights"], told["memory_after_opening"]["anonymous_bytes"]
    held = weights["mapped_bytes"]
    packed = weights["packed_bytes"]
    small = opened <= max(MOST * held, LITTLE) or options.provider != "cpu"
    right = same and packed == 0 and small
    print(
        f"| {name_of(model)} | {artifact.stat().st_size / 1e6:.1f} | {compiled:.1f} | {'equal' if same else 'DIFFERENT'} "
        f"| {packed} | {opened / 1e6:.1f} | {opened / max(held, 1):.1%} | {'' if right else 'WRONG'} |",
        flush=True,
    )
    if not options.given:
        artifact.unlink()
    return right


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", required=True, help="the rukh command")
    parser.add_argument("--targets", default="cpu,gfx90a,gfx942,gfx1100,gfx1201,sm_90")
    parser.add_argument("--provider", default="cpu", choices=("cpu", "hip"))
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/compiled"))
    parser.add_argument("--given", action="store_true", help="the folder has the artifacts already")
    parser.add_argument("models", nargs="+", type=pathlib.Path, metavar="MODEL")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| model | artifact, MB | compiled, s | answers | bytes packed | RssAnon, MB | of the weights | |")
    print("|---|---:|---:|---|---:|---:|---:|---|", flush=True)
    wrong = 0
    for model in options.models:
        try:
            wrong += not compare(options, model)
        except subprocess.CalledProcessError as error:
            told = (error.stderr or b"").decode()[-300:]
            print(f"| {name_of(model)} | {error} {told} | | | | | | WRONG |", flush=True)
            wrong += 1
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
