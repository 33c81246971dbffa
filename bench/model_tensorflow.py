#!/usr/bin/env python3
"""The trainer's small models in TensorFlow (graph mode, one thread): lenet, cifar10_cnn, mnist_lstm and mnist_cnn with the
layers, the optimizer and the loss of `trainer describe MODEL`, on a batch of noise that is made before the first step.

Prints `seconds a step: X` of the processor, of the steps after --warm-up.
"""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import model_peer  # noqa: E402
import numpy  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.python.ops import rnn_grad  # noqa: E402,F401  registers the gradient of BlockLSTM

v1 = tf.compat.v1
LSTM_UNITS = 64


def variable(shape, deviation=None):
    """A kernel, or a bias where no deviation is given."""
    return tf.Variable(tf.random.normal(shape, stddev=deviation) if deviation else tf.zeros(shape), use_resource=True)


def decayed(kernel, rate):
    v1.add_to_collection("decay", rate * tf.nn.l2_loss(kernel))
    return kernel


def convolution(x, channels, size, padding="SAME", decay=0):
    kernel = variable([size, size, x.shape[3], channels], 0.05)
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, decayed(kernel, decay) if decay else kernel, 1, padding), variable([channels])))


def dense(x, outputs, decay=0):
    kernel = variable([x.shape[1], outputs], 0.04)
    return tf.nn.bias_add(tf.matmul(x, decayed(kernel, decay) if decay else kernel), variable([outputs]))


def flat(x):
    return tf.reshape(x, [x.shape[0], -1])


def lenet(x):
    x = tf.nn.max_pool2d(convolution(x, 10, 5, "VALID", 0.0001), 2, 2, "VALID")
    x = tf.nn.max_pool2d(convolution(x, 20, 5, "VALID", 0.0001), 2, 2, "VALID")
    return dense(tf.nn.dropout(tf.nn.relu(dense(flat(x), 50, 0.0001)), 0.5), 10)


def cifar10_cnn(x):
    def norm(x):
        return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75)
    x = norm(tf.nn.max_pool2d(convolution(x, 64, 5), 3, 2, "SAME"))
    x = tf.nn.max_pool2d(norm(convolution(x, 64, 5)), 3, 2, "SAME")
    return dense(tf.nn.relu(dense(tf.nn.relu(dense(flat(x), 384, 0.004)), 192, 0.004)), 10)


def mnist_lstm(x):
    """BasicLSTMCell's sums, in the operator that computes all steps."""
    empty, none = tf.zeros([x.shape[0], LSTM_UNITS]), tf.zeros([LSTM_UNITS])
    given = tf.raw_ops.BlockLSTM(seq_len_max=x.shape[1], x=tf.transpose(x, [1, 0, 2]), cs_prev=empty, h_prev=empty,
                                 w=variable([x.shape[2] + LSTM_UNITS, 4 * LSTM_UNITS], 0.05), wci=none, wcf=none, wco=none,
                                 b=variable([4 * LSTM_UNITS]), forget_bias=1.0, cell_clip=-1.0)
    return dense(given.h[-1], 10)


def mnist_cnn(x):
    for size in (5, 3, 3):
        x = tf.nn.max_pool2d(convolution(convolution(x, 128, size), 128, size), 2, 2, "VALID")
    return dense(flat(x), 10)


MODELS = {
    "lenet": (lenet, [28, 28, 1], lambda: v1.train.MomentumOptimizer(0.05, 0.9)),
    "cifar10_cnn": (cifar10_cnn, [24, 24, 3], lambda: v1.train.GradientDescentOptimizer(0.1)),
    "mnist_lstm": (mnist_lstm, [28, 28], lambda: v1.train.AdamOptimizer(0.001)),
    "mnist_cnn": (mnist_cnn, [28, 28, 1], lambda: v1.train.AdamOptimizer(0.001)),
}


def main():
    options = model_peer.parser(__doc__, MODELS).parse_args()
    v1.disable_eager_execution()
    v1.set_random_seed(1)
    model, shape, optimizer = MODELS[options.model]
    noise = numpy.random.default_rng(1)
    images = v1.placeholder(tf.float32, [options.batch_size, *shape])
    labels = v1.placeholder(tf.int32, [options.batch_size])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(images)))
    update = optimizer().minimize(loss + sum(v1.get_collection("decay")))
    fed = {images: noise.random([options.batch_size, *shape], "float32"), labels: noise.integers(0, 10, options.batch_size)}
    with v1.Session(config=v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)) as session:
        session.run(v1.global_variables_initializer())
        model_peer.tell_seconds(options, lambda: session.run(update, fed))


main()
