#!/usr/bin/env python3
"""Train the example's classifier and write digits.onnx, heldout.bin and sample.npz.

The data are scikit-learn's bundled handwritten digits: 1797 images of 8×8 pixels, each 0 to 16
(E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
Repository, 1998, CC BY 4.0). A fifth of them, 360, are held out of the training and stored for the
example programs; sample.npz has eight of them with torch's scores.

    pip install torch scikit-learn onnx onnxscript
    python examples/digits/train.py
"""

import pathlib
import struct

import numpy as np
import onnx
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
SEED = 0
EPOCHS = 60


class Net(nn.Module):
    """Two convolutions, a pooling, two linear layers: about 40 000 parameters."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.hidden = nn.Linear(32 * 4 * 4, 64)
        self.output = nn.Linear(64, 10)

    def forward(self, image):
        x = F.relu(self.conv1(image / 16))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.dropout(x.flatten(1), 0.3, self.training)
        return self.output(F.relu(self.hidden(x)))


def main():
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    digits = load_digits()
    images = digits.images[:, None].astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=360, random_state=SEED, stratify=digits.target
    )
    net = train(Net(), torch.from_numpy(train_x), torch.from_numpy(train_y))
    correct = (net(torch.from_numpy(test_x)).argmax(1) == torch.from_numpy(test_y)).sum().item()
    print(f"{correct} of {len(test_y)} held-out images are right")
    export(net, HERE / "digits.onnx")
    store(test_x, test_y, HERE / "heldout.bin")
    first = test_x[:8]
    np.savez(HERE / "sample.npz", **{"in:image": first, "out:scores": net(torch.from_numpy(first)).numpy()})


def train(net, images, labels):
    """Adam with a falling rate; each batch is moved by up to one pixel, as handwriting is."""
    optimizer = torch.optim.Adam(net.parameters(), 2e-3)
    batches = -(-len(images) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=EPOCHS * batches)
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(images)).split(64):
            shift = tuple(torch.randint(-1, 2, (2,)).tolist())
            moved = F.pad(images[batch], (1, 1, 1, 1)).roll(shift, (2, 3))[:, :, 1:-1, 1:-1]
            optimizer.zero_grad()
            F.cross_entropy(net(moved), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    return net.eval().requires_grad_(False)


def export(net, path):
    batch = torch.export.Dim("batch")
    program = torch.onnx.export(
        net,
        (torch.zeros(2, 1, 8, 8),),
        input_names=["image"],
        output_names=["scores"],
        dynamic_shapes=({0: batch},),
        opset_version=18,
        dynamo=True,
        external_data=False,
        verbose=False,
    )
    # The exporter notes beside every node where in the source it came from; programs need none of it.
    model = program.model_proto
    for item in (
        *model.graph.node,
        *model.graph.input,
        *model.graph.output,
        *model.graph.value_info,
        model.graph,
    ):
        del item.metadata_props[:]
        item.ClearField("doc_string")
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def store(images, labels, path):
    """Three little-endian uint32 (count, height, width), the pixels as bytes, the labels as bytes."""
    count, _, height, width = images.shape
    with path.open("wb") as file:
        file.write(struct.pack("<3I", count, height, width))
        file.write(images.astype(np.uint8).tobytes())
        file.write(labels.astype(np.uint8).tobytes())


if __name__ == "__main__":
    main()
