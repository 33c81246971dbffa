"""What the three trainings beside it share: Fashion-MNIST, as Debian's package dataset-fashion-mnist has it."""
import gzip
import pathlib

import numpy as np

DIRECTORY = "/usr/share/datasets/fashion-mnist"


def images_and_labels(split="train", directory=DIRECTORY):
    """split: "train" or "t10k". Images are (count, 28, 28, 1) between 0 and 1, as `transform unit` of a model file has them."""
    def values(name, header):
        return np.frombuffer(gzip.open(pathlib.Path(directory) / f"{split}-{name}-ubyte.gz").read(), np.uint8, offset=header)

    images = values("images-idx3", 16).reshape(-1, 28, 28, 1)
    return images.astype("float32") / 255, values("labels-idx1", 8).astype("int64")
