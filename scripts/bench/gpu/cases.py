"""The models, with weights from a seed, their inputs, and their export to ONNX."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

SEED = 7
SEQUENCE = 128


class FirstOutput(torch.nn.Module):
    """A model of transformers that gives one tensor."""

    def __init__(self, model: torch.nn.Module, name: str) -> None:
        super().__init__()
        self.model, self.name = model, name

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return getattr(self.model(tokens), self.name)


class Tiny(torch.nn.Module):
    """Small enough for a trial on a CPU."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.norm = torch.nn.LayerNorm(8)
        self.out = torch.nn.Linear(8, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.conv(image)).mean((2, 3))
        return self.out(self.norm(features)).softmax(-1)


def vision(name: str) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        import torchvision

        return getattr(torchvision.models, name)(weights=None)

    return make


def bert(**sizes: int) -> Callable[[], torch.nn.Module]:
    def make() -> torch.nn.Module:
        from transformers import BertConfig, BertModel

        return FirstOutput(BertModel(BertConfig(**sizes)), "last_hidden_state")

    return make


def gpt2() -> torch.nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return FirstOutput(GPT2LMHeadModel(GPT2Config(use_cache=False)), "logits")


def give_scale(module: torch.nn.Module, given: torch.Tensor) -> None:
    """Lets weights that nobody trained give results of a size that half precision holds: batch normalisations get
    the statistics of this input, and a layer that begins with zeros gets random weights."""
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    for m in module.modules():
        if isinstance(m, torch.nn.Linear) and not m.weight.any():
            torch.nn.init.normal_(m.weight, std=0.02)
    if norms:
        with torch.no_grad():
            module(given)
    module.eval()


LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


@dataclass
class Case:
    """A model at a batch size. `size` is the side of an image, or 0: then inputs are tokens below `tokens`."""

    model: str
    make: Callable[[], torch.nn.Module]
    batch: int
    size: int = 224
    tokens: int = 0

    @property
    def name(self) -> str:
        return f"{self.model} b{self.batch}"

    def input(self, dtype: torch.dtype) -> torch.Tensor:
        generator = torch.Generator().manual_seed(SEED + self.batch)
        if self.tokens:
            return torch.randint(0, self.tokens, (self.batch, SEQUENCE), generator=generator)
        return torch.randn(self.batch, 3, self.size, self.size, generator=generator).to(dtype)

    def module(self, dtype: torch.dtype) -> torch.nn.Module:
        torch.manual_seed(SEED)
        module = self.make().eval()
        give_scale(module, self.input(torch.float32))
        return module.to(dtype)


CASES = [
    *(Case("resnet50", vision("resnet50"), batch) for batch in (1, 8, 64)),
    *(Case("bert_base", bert(), batch, 0, 30522) for batch in (1, 32)),
    *(Case("bert_large", bert(**LARGE), batch, 0, 30522) for batch in (1, 8)),
    *(Case("vit_b_16", vision("vit_b_16"), batch) for batch in (1, 32)),
    *(Case(name, vision(name), 1) for name in ("mobilenet_v3_large", "efficientnet_b0", "convnext_tiny", "swin_t")),
    Case("gpt2", gpt2, 1, 0, 50257),
]
TINY = Case("tiny", Tiny, 2, 16)


def find(name: str) -> Case:
    return next(case for case in [*CASES, TINY] if case.name == name)


def export(case: Case, dtype: torch.dtype, device: str, folder: Path) -> Path:
    """The model in `dtype` as ONNX, and what torch gives in f32 with the same weights rounded to `dtype`. What is
    there already is kept."""
    kind = str(dtype).removeprefix("torch.")
    path = folder / f"{case.model}-b{case.batch}-{kind}" / "model.onnx"
    if (path.parent / "done.json").exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    module, given = case.module(dtype).to(device), case.input(dtype).to(device)
    names = {"input_names": ["input"], "output_names": ["output"]}
    with torch.no_grad():
        torch.onnx.export(module, (given,), str(path), dynamo=True, opset_version=18, verbose=False, **names)
        exact = module.float()
        # Products in f32 as they are, without TF32.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        reference = exact(given.float() if given.is_floating_point() else given)
    np.savez(path.parent / "reference.npz", output=reference.cpu().numpy())
    (path.parent / "done.json").write_text(json.dumps({"torch": torch.__version__}))
    return path
