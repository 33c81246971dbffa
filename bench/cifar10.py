"""CIFAR-10 for the peers of the benchmarks: read with numpy, and augmented as the trainer does it (the recipe of
TensorFlow's research/resnet: two zeros on each side, random 32x32 crop, random flip, standardised)."""
import pathlib

import numpy


def load(directory, split):
    """images (n, 32, 32, 3) uint8, labels (n) int64"""
    directory = pathlib.Path(directory)
    if not (directory / "test_batch.bin").exists():
        directory = directory / "cifar-10-batches-bin"
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] if split == "train" else ["test_batch.bin"]
    rows = numpy.concatenate([numpy.fromfile(directory / name, "uint8").reshape(-1, 3073) for name in names])
    return (numpy.ascontiguousarray(rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)),
            rows[:, 0].astype("int64"))


def standardise(images):
    x = images.reshape(len(images), -1).astype("float32")
    x -= x.mean(axis=1, keepdims=True)
    x /= numpy.maximum(x.std(axis=1, keepdims=True), 1 / numpy.sqrt(x.shape[1]))
    return x.reshape(images.shape)


def augment(images, random):
    padded = numpy.pad(images, ((0, 0), (2, 2), (2, 2), (0, 0)))
    out = numpy.empty_like(images)
    for i, (top, left, flip) in enumerate(random.integers(0, (5, 5, 2), (len(images), 3))):
        crop = padded[i, top:top + 32, left:left + 32]
        out[i] = crop[:, ::-1] if flip else crop
    return standardise(out)


def batches(directory, size, steps, seed):
    """Yields `steps` training batches (float32 NHWC, labels): epoch after epoch in a random order."""
    images, labels = load(directory, "train")
    random, order = numpy.random.default_rng(seed), numpy.empty(0, int)
    for _ in range(steps):
        while len(order) < size:
            order = numpy.concatenate([order, random.permutation(len(images))])
        chosen, order = order[:size], order[size:]
        yield augment(images[chosen], random), labels[chosen]
