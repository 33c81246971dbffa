#!/usr/bin/env python3
"""ResNet-50 v1.5 on noise in PyTorch, eager, channels last, one thread, momentum with weight decay: the same model as
`trainer --model resnet50_torchvision`. Prints the processor time of a step in seconds, without the first one."""
import argparse
import time

import torch
from torch import nn
from torch.nn import functional

BLOCKS = ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2))  # blocks, width, stride of the first


def convolution(inputs, channels, size, stride=1):
    return nn.Conv2d(inputs, channels, size, stride, size // 2, bias=False)


class Block(nn.Module):
    """Parts have torchvision's names, as the variables of our checkpoints."""

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, width, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = convolution(width, 4 * width, 1), nn.BatchNorm2d(4 * width)
        self.downsample = nn.Sequential(convolution(inputs, 4 * width, 1, stride), nn.BatchNorm2d(4 * width)) \
            if inputs != 4 * width else nn.Identity()

    def forward(self, x):
        y = torch.relu_(self.bn1(self.conv1(x)))
        y = torch.relu_(self.bn2(self.conv2(y)))
        return torch.relu_(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.bn1 = convolution(3, 64, 7, 2), nn.BatchNorm2d(64)
        inputs = 64
        for stage, (count, width, stride) in enumerate(BLOCKS, 1):
            blocks = []
            for number in range(count):
                blocks.append(Block(inputs, width, 1 if number else stride))
                inputs = 4 * width
            setattr(self, f"layer{stage}", nn.Sequential(*blocks))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, x):
        x = functional.max_pool2d(torch.relu_(self.bn1(self.conv1(x))), 3, 2, 1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3, help="that are counted")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = ResNet50(1000).to(memory_format=torch.channels_last)
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


if __name__ == "__main__":
    main()
