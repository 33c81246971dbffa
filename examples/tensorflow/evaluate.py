#!/usr/bin/env python3
"""Scores one checkpoint of train.py and prints its metrics, for evaluator --exec."""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf  # noqa: E402

from network import images_and_labels, make_network  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", help="the prefix, without .index")
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--num-examples", type=int, help="the first so many test images; default: all")
    options = parser.parse_args()

    images, labels = images_and_labels(options.data_dir, "t10k", options.num_examples)
    network = make_network()
    restored = tf.train.Checkpoint(network=network).restore(options.checkpoint)
    restored.assert_existing_objects_matched().expect_partial()  # the optimizer's part is not needed
    logits = tf.concat([network(images[i:i + 500], training=False) for i in range(0, len(labels), 500)], 0)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
    correct = tf.reduce_mean(tf.cast(tf.argmax(logits, 1) == labels, tf.float32))
    print(f"accuracy {float(correct):.9g}")
    print(f"loss {float(loss):.9g}")


if __name__ == "__main__":
    main()
