"""A diffusion UNet: residual blocks, self- and cross-attention, skip connections."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class Res(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(32, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.t = nn.Linear(temb, cout)
        self.n2, self.c2 = nn.GroupNorm(32, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))


class Attn(nn.Module):
    def __init__(self, d, ctx, heads=4):
        super().__init__()
        self.h = heads
        self.q, self.k = nn.Linear(d, d, bias=False), nn.Linear(ctx, d, bias=False)
        self.v, self.o = nn.Linear(ctx, d, bias=False), nn.Linear(d, d)

    def forward(self, x, c):
        b, s, d = x.shape
        sp = lambda t: t.reshape(b, -1, self.h, d // self.h).transpose(1, 2)
        a = F.scaled_dot_product_attention(sp(self.q(x)), sp(self.k(c)), sp(self.v(c)))
        return self.o(a.transpose(1, 2).reshape(b, s, d))


class SpatialTransformer(nn.Module):
    def __init__(self, d, ctx):
        super().__init__()
        self.norm, self.pin, self.pout = nn.GroupNorm(32, d), nn.Conv2d(d, d, 1), nn.Conv2d(d, d, 1)
        self.l1, self.l2, self.l3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.a1, self.a2 = Attn(d, d), Attn(d, ctx)
        self.f1, self.f2 = nn.Linear(d, 8 * d), nn.Linear(4 * d, d)

    def forward(self, x, c):
        b, d, h, w = x.shape
        y = self.pin(self.norm(x)).flatten(2).transpose(1, 2)
        z = self.l1(y)
        y = y + self.a1(z, z)
        y = y + self.a2(self.l2(y), c)
        u, g = self.f1(self.l3(y)).chunk(2, -1)
        y = y + self.f2(u * F.gelu(g))
        return x + self.pout(y.transpose(1, 2).reshape(b, d, h, w))


class UNet(nn.Module):
    def __init__(self, cin=4, base=96, mult=(1, 2, 4), ctx=256):
        super().__init__()
        self.base, t = base, base * 4
        self.te = nn.Sequential(nn.Linear(base, t), nn.SiLU(), nn.Linear(t, t))
        self.inc = nn.Conv2d(cin, base, 3, padding=1)
        self.down, self.up, chans, c = nn.ModuleList(), nn.ModuleList(), [base], base
        for i, m in enumerate(mult):
            for _ in range(2):
                blk = nn.ModuleList([Res(c, base * m, t)])
                c = base * m
                if i:
                    blk.append(SpatialTransformer(c, ctx))
                self.down.append(blk)
                chans.append(c)
            if i < len(mult) - 1:
                self.down.append(nn.ModuleList([nn.Conv2d(c, c, 3, 2, 1)]))
                chans.append(c)
        self.mid = nn.ModuleList([Res(c, c, t), SpatialTransformer(c, ctx), Res(c, c, t)])
        for i, m in reversed(list(enumerate(mult))):
            for j in range(3):
                blk = nn.ModuleList([Res(c + chans.pop(), base * m, t)])
                c = base * m
                if i:
                    blk.append(SpatialTransformer(c, ctx))
                if i and j == 2:
                    blk.append(nn.Conv2d(c, c, 3, padding=1))
                self.up.append(blk)
        self.outn, self.outc = nn.GroupNorm(32, c), nn.Conv2d(c, cin, 3, padding=1)

    def forward(self, sample, timestep, context):
        half = self.base // 2
        f = torch.exp(-math.log(10000.0) * torch.arange(half) / half)
        a = timestep[:, None].float() * f[None]
        t = self.te(torch.cat([a.cos(), a.sin()], -1))
        x = self.inc(sample)
        skips = [x]
        for blk in self.down:
            for m in blk:
                x = (
                    m(x, t)
                    if isinstance(m, Res)
                    else m(x, context)
                    if isinstance(m, SpatialTransformer)
                    else m(x)
                )
            skips.append(x)
        x = self.mid[2](self.mid[1](self.mid[0](x, t), context), t)
        for blk in self.up:
            x = torch.cat([x, skips.pop()], 1)
            for m in blk:
                if isinstance(m, nn.Conv2d):
                    x = F.interpolate(x, scale_factor=2.0, mode="nearest")
                    x = m(x)
                else:
                    x = m(x, t) if isinstance(m, Res) else m(x, context)
        return self.outc(F.silu(self.outn(x)))
