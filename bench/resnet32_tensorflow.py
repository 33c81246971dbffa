#!/usr/bin/env python3
"""ResNet-32 on CIFAR-10 in TensorFlow (graph mode, fused batch norm, one thread): the recipe of resnet32_torch.py.

Prints `step: N, loss: X` every --log-every steps. Batches are made before the first step.
"""
import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import cifar10  # noqa: E402
import tensorflow as tf  # noqa: E402

v1 = tf.compat.v1


def batch_norm(x):
    channels = [x.shape[3]]
    scale, offset = (tf.Variable(tf.fill(channels, value), use_resource=True) for value in (1.0, 0.0))
    mean, variance = (tf.Variable(tf.fill(channels, value), use_resource=True, trainable=False) for value in (0.0, 1.0))
    x, batch_mean, batch_variance = v1.nn.fused_batch_norm(x, scale, offset, epsilon=0.001)
    for moving, value in ((mean, batch_mean), (variance, batch_variance)):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, v1.assign_sub(moving, 0.1 * (moving - value)))
    return tf.nn.leaky_relu(x, 0.1)


def kernel(shape, initial):
    variable = tf.Variable(initial(shape), use_resource=True)
    v1.add_to_collection("kernels", variable)
    return variable


def convolution(x, channels, stride=1):
    deviation = (2 / (9 * channels)) ** 0.5
    shape = [3, 3, x.shape[3], channels]
    return tf.nn.conv2d(x, kernel(shape, lambda s: tf.random.normal(s, stddev=deviation)), stride, "SAME")


def resnet32(x):
    x = convolution(x, 16)
    for stage, channels in enumerate((16, 32, 64)):
        for number in range(5):
            y, wider = batch_norm(x), stage > 0 and number == 0
            shortcut = y if stage == number == 0 else x
            y = batch_norm(convolution(y, channels, 2 if wider else 1))
            y = convolution(y, channels)
            if wider:
                shortcut = tf.nn.avg_pool2d(shortcut, 2, 2, "VALID")
                shortcut = tf.pad(shortcut, [[0, 0]] * 3 + [[channels // 4, channels // 4]])
            x = y + shortcut
    x = tf.reduce_mean(batch_norm(x), [1, 2])
    bound = (3 / 64) ** 0.5
    return tf.matmul(x, kernel([64, 10], lambda s: tf.random.uniform(s, -bound, bound))) + tf.Variable(tf.zeros([10]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--log-every", type=int, default=10)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    v1.disable_eager_execution()
    v1.set_random_seed(options.seed)
    images = v1.placeholder(tf.float32, [options.batch_size, 32, 32, 3])
    labels = v1.placeholder(tf.int32, [options.batch_size])
    cross_entropy = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=resnet32(images)))
    decay = 0.0002 * tf.add_n([tf.nn.l2_loss(k) for k in v1.get_collection("kernels")])
    update = v1.train.MomentumOptimizer(options.learning_rate, 0.9).minimize(cross_entropy + decay)
    everything = [update, *v1.get_collection(v1.GraphKeys.UPDATE_OPS)]
    batches = list(cifar10.batches(options.data_dir, options.batch_size, options.steps, options.seed))
    config = v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    with v1.Session(config=config) as session:
        session.run(v1.global_variables_initializer())
        for step, (x, y) in enumerate(batches, 1):
            loss, _ = session.run([cross_entropy, everything], {images: x, labels: y})
            if step % options.log_every == 0:
                print(f"step: {step}, loss: {loss:.3f}", flush=True)


main()
