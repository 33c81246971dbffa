#!/usr/bin/env python3
"""Trains a small Keras network on Fashion-MNIST and writes checkpoints ckpt-<step> with tf.train.CheckpointManager.

Beside it, in another terminal, every checkpoint is scored as it appears; TensorFlow's index files show by themselves
when they are whole, so no --pattern and no --ready is needed:

  evaluator --checkpoint-dir ckpt --eval-dir logs/eval --pin --best-metric accuracy --until-step 500 \\
      --exec 'python3 examples/tensorflow/evaluate.py {checkpoint}'

--pin keeps each checkpoint until it is scored, although the manager deletes all but the newest five.
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

from network import images_and_labels, make_network  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--checkpoint-dir", default="ckpt")
    parser.add_argument("--max-steps", type=int, default=500)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--keep", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    tf.keras.utils.set_random_seed(options.seed)
    images, labels = images_and_labels(options.data_dir, "train")
    network = make_network()
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=0.9)
    optimizer.build(network.trainable_variables)
    checkpoint = tf.train.Checkpoint(network=network, optimizer=optimizer)
    manager = tf.train.CheckpointManager(checkpoint, options.checkpoint_dir, options.keep)

    @tf.function
    def train(image, label):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(label, network(image, training=True)))
        optimizer.apply_gradients(zip(tape.gradient(loss, network.trainable_variables), network.trainable_variables))

    for step in range(1, options.max_steps + 1):
        batch = tf.random.uniform([options.batch_size], maxval=len(labels), dtype=tf.int32)
        train(tf.gather(images, batch), tf.gather(labels, batch))
        if step % options.save_every == 0 or step == options.max_steps:
            print(f"step {step}: {manager.save(checkpoint_number=step)}", flush=True)


if __name__ == "__main__":
    main()
