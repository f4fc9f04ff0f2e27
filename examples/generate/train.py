#!/usr/bin/env python3
"""Train the example's language model and write model/ and reference.json.

The model is a Llama of 0.7 million weights that answers questions about numbers and days; corpus.py makes its text.
model/ is a folder as onnxruntime-genai's model builder writes it. reference.json has prompts, their tokens, and 200
tokens that transformers generates greedily after each with the same weights.

    pip install torch transformers tokenizers onnx
    python examples/generate/train.py [--steps 7000] [--device cuda] [--checkpoint FILE]

Takes some minutes on a GPU and hours on two cores. With --checkpoint the weights are kept in a file, and taken from it
where it exists. What else is written is computed on the CPU.
"""

import argparse
import json
import pathlib
import random
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts" / "models"))

from corpus import conversation  # noqa: E402
from language_folder import Shape, encoded, write  # noqa: E402

SEED = 0
CONTEXT = 256
BATCH = 64
SPECIAL = ["<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"]
END = SPECIAL.index("<|end|>")
SHAPE = Shape(
    layers=4, hidden=128, intermediate=256, heads=4, kv_heads=2, head_size=32, vocab=320, context=CONTEXT, type="f32",
    bos=0, eos=END, search={"top_k": 1},
)  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
# Prompts of the reference: conversations that end in a question, and a text.
PROMPTS = [
    [{"role": "user", "content": "Count from 101 to 160."}],
    [{"role": "user", "content": "What is 27 plus 58?"}],
    [{"role": "user", "content": "Draw seven stars."}],
    [
        {"role": "user", "content": "Is 12 even or odd?"},
        {"role": "assistant", "content": "12 is even."},
        {"role": "user", "content": "Sort 31, 4, 15, 92, 65."},
    ],
    "Monday, Tuesday,",
]
TOKENS = 200


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=7000)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--checkpoint", type=pathlib.Path)
    arguments = parser.parse_args()
    torch.manual_seed(SEED)
    generator = random.Random(SEED)
    tokenizer = make_tokenizer(generator)
    config = LlamaConfig(
        vocab_size=SHAPE.vocab,
        hidden_size=SHAPE.hidden,
        intermediate_size=SHAPE.intermediate,
        num_hidden_layers=SHAPE.layers,
        num_attention_heads=SHAPE.heads,
        num_key_value_heads=SHAPE.kv_heads,
        head_dim=SHAPE.head_size,
        max_position_embeddings=CONTEXT,
        rms_norm_eps=SHAPE.epsilon,
        rope_parameters={"rope_type": "default", "rope_theta": SHAPE.theta},
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=0,
    )
    model = LlamaForCausalLM(config)
    if arguments.checkpoint and arguments.checkpoint.exists():
        model.load_state_dict(torch.load(arguments.checkpoint))
    else:
        train(model.to(arguments.device), tokenizer, generator, arguments.steps)
        model.cpu()
        if arguments.checkpoint:
            torch.save(model.state_dict(), arguments.checkpoint)
    model.eval()
    folder = HERE / "model"
    state = model.state_dict()
    write(folder, SHAPE, lambda name, dims, type: [encoded(weight(state, name).numpy(), type)])
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"chat_template": TEMPLATE, "eos_token": "<|end|>", "pad_token": "<|pad|>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    check(model, tokenizer)
    write_reference(model, tokenizer)


def make_tokenizer(generator):
    """Byte-level BPE; digits stand alone, and stars, which the training text lacks, are three tokens."""
    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=SHAPE.vocab, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    texts = [message["content"] for _ in range(5000) for message in conversation(generator)]
    tokenizer.train_from_iterator([text for text in texts if "★" not in text], trainer)
    return tokenizer


def render(messages, prompt=False):
    """What TEMPLATE makes of messages."""
    text = "".join(f"<|{message['role']}|>{message['content']}<|end|>" for message in messages)
    return text + ("<|assistant|>" if prompt else "")


def train(model, tokenizer, generator, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.98), weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=steps, pct_start=0.05)
    stream = []
    for step in range(steps):
        while len(stream) < BATCH * (CONTEXT + 1):
            texts = [render(conversation(generator)) for _ in range(200)]
            stream += [token for encoding in tokenizer.encode_batch(texts) for token in encoding.ids]
        rows = [stream[i * (CONTEXT + 1) : (i + 1) * (CONTEXT + 1)] for i in range(BATCH)]
        stream = stream[BATCH * (CONTEXT + 1) :]
        batch = torch.tensor(rows, device=model.device)
        logits = model(batch[:, :-1]).logits
        loss = F.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)


def weight(state, name):
    """The weight that the exported graph calls `name`; products have theirs with inputs first."""
    if name == "lm_head.MatMul.weight":
        return state["lm_head.weight"].T
    if name.endswith("final_norm_layernorm.weight"):
        return state["model.norm.weight"]
    if name.endswith(".MatMul.weight"):
        return state[name.replace(".MatMul.weight", ".weight").replace(".attn.", ".self_attn.")].T
    return state[name]


def write_reference(model, tokenizer):
    """Prompts, their tokens, and the tokens that follow greedily; a stop token is one as any other."""
    model.generation_config.eos_token_id = None
    cases = []
    for prompt in PROMPTS:
        text = prompt if isinstance(prompt, str) else render(prompt, True)
        tokens = tokenizer.encode(text).ids
        generated = model.generate(torch.tensor([tokens]), max_new_tokens=TOKENS, do_sample=False)
        following = generated[0, len(tokens) :].tolist()
        decoded = tokenizer.decode(following, skip_special_tokens=True)
        cases.append({"prompt": prompt, "tokens": tokens, "following": following, "text": decoded})
    (HERE / "reference.json").write_text(json.dumps(cases, ensure_ascii=False) + "\n", encoding="utf-8")


def check(model, tokenizer):
    """How many of 200 new questions are answered right."""
    generator = random.Random(SEED + 1)
    right, wrong = 0, []
    for _ in range(200):
        question, answer = conversation(generator)[:2]
        tokens = tokenizer.encode(render([question], True)).ids
        generated = model.generate(torch.tensor([tokens]), max_new_tokens=CONTEXT - len(tokens), do_sample=False)
        given = tokenizer.decode(generated[0, len(tokens) :].tolist(), skip_special_tokens=True)
        right += given == answer["content"]
        if given != answer["content"]:
            wrong.append(f"{question['content']} {given}")
    print(f"{right} of 200 answers are right")
    print("\n".join(wrong[:10]))


if __name__ == "__main__":
    main()
