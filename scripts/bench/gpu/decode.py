#!/usr/bin/env python3
"""Time single steps of a language model on a GPU, as shares of what reading its weights once would take.

    decode.py FOLDER… [--past 512,2048] [--batch 1] [--steps 50] [--bandwidth GB/S] [--check] [--hip KEY=VALUE …]
    decode.py FOLDER… --prefill 512,2048   the first run, with so many tokens, as a share of the rate of torch's products
    decode.py --torch 1b [--past 512]      the same shape by transformers with torch.compile and a static cache

Folders are those of language_models.py. Caches have one buffer each, in device memory, past and present alike; the mask
has the caches' length, with ones for the tokens that are there. The bound is the time that a copy on the device takes
for as many bytes as weights and caches have. --check compares the logits of some tokens with those of the unoptimised
graph, after each length. --hip gives options of the provider to the sessions that are timed.

Needs torch, onnx and rukh's Python package; --torch needs transformers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch

WARM_UP = 8
# Tokens that --check takes at each length, and how far their logits and caches may be apart, over the largest of them.
TOKENS = 16
MOST_APART = 0.05
KINDS = {
    "tensor(float16)": torch.float16,
    "tensor(float)": torch.float32,
    "tensor(bfloat16)": torch.bfloat16,
    # Quantized caches.
    "tensor(int8)": torch.int8,
    "tensor(uint8)": torch.uint8,
}


class Decoder:
    """A session with everything bound."""

    def __init__(
        self,
        folder: Path,
        batch: int,
        optimise: bool = True,
        profile: bool = False,
        length: int = 1,
        hip: dict[str, str] | None = None,
    ) -> None:
        import rukh

        self.config = json.loads((folder / "genai_config.json").read_text())["model"]
        options = rukh.SessionOptions()
        if not optimise:
            options.graph_optimization_level = rukh.GraphOptimizationLevel.ORT_DISABLE_ALL
        if profile:
            options.enable_profiling = True
            options.profile_file_prefix = "/tmp/decode"
        start = time.perf_counter()
        self.session = rukh.InferenceSession(str(folder / "model.onnx"), options, providers=[("hip", hip or {}), "cpu"])
        self.opened = time.perf_counter() - start
        self.context = self.config["context_length"]
        self.mask = torch.zeros((batch, self.context), dtype=torch.int64, device="cuda")
        self.tokens = torch.randint(0, 256, (batch, length), device="cuda")
        self.binding = self.session.io_binding()
        self.kept: list[torch.Tensor] = []
        caches: dict[str, torch.Tensor] = {}
        for port in self.session.get_inputs():
            if port.name == "attention_mask":
                self.bind(self.binding.bind_input, port.name, self.mask)
            elif port.name == "input_ids":
                self.bind(self.binding.bind_input, port.name, self.tokens)
            else:
                _, heads, _, size = port.shape
                cache = torch.randn((batch, heads, self.context, size), device="cuda").to(KINDS[port.type])
                caches[port.name.replace("past_key_values", "present")] = cache
                self.bind(self.binding.bind_input, port.name, cache)
        for port in self.session.get_outputs():
            if port.name in caches:
                self.bind(self.binding.bind_output, port.name, caches[port.name])
            else:
                self.logits = torch.empty((batch, length, port.shape[-1]), dtype=KINDS[port.type], device="cuda")
                self.bind(self.binding.bind_output, port.name, self.logits)
        self.caches = list(caches.values())
        self.options = rukh.RunOptions()
        self.stream = torch.cuda.Stream()
        self.options.add_run_config_entry("compute_stream", str(self.stream.cuda_stream))
        torch.cuda.synchronize()

    def bind(self, bind: Callable[..., None], name: str, tensor: torch.Tensor) -> None:
        self.kept.append(tensor)
        element = np.dtype(str(tensor.dtype).removeprefix("torch.")) if tensor.dtype != torch.bfloat16 else "bfloat16"
        bind(name, "hip", 0, element, tuple(tensor.shape), tensor.data_ptr())

    def past(self, tokens: int) -> None:
        self.mask.zero_()
        self.mask[:, : tokens + 1] = 1
        torch.cuda.synchronize()

    def step(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def queue(self) -> None:
        self.session.run_with_iobinding(self.binding, self.options)


def time_of(step: Callable[[], None], steps: int) -> float:
    """Milliseconds: the median of steps that are each waited for."""
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times)


def rukh(folder: Path, arguments: argparse.Namespace) -> None:
    decoder = Decoder(folder, arguments.batch, hip=arguments.hip)
    weights = (folder / "model.onnx.data").stat().st_size
    embedding = decoder.config["vocab_size"] * decoder.config["decoder"]["hidden_size"] * decoder.logits.element_size()
    for past in arguments.past:
        decoder.past(past)
        start = time.perf_counter()
        decoder.step()
        first = time.perf_counter() - start
        for _ in range(WARM_UP):
            decoder.step()
        waited = time_of(decoder.step, arguments.steps)
        start = time.perf_counter()
        for _ in range(arguments.steps):
            decoder.queue()
        host = (time.perf_counter() - start) / arguments.steps * 1e6
        torch.cuda.synchronize()
        queued = (time.perf_counter() - start) / arguments.steps * 1e3
        cache = sum(c[:, :, :past].numel() * c.element_size() for c in decoder.caches)
        bound = (weights - embedding + cache) / arguments.bandwidth / 1e6
        print(
            f"{folder.name} batch {arguments.batch} past {past}: {waited:.3f} ms a step waited for, {queued:.3f} queued"
            f" ({bound / queued:.2f} of the bound {bound:.3f} ms), host {host:.1f} us, opened in"
            f" {decoder.opened:.2f} s, first step {first:.2f} s",
            flush=True,
        )
    if arguments.check:
        check(folder, decoder, arguments)
    if arguments.profile:
        profile(folder, arguments)


def prefill(folder: Path, arguments: argparse.Namespace) -> None:
    rate = product_rate()
    for tokens in arguments.prefill:
        decoder = Decoder(folder, arguments.batch, length=tokens, hip=arguments.hip)
        decoder.past(tokens - 1)
        for _ in range(WARM_UP):
            decoder.step()
        took = time_of(decoder.step, arguments.steps)
        config = decoder.config["decoder"]
        hidden, layers = config["hidden_size"], config["num_hidden_layers"]
        numbers = parameters(folder) - decoder.config["vocab_size"] * hidden
        # Each key with each later query, once for the scores and once for the sums.
        scores = 2 * layers * config["num_attention_heads"] * config["head_size"] * tokens
        operations = 2 * numbers * tokens * arguments.batch + scores * tokens * arguments.batch
        print(
            f"{folder.name} batch {arguments.batch} prefill of {tokens}: {took:.2f} ms,"
            f" {tokens * arguments.batch / took * 1e3:.0f} tokens/s, {operations / took / 1e9:.0f} TFLOP/s"
            f" ({operations / took / 1e9 / rate:.2f} of torch's product, {rate:.0f})",
            flush=True,
        )
        del decoder


def product_rate() -> float:
    """TFLOP/s of torch's product of two matrices of 8192 rows and columns in f16."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.float16) for _ in range(2))
    for _ in range(WARM_UP):
        a @ b
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(WARM_UP):
        a @ b
    torch.cuda.synchronize()
    return 2 * 8192**3 * WARM_UP / (time.perf_counter() - start) / 1e12


def parameters(folder: Path) -> int:
    """Numbers in the weights of products and of the embedding."""
    model = onnx.load(folder / "model.onnx", load_external_data=False)
    bits = {
        node.input[1]: next(a.i for a in node.attribute if a.name == "bits")
        for node in model.graph.node
        if node.op_type == "MatMulNBits"
    }
    weights = [w for w in model.graph.initializer if len(w.dims) > 1 and "scales" not in w.name]
    return sum(int(np.prod(w.dims)) * 8 // bits.get(w.name, 8) for w in weights)


def check(folder: Path, decoder: Decoder, arguments: argparse.Namespace) -> None:
    plain = Decoder(folder, arguments.batch, optimise=False)
    for past in arguments.past:
        apart, largest, caches, not_finite = 0.0, 0.0, 0.0, [0, 0]
        for _ in range(TOKENS):
            decoder.tokens.random_(256)
            torch.cuda.synchronize()
            # Steps that are not waited for come before.
            for _ in range(WARM_UP):
                decoder.queue()
            torch.cuda.synchronize()
            plain.tokens.copy_(decoder.tokens)
            for mine, theirs in zip(plain.caches, decoder.caches, strict=True):
                mine.copy_(theirs)
            both = (decoder, plain)
            for one in both:
                one.past(past)
                one.step()
            torch.cuda.synchronize()
            logits = [one.logits.float() for one in both]
            finite = [all(bool(x.float().isfinite().all()) for x in [one.logits, *one.caches]) for one in both]
            not_finite = [count + (not is_finite) for count, is_finite in zip(not_finite, finite, strict=True)]
            if all(finite):
                apart = max(apart, difference(*logits))
                largest = max(largest, logits[1].abs().max().item())
                # The rows of this token are new.
                pairs = zip(decoder.caches, plain.caches, strict=True)
                rows = [(a[:, :, past].float(), b[:, :, past].float()) for a, b in pairs]
                caches = max(caches, *(difference(a, b) / max(b.abs().max().item(), 1e-6) for a, b in rows))
        told = f"{folder.name} past {past}: logits of {TOKENS} tokens differ by {apart:.2e} of {largest:.2e}"
        told += f", new rows of caches by {caches:.2e} of their largest"
        if any(not_finite):
            told += f"; not finite: {not_finite[0]}, in the unoptimised graph {not_finite[1]}"
        print(told, flush=True)
        if any(not_finite) or apart > MOST_APART * largest or caches > MOST_APART:
            raise SystemExit("the comparison failed")


def difference(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.float() - b.float()).abs().max())


def profile(folder: Path, arguments: argparse.Namespace) -> None:
    """What the operators of a step take, in microseconds, each behind the other."""
    decoder = Decoder(folder, arguments.batch, profile=True, hip=arguments.hip)
    decoder.past(arguments.past[0])
    for _ in range(3):
        decoder.step()
    events = json.loads(Path(decoder.session.end_profiling()).read_text())
    sums: dict[str, list[float]] = {}
    for event in events:
        args = event.get("args", {})
        if event.get("cat") == "Node" or "launches" in args:
            sums.setdefault(f"{args.get('op_name', event['name'])}", []).append(args.get("launches", 0))
    for name, launches in sorted(sums.items(), key=lambda item: -sum(item[1])):
        print(f"  {name}: {len(launches) / 3:.0f} nodes, {sum(launches) / 3:.0f} launches")


def transformers(arguments: argparse.Namespace) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM, StaticCache

    sizes: dict[str, dict[str, int]] = {
        "1b": dict(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32),
        "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32),
    }
    config = LlamaConfig(vocab_size=128256, num_key_value_heads=8, **sizes[arguments.torch])
    torch.set_default_dtype(torch.float16)
    with torch.device("cuda"):
        model = LlamaForCausalLM(config).eval()
    cache = StaticCache(config=config, max_cache_len=2048)
    token = torch.randint(0, 256, (arguments.batch, 1), device="cuda")
    at = torch.zeros(1, dtype=torch.int64, device="cuda")

    def forward(token: torch.Tensor, at: torch.Tensor) -> Any:
        return model(token, past_key_values=cache, cache_position=at, position_ids=at[None], use_cache=True).logits

    compiled = torch.compile(forward, mode="reduce-overhead", fullgraph=False)
    with torch.inference_mode():
        for past in arguments.past:
            at.fill_(past)

            def step() -> None:
                compiled(token, at)
                torch.cuda.synchronize()

            for _ in range(WARM_UP):
                step()
            print(f"torch {arguments.torch} past {past}: {time_of(step, arguments.steps):.3f} ms a step waited for", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--past", type=lambda text: [int(n) for n in text.split(",")], default=[512])
    parser.add_argument("--prefill", type=lambda text: [int(n) for n in text.split(",")])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--bandwidth", type=float, default=4250.0, help="GB/s of a copy, bytes read and written")
    parser.add_argument("--hip", type=lambda text: tuple(text.split("=", 1)), action="append", default=[])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--torch", choices=["1b", "8b"])
    arguments = parser.parse_args()
    arguments.hip = dict(arguments.hip)
    if arguments.torch:
        transformers(arguments)
    for folder in arguments.folders:
        (prefill if arguments.prefill else rukh)(folder, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())
