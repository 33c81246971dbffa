#!/usr/bin/env python3
"""The LSTM of MNIST in TensorFlow (graph mode): the recipe of model/file/recipe.c, of the training set without
its first 5,000 images. One process takes the images of all workers of a step together: the mean of their gradients.

Prints `step N, accuracy X` of all test images every --evaluate steps.
"""
import argparse
import gzip
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.ops import rnn_grad  # noqa: E402,F401  registers the gradient of BlockLSTM

v1 = tf.compat.v1
ROWS, PIXELS, UNITS, HELD_OUT = 28, 28, 64, 5000


def idx(directory, name, head):
    """What is behind the head of an idx file, gzipped or not."""
    path = pathlib.Path(directory) / name
    data = path.read_bytes() if path.exists() else gzip.decompress(path.with_name(name + ".gz").read_bytes())
    return numpy.frombuffer(data, "uint8", offset=head)


def images(directory, part):
    return (idx(directory, f"{part}-images-idx3-ubyte", 16).reshape(-1, ROWS, PIXELS).astype("float32") / 255,
            idx(directory, f"{part}-labels-idx1-ubyte", 8).astype("int32"))


def logits(x):
    """BasicLSTMCell's variables and initial values, in the operator that computes it."""
    kernel = v1.get_variable("kernel", [PIXELS + UNITS, 4 * UNITS], tf.float32, v1.glorot_uniform_initializer())
    bias = v1.get_variable("bias", [4 * UNITS], tf.float32, v1.zeros_initializer())
    empty, none = tf.zeros([tf.shape(x)[0], UNITS]), tf.zeros([UNITS])
    given = tf.raw_ops.BlockLSTM(seq_len_max=ROWS, x=tf.transpose(x, [1, 0, 2]), cs_prev=empty, h_prev=empty, w=kernel,
                                 wci=none, wcf=none, wco=none, b=bias, forget_bias=1.0, cell_clip=-1.0)
    out = v1.get_variable("out", [UNITS, 10], tf.float32, v1.glorot_uniform_initializer())
    return tf.matmul(given.h[-1], out) + v1.get_variable("out_bias", [10], tf.float32, v1.zeros_initializer())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--batch-size", type=int, default=96, help="images of all workers together (96)")
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--evaluate", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    v1.disable_eager_execution()
    v1.set_random_seed(options.seed)
    train, test = images(options.data_dir, "train"), images(options.data_dir, "t10k")
    train = [array[HELD_OUT:] for array in train]
    order = numpy.random.default_rng(options.seed).permutation(len(train[0]))
    x, y = v1.placeholder(tf.float32, [None, ROWS, PIXELS]), v1.placeholder(tf.int32, [None])
    found = logits(x)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=found))
    update = v1.train.AdamOptimizer(0.001).minimize(loss)
    accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(found, 1, tf.int32), y), tf.float32))
    with v1.Session(config=v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as session:
        session.run(v1.global_variables_initializer())
        for step in range(1, options.steps + 1):
            chosen = order[numpy.arange((step - 1) * options.batch_size, step * options.batch_size) % len(order)]
            session.run(update, {x: train[0][chosen], y: train[1][chosen]})
            if step % options.evaluate == 0:
                print(f"step {step}, accuracy {session.run(accuracy, {x: test[0], y: test[1]}):.4f}", flush=True)


main()
