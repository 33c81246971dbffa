#!/usr/bin/env python3
"""Evaluates resnet32 or cifar10_cnn in TensorFlow: one tf.function, fused batch norm. See evaluation_peer.py."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import evaluation_peer  # noqa: E402
import tensorflow as tf  # noqa: E402


class Model:
    """Variables are made by the first call and used again, in the same order, by those after it."""

    def __init__(self, forward):
        self.forward, self.variables, self.next = forward, [], 0

    def variable(self, shape, deviation=None, constant=0.0):
        if self.next == len(self.variables):
            self.variables.append(tf.Variable(tf.random.normal(shape, stddev=deviation) if deviation else
                                              tf.fill(shape, constant)))
        self.next += 1
        return self.variables[self.next - 1]

    def __call__(self, x):
        self.next = 0
        return self.forward(self, x)


def convolution(model, x, channels, size=3, stride=1, deviation=None):
    shape = [size, size, x.shape[3], channels]
    kernel = model.variable(shape, deviation or (2 / (size * size * channels)) ** 0.5)
    return tf.nn.conv2d(x, kernel, stride, "SAME")


def batch_norm(model, x):
    scale, offset, mean, variance = (model.variable([x.shape[3]], constant=value) for value in (1.0, 0.0, 0.0, 1.0))
    x, _, _ = tf.compat.v1.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon=0.001, is_training=False)
    return tf.nn.leaky_relu(x, 0.1)


def dense(model, x, outputs):
    return tf.matmul(x, model.variable([x.shape[1], outputs], 0.04)) + model.variable([outputs])


def resnet32(model, x):
    x = convolution(model, x, 16)
    for stage, channels in enumerate((16, 32, 64)):
        for number in range(5):
            y, wider = batch_norm(model, x), stage > 0 and number == 0
            shortcut = y if stage == number == 0 else x
            y = batch_norm(model, convolution(model, y, channels, stride=2 if wider else 1))
            y = convolution(model, y, channels)
            if wider:
                shortcut = tf.nn.avg_pool2d(shortcut, 2, 2, "VALID")
                shortcut = tf.pad(shortcut, [[0, 0]] * 3 + [[channels // 4, channels // 4]])
            x = y + shortcut
    return dense(model, tf.reduce_mean(batch_norm(model, x), [1, 2]), 10)


def cifar10_cnn(model, x):
    def lrn(x):
        return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75)

    def pool(x):
        return tf.nn.max_pool2d(x, 3, 2, "SAME")

    x = lrn(pool(tf.nn.relu(convolution(model, x, 64, 5, deviation=0.05) + model.variable([64]))))
    x = pool(lrn(tf.nn.relu(convolution(model, x, 64, 5, deviation=0.05) + model.variable([64]))))
    x = tf.nn.relu(dense(model, tf.reshape(x, [-1, 2304]), 384))
    return dense(model, tf.nn.relu(dense(model, x, 192)), 10)


def main():
    options = evaluation_peer.arguments(__doc__)
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    images, labels = evaluation_peer.data(options)
    batches = [(tf.constant(images[i:i + options.batch_size]), tf.constant(labels[i:i + options.batch_size]))
               for i in range(0, len(images), options.batch_size)]
    model = Model(resnet32 if options.model == "resnet32" else cifar10_cnn)
    model(batches[0][0][:1])
    checkpoint = tf.train.Checkpoint(variables=model.variables)
    checkpoint.write(options.checkpoint)

    @tf.function
    def score(x, y):
        logits = model(x)
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return loss, tf.reduce_sum(tf.cast(tf.nn.in_top_k(y, logits, 1), tf.int64))

    evaluation_peer.serve(lambda: checkpoint.read(options.checkpoint),
                          lambda: sum(int(score(x, y)[1]) for x, y in batches), len(labels))


main()
