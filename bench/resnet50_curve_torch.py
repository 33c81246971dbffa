#!/usr/bin/env python3
"""ResNet-50 on CIFAR-10 scaled to 64x64 in PyTorch, eager, one thread: the training of bench/resnet50_curve.py, from the
weights of a safetensors file, on the samples of a list, with the gradients of --workers workers averaged, each with the batch
statistics of its own part, and the mean of their moving statistics. Kernels have TensorFlow's order (HWIO) in the file.

Prints `step: N, loss: X` of every step, and at the end `accuracy: X` over the test images and `seconds a step: X` of the
processor.
"""
import argparse
import pathlib
import time

import numpy
import safetensors.numpy
import torch
from resnet50_torch import ResNet50
from torch.nn import functional

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of torchvision's models


def read(path, side):
    """images (n, side, side, 3) uint8, labels (n)"""
    rows = numpy.fromfile(path, "uint8").reshape(-1, 1 + 3 * side * side)
    return rows[:, 1:].reshape(-1, side, side, 3), torch.from_numpy(rows[:, 0].astype("int64"))


def pixels(images, layout):
    x = (images.astype("float32") / 255 - numpy.float32(MEAN)) / numpy.float32(DEVIATION)
    return torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(memory_format=layout)


def load(network, path):
    values = safetensors.numpy.load_file(path)
    order = {4: (3, 2, 0, 1), 2: (1, 0), 1: (0,)}
    state = {name: torch.from_numpy(numpy.ascontiguousarray(values[name].transpose(order[values[name].ndim])))
             for name in network.state_dict() if not name.endswith("num_batches_tracked")}
    network.load_state_dict(state, strict=False)


def train_step(network, optimizer, images, labels, workers, layout):
    """The mean loss of all workers; worker i has every workers-th sample from i on."""
    moving = [b for name, b in network.named_buffers() if "running" in name]
    before, sums, loss = [b.clone() for b in moving], [torch.zeros_like(b) for b in moving], 0
    optimizer.zero_grad()
    for worker in range(workers):
        part = functional.cross_entropy(network(pixels(images[worker::workers], layout)), labels[worker::workers]) / workers
        part.backward()
        loss += part.item()
        for b, was, total in zip(moving, before, sums):
            total += b / workers
            b.copy_(was)
    for b, total in zip(moving, sums):
        b.copy_(total)
    optimizer.step()
    return loss


def accuracy(network, images, labels, layout):
    network.eval()
    with torch.no_grad():
        right = sum(int((network(pixels(images[i:i + 100], layout)).argmax(1) == labels[i:i + 100]).sum())
                    for i in range(0, len(images), 100))
    return right / len(images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=pathlib.Path, required=True, help="with train.bin and test.bin")
    parser.add_argument("--side", type=int, required=True)
    parser.add_argument("--weights", required=True, help="safetensors")
    parser.add_argument("--order", required=True, help="numbers of training samples, those of a step after those of another")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--batch-size", type=int, required=True, help="of a worker")
    parser.add_argument("--learning-rate", type=float, required=True)
    parser.add_argument("--decay", type=float, required=True, help="of kernels")
    parser.add_argument("--channels-first", action="store_true", help="in memory, instead of last")
    options = parser.parse_args()
    torch.set_num_threads(1)
    layout = torch.contiguous_format if options.channels_first else torch.channels_last
    network = ResNet50(10).to(memory_format=layout)
    load(network, options.weights)
    kernels = [p for p in network.parameters() if p.dim() > 1]
    others = [p for p in network.parameters() if p.dim() == 1]
    optimizer = torch.optim.SGD([{"params": kernels, "weight_decay": options.decay}, {"params": others}], options.learning_rate, 0.9)
    images, labels = read(options.data_dir / "train.bin", options.side)
    order = numpy.loadtxt(options.order, dtype="int64").reshape(-1, options.workers * options.batch_size)
    begun = time.process_time()
    for step, samples in enumerate(order, 1):
        decayed = options.decay / 2 * sum(float((p.detach() ** 2).sum()) for p in kernels)
        loss = train_step(network, optimizer, images[samples], labels[samples], options.workers, layout)
        print(f"step: {step}, loss: {loss + decayed:.4f}", flush=True)
    print(f"seconds a step: {(time.process_time() - begun) / len(order):.3f}")
    print(f"accuracy: {accuracy(network, *read(options.data_dir / 'test.bin', options.side), layout):.4f}")


main()
