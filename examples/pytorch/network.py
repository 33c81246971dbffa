"""What training and evaluation share: the network, and the images of Fashion-MNIST as tensors."""
import gzip
import pathlib

import numpy
import torch


def make_network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 5, stride=2), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 16, 5, stride=2), torch.nn.ReLU(),
        torch.nn.Flatten(), torch.nn.Linear(256, 10))


def images_and_labels(directory, split, count=None):
    """split: "train" or "t10k". Images are (count, 1, 28, 28) between 0 and 1."""
    directory = pathlib.Path(directory)
    with gzip.open(directory / f"{split}-images-idx3-ubyte.gz") as file:
        file.read(16)  # the header: 2051, count, height, width
        images = numpy.frombuffer(file.read(784 * count if count else -1), numpy.uint8).reshape(-1, 1, 28, 28)
    with gzip.open(directory / f"{split}-labels-idx1-ubyte.gz") as file:
        file.read(8)  # the header: 2049, count
        labels = numpy.frombuffer(file.read(count if count else -1), numpy.uint8)
    return torch.from_numpy(images.astype("float32") / 255), torch.from_numpy(labels.astype("int64"))
