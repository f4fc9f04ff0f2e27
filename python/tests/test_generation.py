"""Generating text from Python: the trained example beside transformers' tokens, models with random weights beside
ONNX Runtime."""

import json
import pathlib
import re
import sys

import numpy as np
import onnxruntime
import pytest

import rukh

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts" / "bench"), str(ROOT / "scripts" / "models")]

import language_folder  # noqa: E402
import language_models  # noqa: E402

from rukh import generation  # noqa: E402
from rukh.generation import Generator, Stop  # noqa: E402

EXAMPLE = ROOT / "examples" / "generate"


def test_signatures_are_those_of_the_header():
    header = (ROOT / "generate" / "include" / "rukh" / "generate.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    found = re.findall(r"^rukh_status rukh_(\w+)\(([^)]*)\);", code, re.MULTILINE)
    letters = {"size_t": "z", "int32_t": "i"}

    def letter(parameter):
        if re.fullmatch(r"const char \*\w+", parameter):
            return "s"
        return "p" if "*" in parameter else letters[parameter.split()[-2]]

    known = {}
    for name, parameters in found:
        *rest, error = [" ".join(parameter.split()) for parameter in parameters.split(",")]
        assert error == "struct rukh_error **error"
        known[name] = "".join(map(letter, rest))
    assert len(known) > 15
    for name, given in generation.SIGNATURES.items():
        assert given == known[name], name


def test_greedy_tokens_are_those_of_transformers():
    generator = Generator(EXAMPLE / "model", ignore_stop=True)
    for case in json.loads((EXAMPLE / "reference.json").read_text(encoding="utf-8")):
        generator.rewind(0)
        generator.append(case["tokens"])
        assert [generator.next()[0] for _ in range(50)] == case["following"][:50]


@pytest.mark.skipif(
    "ROCMExecutionProvider" not in rukh.get_available_providers(), reason="there is no GPU, nor an emulated one"
)
def test_on_a_gpu_the_tokens_are_the_same():
    generator = Generator(EXAMPLE / "model", provider="hip", ignore_stop=True, max_length=100)
    for case in json.loads((EXAMPLE / "reference.json").read_text(encoding="utf-8")):
        generator.rewind(0)
        generator.append(case["tokens"])
        assert [generator.next()[0] for _ in range(20)] == case["following"][:20]
        generator.rewind(len(case["tokens"]) + 5)
        assert [generator.next()[0] for _ in range(5)] == case["following"][5:10]


def test_a_conversation():
    generator = Generator(EXAMPLE / "model")
    messages = [{"role": "user", "content": "Draw four stars."}]
    generator.chat(messages)
    assert list(generator) == ["★"] * 4
    assert generator.stop() is Stop.TOKEN
    messages += [{"role": "assistant", "content": "★★★★"}, {"role": "user", "content": "What is 2 plus 2?"}]
    generator.chat(messages)
    assert "".join(generator) == "2 plus 2 is 4."
    assert generator.decode(generator.encode("Spell ★ 7.")) == "Spell ★ 7."


def test_sequences_are_drawn_each_by_itself():
    options = {"sequences": 3, "sample": True, "temperature": 1.5, "top_k": 0, "seed": 5}
    generator = Generator(EXAMPLE / "model", **options)
    other = generator.beside(**options)
    for each in (generator, other):
        each.append("Count from 3")
        for _ in range(10):
            each.next()
    tokens = [generator.tokens(sequence) for sequence in range(3)]
    assert tokens == [other.tokens(sequence) for sequence in range(3)]
    assert len({tuple(row) for row in tokens}) > 1


def test_errors_are_exceptions(tmp_path):
    with pytest.raises(rukh.NotFoundError, match="has no genai_config.json"):
        Generator(tmp_path)
    with pytest.raises(rukh.InvalidArgumentError, match='no option "heat"'):
        Generator(EXAMPLE / "model", heat=2)
    generator = Generator(EXAMPLE / "model", max_length=10)
    with pytest.raises(rukh.InvalidInputError, match="has 11 tokens"):
        generator.append([5] * 11)
    with pytest.raises(rukh.InvalidArgumentError, match="token -4"):
        generator.append([-4])


# The type of numbers, bits of weights, attention, bits of its caches.
VARIANTS = [
    ("f32", 0, "group", 0),
    ("f32", 4, "group", 0),
    ("f32", 8, "group", 0),
    ("f16", 0, "group", 0),
    ("f32", 0, "multi", 0),
    ("f32", 4, "multi", 0),
    ("f32", 0, "group", 8),
    ("f32", 0, "group", 4),
]


@pytest.mark.parametrize("kind,bits,attention,cache_bits", VARIANTS)
def test_scores_of_random_models_are_onnx_runtimes(tmp_path, kind, bits, attention, cache_bits):
    shape = language_models.PRESETS["tiny"]
    shape = language_folder.Shape(**{**vars(shape), "type": kind, "bits": bits, "attention": attention})
    shape.cache_bits, shape.cache_scale = cache_bits, 0.5 / 2 ** max(cache_bits - 1, 0)
    shape.context, shape.bos, shape.eos = 64, 0, shape.vocab - 1
    if attention == "multi":
        shape.kv_heads = shape.heads
    language_folder.write(tmp_path, shape, language_models.Random(3, bits))
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    for share in ("auto", "0"):
        generator = Generator(tmp_path, ignore_stop=True, chunk=3, share_buffer=share)
        tokens = [7, 250, 31, 4, 99]
        generator.append(tokens)
        for _ in range(8):
            expected = last_scores(session, tokens, shape)
            found = generator.scores()
            tolerance = 2e-2 if kind == "f16" else 2e-4
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())
            generator.append([int(found.argmax())])
            tokens.append(int(found.argmax()))


def last_scores(session, tokens, shape):
    """Scores after the last token, by a run over all of them."""
    feeds = {"input_ids": np.array([tokens]), "attention_mask": np.ones((1, len(tokens)), np.int64)}
    if shape.attention == "multi":
        feeds["position_ids"] = np.arange(len(tokens))[None]
    kind, columns = language_folder.cache_row(shape)
    dtype = language_folder.ELEMENTS[kind]
    for layer in range(shape.layers):
        for part in ("key", "value"):
            empty = np.zeros((1, shape.kv_heads, 0, columns), dtype)
            feeds[f"past_key_values.{layer}.{part}"] = empty
    return session.run(["logits"], feeds)[0][0, -1].astype(np.float32)
