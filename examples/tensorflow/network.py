"""What training and evaluation share: the network, and the images of Fashion-MNIST as arrays."""
import gzip
import pathlib

import numpy
import tensorflow as tf


def make_network():
    return tf.keras.Sequential([
        tf.keras.Input([28, 28, 1]),
        tf.keras.layers.Conv2D(8, 5, strides=2), tf.keras.layers.BatchNormalization(), tf.keras.layers.ReLU(),
        tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        tf.keras.layers.Flatten(), tf.keras.layers.Dense(10)])


def images_and_labels(directory, split, count=None):
    """split: "train" or "t10k". Images are (count, 28, 28, 1) between 0 and 1."""
    directory = pathlib.Path(directory)
    with gzip.open(directory / f"{split}-images-idx3-ubyte.gz") as file:
        file.read(16)  # the header: 2051, count, height, width
        images = numpy.frombuffer(file.read(784 * count if count else -1), numpy.uint8).reshape(-1, 28, 28, 1)
    with gzip.open(directory / f"{split}-labels-idx1-ubyte.gz") as file:
        file.read(8)  # the header: 2049, count
        labels = numpy.frombuffer(file.read(count if count else -1), numpy.uint8)
    return images.astype("float32") / 255, labels.astype("int64")
