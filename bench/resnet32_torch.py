#!/usr/bin/env python3
"""ResNet-32 on CIFAR-10 in PyTorch, eager, channels last, one thread: the same model and recipe as `trainer --model
resnet32` (pre-activation, leaky ReLU 0.1, batch norm with epsilon 0.001, weight decay 0.0002 on kernels, momentum).
The two convolutions of stride 2 pad a zero on each side, as is usual in PyTorch, instead of one after.

Prints `step: N, loss: X` every --log-every steps, and with --evaluate `evaluation: step N, precision P` at those
steps, over the whole test set with the moving statistics. Batches are made before the first step unless --fresh.
"""
import argparse
import itertools
import math

import cifar10
import torch
from torch import nn
from torch.nn import functional

KERNEL_DECAY, SLOPE = 0.0002, 0.1


def batch_norm(channels):
    return nn.BatchNorm2d(channels, eps=0.001, momentum=0.1)


def convolution(inputs, channels, stride=1):
    layer = nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
    nn.init.normal_(layer.weight, std=math.sqrt(2 / (9 * channels)))
    return layer


class Unit(nn.Module):
    def __init__(self, inputs, channels, shared):
        super().__init__()
        self.shared, self.added = shared, channels - inputs
        self.norm1, self.norm2 = batch_norm(inputs), batch_norm(channels)
        self.convolution1 = convolution(inputs, channels, 2 if self.added else 1)
        self.convolution2 = convolution(channels, channels)

    def forward(self, x):
        y = functional.leaky_relu(self.norm1(x), SLOPE)
        shortcut = y if self.shared else x
        y = functional.leaky_relu(self.norm2(self.convolution1(y)), SLOPE)
        y = self.convolution2(y)
        if self.added:
            shortcut = functional.avg_pool2d(shortcut, 2)
            shortcut = functional.pad(shortcut, (0, 0, 0, 0, self.added // 2, self.added // 2))
        return y + shortcut


class ResNet32(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = convolution(3, 16)
        widths = [16] * 6 + [32] * 5 + [64] * 5
        self.units = nn.Sequential(*(Unit(a, b, i == 0) for i, (a, b) in enumerate(itertools.pairwise(widths))))
        self.norm, self.logit = batch_norm(64), nn.Linear(64, 10)
        bound = math.sqrt(3 / 64)
        nn.init.uniform_(self.logit.weight, -bound, bound)
        nn.init.zeros_(self.logit.bias)

    def forward(self, x):
        x = functional.leaky_relu(self.norm(self.units(self.first(x))), SLOPE)
        return self.logit(x.mean((2, 3)))


def tensors(images, labels):
    images = torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(memory_format=torch.channels_last)
    return images, torch.from_numpy(labels)


def evaluate(network, directory):
    images, labels = cifar10.load(directory, "test")
    network.eval()
    right = 0
    with torch.no_grad():
        for i in range(0, len(images), 500):
            x, y = tensors(cifar10.standardise(images[i:i + 500]), labels[i:i + 500])
            right += int((network(x).argmax(1) == y).sum())
    network.train()
    return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fresh", action="store_true", help="make each batch when it is wanted")
    parser.add_argument("--evaluate", type=int, default=0, metavar="N", help="score the test set every N steps")
    parser.add_argument("--bfloat16", action="store_true", help="forward under torch.autocast")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.manual_seed(options.seed)
    network = ResNet32().to(memory_format=torch.channels_last)
    kernels = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() == 1]
    optimizer = torch.optim.SGD([{"params": kernels, "weight_decay": KERNEL_DECAY}, {"params": others}],
                                lr=options.learning_rate, momentum=0.9)
    batches = cifar10.batches(options.data_dir, options.batch_size, options.steps, options.seed)
    batches = (tensors(*batch) for batch in batches)
    for step, (images, labels) in enumerate(batches if options.fresh else list(batches), 1):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=options.bfloat16):
            logits = network(images)
        loss = functional.cross_entropy(logits.float(), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.log_every == 0:
            print(f"step: {step}, loss: {loss.item():.3f}", flush=True)
        if options.evaluate and step % options.evaluate == 0:
            print(f"evaluation: step {step}, precision {evaluate(network, options.data_dir):.4f}", flush=True)


if __name__ == "__main__":
    main()
