#!/usr/bin/env python3
"""usage: event_writing_peer.py torch|tensorboardX|eager|function DIRECTORY COUNT

Writes COUNT scalars of four series into one event file as the library's users do, and prints the seconds from opening
until closing has returned. Importing, and tracing the function once, are not counted.
"""
import sys
import time

TAGS = ["loss", "accuracy", "learning_rate", "gradient/norm"]


def summary_writer(module, directory, count):
    started = time.perf_counter()
    writer = module.SummaryWriter(directory)
    for i in range(count):
        writer.add_scalar(TAGS[i & 3], float(i), i >> 2)
    writer.close()
    return time.perf_counter() - started


def eager(directory, count):
    import tensorflow as tf

    started = time.perf_counter()
    writer = tf.summary.create_file_writer(directory)
    with writer.as_default():
        for i in range(count):
            tf.summary.scalar(TAGS[i & 3], float(i), step=i >> 2)
    writer.close()
    return time.perf_counter() - started


def function(directory, count):
    """One graph that loops: Python is not in it."""
    import tensorflow as tf

    def logging(writer):
        @tf.function
        def loop(steps):
            with writer.as_default():
                for step in tf.range(steps):
                    for k, tag in enumerate(TAGS):
                        tf.summary.scalar(tag, tf.cast(4 * step + k, tf.float32), step=step)
        return loop

    loop = logging(writer := tf.summary.create_file_writer(directory))
    loop(tf.constant(1, tf.int64))
    writer.flush()
    started = time.perf_counter()
    loop(tf.constant(count // 4, tf.int64))
    writer.close()
    return time.perf_counter() - started


def main():
    kind, directory, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    if kind == "torch":
        import torch.utils.tensorboard as module
        seconds = summary_writer(module, directory, count)
    elif kind == "tensorboardX":
        import tensorboardX as module
        seconds = summary_writer(module, directory, count)
    else:
        seconds = {"eager": eager, "function": function}[kind](directory, count)
    print(f"{seconds:.6f}")


main()
