"""A llama-style decoder that takes and returns its key and value cache."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(d)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


class CachedBlock(nn.Module):
    def __init__(self, d, heads, kv, ff):
        super().__init__()
        self.h, self.kv, self.hd = heads, kv, d // heads
        self.n1, self.n2 = RMSNorm(d), RMSNorm(d)
        self.q, self.k = nn.Linear(d, d, bias=False), nn.Linear(d, kv * self.hd, bias=False)
        self.v, self.o = nn.Linear(d, kv * self.hd, bias=False), nn.Linear(d, d, bias=False)
        self.gate, self.up = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False)
        self.down = nn.Linear(ff, d, bias=False)

    @staticmethod
    def rope(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat([-b, a], -1) * sin

    def forward(self, x, cos, sin, mask, pk, pv):
        b, s, d = x.shape
        y = self.n1(x)
        q = self.rope(self.q(y).view(b, s, self.h, self.hd).transpose(1, 2), cos, sin)
        k = self.rope(self.k(y).view(b, s, self.kv, self.hd).transpose(1, 2), cos, sin)
        v = self.v(y).view(b, s, self.kv, self.hd).transpose(1, 2)
        k, v = torch.cat([pk, k], 2), torch.cat([pv, v], 2)
        rep = self.h // self.kv

        def widen(t):
            bb, kk, ss, dd = t.shape
            return t[:, :, None].expand(bb, kk, rep, ss, dd).reshape(bb, self.h, ss, dd)

        a = q @ widen(k).transpose(-1, -2) / math.sqrt(self.hd) + mask
        o = (a.softmax(-1) @ widen(v)).transpose(1, 2).reshape(b, s, d)
        x = x + self.o(o)
        y = self.n2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y)), k, v


class CachedLlama(nn.Module):
    def __init__(self, vocab=32000, d=512, layers=8, heads=8, kv=4, ff=1376):
        super().__init__()
        self.emb, self.norm = nn.Embedding(vocab, d), RMSNorm(d)
        self.blocks = nn.ModuleList(CachedBlock(d, heads, kv, ff) for _ in range(layers))
        self.head = nn.Linear(d, vocab, bias=False)
        hd = d // heads
        self.register_buffer("inv", 1.0 / 10000 ** (torch.arange(0, hd, 2).float() / hd))

    def forward(self, input_ids, position_ids, attention_mask, *past):
        x = self.emb(input_ids)
        ang = position_ids[:, None, :, None].float() * self.inv
        cos, sin = torch.cat([ang, ang], -1).cos(), torch.cat([ang, ang], -1).sin()
        total = attention_mask.shape[1]
        keep = torch.arange(total)[None, :] <= position_ids[0][:, None]
        keep = keep[None, None] & (attention_mask[:, None, None, :] > 0)
        mask = torch.where(keep, 0.0, -1e9)
        presents = []
        for i, b in enumerate(self.blocks):
            x, k, v = b(x, cos, sin, mask, past[2 * i], past[2 * i + 1])
            presents += [k, v]
        return (self.head(self.norm(x)), *presents)
