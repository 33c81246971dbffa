#!/usr/bin/env python3
"""Evaluates resnet32 or cifar10_cnn in PyTorch: eager, inference mode, channels last. See evaluation_peer.py."""
import evaluation_peer
import resnet32_torch
import torch
from torch import nn
from torch.nn import functional


class Tutorial(nn.Module):
    """The CNN of TensorFlow's CIFAR-10 tutorial. LocalResponseNorm divides its alpha by its size: 9 channels."""

    def __init__(self):
        super().__init__()
        self.convolution1, self.convolution2 = nn.Conv2d(3, 64, 5, padding=2), nn.Conv2d(64, 64, 5, padding=2)
        self.norm = nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)
        self.local3, self.local4, self.linear = nn.Linear(2304, 384), nn.Linear(384, 192), nn.Linear(192, 10)

    def normalize(self, x):
        return self.norm(x.float()).to(x.dtype)  # PyTorch has it for float32 alone

    @staticmethod
    def pool(x):
        return functional.max_pool2d(functional.pad(x, (0, 1, 0, 1)), 3, 2)  # after a ReLU zeros change nothing

    def forward(self, x):
        x = self.normalize(self.pool(functional.relu(self.convolution1(x))))
        x = self.pool(self.normalize(functional.relu(self.convolution2(x))))
        x = x.permute(0, 2, 3, 1).flatten(1)
        return self.linear(functional.relu(self.local4(functional.relu(self.local3(x)))))


def main():
    options = evaluation_peer.arguments(__doc__)
    torch.set_num_threads(options.threads)
    torch.set_num_interop_threads(1)
    images, labels = resnet32_torch.tensors(*evaluation_peer.data(options))
    network = Tutorial() if options.model == "cifar10_cnn" else resnet32_torch.ResNet32()
    network = network.to(memory_format=torch.channels_last).eval()
    torch.save(network.state_dict(), options.checkpoint)
    if options.bfloat16:
        network, images = network.to(torch.bfloat16), images.to(torch.bfloat16)

    def evaluate():
        right = 0
        with torch.inference_mode():
            for x, y in zip(images.split(options.batch_size), labels.split(options.batch_size)):
                logits = network(x).float()
                functional.cross_entropy(logits, y, reduction="sum").item()
                right += int((logits.argmax(1) == y).sum())
        return right

    evaluation_peer.serve(lambda: network.load_state_dict(torch.load(options.checkpoint)), evaluate, len(labels))


if __name__ == "__main__":
    main()
