#!/usr/bin/env python3
"""ResNet-50 v1.5 on noise in PyTorch, eager, channels last, one thread, momentum with weight decay: the same model as
`trainer --model resnet50_torchvision`. Prints the processor time of a step in seconds, without the first one."""
import argparse
import time

import torch
from torch import nn

BLOCKS = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, width, stride of the first


def convolution(inputs, channels, size, stride=1):
    return [nn.Conv2d(inputs, channels, size, stride, size // 2, bias=False), nn.BatchNorm2d(channels)]


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.branch = nn.Sequential(*convolution(inputs, width, 1), nn.ReLU(True), *convolution(width, width, 3, stride),
                                    nn.ReLU(True), *convolution(width, 4 * width, 1))
        self.shortcut = nn.Sequential(*convolution(inputs, 4 * width, 1, stride)) if inputs != 4 * width else nn.Identity()

    def forward(self, x):
        return torch.relu_(self.branch(x) + self.shortcut(x))


def resnet50():
    layers, inputs = [*convolution(3, 64, 7, 2), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for count, width, stride in BLOCKS:
        for number in range(count):
            layers.append(Block(inputs, width, 1 if number else stride))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 1000))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="that are counted")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = resnet50().to(memory_format=torch.channels_last)
    assert sum(p.numel() for p in model.parameters()) == 25_557_032
    optimizer = torch.optim.SGD(model.parameters(), 0.1, 0.9, weight_decay=1e-4)
    images = torch.rand(options.batch_size, 3, 224, 224).to(memory_format=torch.channels_last)
    labels = torch.randint(0, 1000, (options.batch_size,))
    for step in range(options.steps + 1):
        if step == 1:
            begun = time.process_time()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
    print((time.process_time() - begun) / options.steps)


main()
