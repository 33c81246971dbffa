"""A Keras training that logs without TensorFlow's TensorBoard callback: python3 keras_training.py logs/keras"""
import sys

import keras
import numpy as np

import evalboard


def main(directory, epochs=3):
    random = np.random.default_rng(1)
    images = random.random((512, 8)).astype("float32")
    labels = (images.sum(axis=1) > 4).astype("int32")
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2)])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    callback = evalboard.callbacks.KerasCallback(directory, update_freq=4, histogram_freq=1)
    model.fit(images, labels, validation_split=0.25, epochs=epochs, verbose=0, callbacks=[callback])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "logs/keras")
