"""A detector in the manner of YOLOv8-n."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class CBS(nn.Module):
    def __init__(self, a, b, k=1, s=1):
        super().__init__()
        self.c, self.bn = nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b, eps=1e-3)

    def forward(self, x):
        return F.silu(self.bn(self.c(x)))


class Bottle(nn.Module):
    def __init__(self, c, add):
        super().__init__()
        self.a, self.b, self.add = CBS(c, c, 3), CBS(c, c, 3), add

    def forward(self, x):
        y = self.b(self.a(x))
        return x + y if self.add else y


class C2f(nn.Module):
    def __init__(self, a, b, n, add=True):
        super().__init__()
        self.h = b // 2
        self.i, self.o = CBS(a, b), CBS((2 + n) * self.h, b)
        self.m = nn.ModuleList(Bottle(self.h, add) for _ in range(n))

    def forward(self, x):
        y = list(self.i(x).split(self.h, 1))
        for m in self.m:
            y.append(m(y[-1]))
        return self.o(torch.cat(y, 1))


class SPPF(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.i, self.o, self.p = CBS(c, c // 2), CBS(c * 2, c), nn.MaxPool2d(5, 1, 2)

    def forward(self, x):
        x = self.i(x)
        a = self.p(x)
        b = self.p(a)
        return self.o(torch.cat([x, a, b, self.p(b)], 1))


class Detect(nn.Module):
    def __init__(self, chans, nc=80, reg=16):
        super().__init__()
        self.nc, self.reg = nc, reg
        cb, cc = 64, 80
        self.box = nn.ModuleList(
            nn.Sequential(CBS(c, cb, 3), CBS(cb, cb, 3), nn.Conv2d(cb, 4 * reg, 1)) for c in chans
        )
        self.cls = nn.ModuleList(
            nn.Sequential(CBS(c, cc, 3), CBS(cc, cc, 3), nn.Conv2d(cc, nc, 1)) for c in chans
        )
        self.register_buffer("proj", torch.arange(reg).float())

    def forward(self, feats):
        outs, anchors, strides = [], [], []
        for i, f in enumerate(feats):
            h, w, s = f.shape[2], f.shape[3], 8 * 2**i
            yy, xx = torch.meshgrid(torch.arange(h) + 0.5, torch.arange(w) + 0.5, indexing="ij")
            anchors.append(torch.stack([xx, yy], 0).flatten(1))
            strides.append(torch.full((1, h * w), float(s)))
            outs.append(torch.cat([self.box[i](f), self.cls[i](f)], 1).flatten(2))
        anchors, strides = torch.cat(anchors, 1), torch.cat(strides, 1)
        box, cls = torch.cat(outs, 2).split((4 * self.reg, self.nc), 1)
        b, _, a = box.shape
        dist = (box.view(b, 4, self.reg, a).softmax(2) * self.proj[None, None, :, None]).sum(2)
        lt, rb = dist.chunk(2, 1)
        x1, x2 = anchors[None] - lt, anchors[None] + rb
        return torch.cat([torch.cat([(x1 + x2) / 2, x2 - x1], 1) * strides, cls.sigmoid()], 1)


class Yolo(nn.Module):
    def __init__(self, w=(16, 32, 64, 128, 256)):
        super().__init__()
        a, b, c, d, e = w
        self.s1 = nn.Sequential(CBS(3, a, 3, 2), CBS(a, b, 3, 2), C2f(b, b, 1), CBS(b, c, 3, 2), C2f(c, c, 2))
        self.s2 = nn.Sequential(CBS(c, d, 3, 2), C2f(d, d, 2))
        self.s3 = nn.Sequential(CBS(d, e, 3, 2), C2f(e, e, 1), SPPF(e))
        self.t1, self.t2 = C2f(e + d, d, 1, False), C2f(d + c, c, 1, False)
        self.d1, self.b1 = CBS(c, c, 3, 2), C2f(c + d, d, 1, False)
        self.d2, self.b2 = CBS(d, d, 3, 2), C2f(d + e, e, 1, False)
        self.head = Detect((c, d, e))

    def forward(self, input):
        p3 = self.s1(input)
        p4 = self.s2(p3)
        p5 = self.s3(p4)
        up = lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest")
        t4 = self.t1(torch.cat([up(p5), p4], 1))
        n3 = self.t2(torch.cat([up(t4), p3], 1))
        n4 = self.b1(torch.cat([self.d1(n3), t4], 1))
        return self.head([n3, n4, self.b2(torch.cat([self.d2(n4), p5], 1))])
