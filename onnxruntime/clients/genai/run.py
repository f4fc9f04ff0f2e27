"""Generates text with onnxruntime-genai and compares the tokens with the example's: run.py MODEL REFERENCE [PROVIDER]"""

import json
import pathlib
import sys

import onnxruntime_genai as og

TOKENS = 40


def generate(model: og.Model, prompt: list[int]) -> list[int]:
    params = og.GeneratorParams(model)
    params.set_search_options(max_length=len(prompt) + TOKENS, do_sample=False)
    generator = og.Generator(model, params)
    generator.append_tokens(prompt)
    while not generator.is_done():
        generator.generate_next_token()
    return [int(token) for token in generator.get_sequence(0)][len(prompt) :]


def main(folder: str, reference: str, provider: str | None = None) -> int:
    config = og.Config(folder)
    if provider:
        config.clear_providers()
        config.append_provider(provider)
    model = og.Model(config)
    cases = json.loads(pathlib.Path(reference).read_text())
    failed = 0
    for case in cases:
        # A text ends at the model's end token, where the example's goes on.
        found = generate(model, case["tokens"])
        if not found or found != case["following"][: len(found)]:
            failed += 1
            print(f"{case['prompt']}: {found}, expected {case['following'][:TOKENS]}", file=sys.stderr)
    print(f"onnxruntime-genai {og.__version__} on {model.device_type}: {len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases or (provider and model.device_type != provider) else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
