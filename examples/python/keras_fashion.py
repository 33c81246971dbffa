"""A Keras training with curves and checkpoints: python3 keras_fashion.py --epochs 3. Beside it, at the same time:

    evaluator --checkpoint-dir ckpt/keras --eval-dir runs/keras/eval --model keras_fashion.model --data fashion-mnist
    tensorboard --logdir runs
"""
import argparse

import keras

import evalboard
from fashion import images_and_labels


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-dir", default="runs/keras")
    parser.add_argument("--checkpoint-dir", default="ckpt/keras")
    parser.add_argument("--epochs", type=int, default=3)
    options = parser.parse_args()
    images, labels = images_and_labels()
    layers = keras.layers
    model = keras.Sequential([  # the names are those of keras_fashion.model
        layers.Input((28, 28, 1)),
        layers.Conv2D(8, 3, padding="same", activation="relu", name="conv1"), layers.MaxPooling2D(),
        layers.Conv2D(16, 3, padding="same", activation="relu", name="conv2"), layers.MaxPooling2D(),
        layers.Flatten(), layers.Dense(48, "relu", name="hidden"), layers.Dense(10, name="logits")])
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    callback = evalboard.callbacks.KerasCallback(
        options.log_dir, update_freq=20, histogram_freq=1, checkpoint_dir=options.checkpoint_dir, checkpoint_freq=100)
    model.fit(images, labels, batch_size=128, epochs=options.epochs, verbose=2, callbacks=[callback])


if __name__ == "__main__":
    main()
