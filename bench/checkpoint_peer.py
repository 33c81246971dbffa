#!/usr/bin/env python3
"""Writes and reads checkpoints of noise with a framework's own functions, and says how long each took.

usage: checkpoint_peer.py tensorflow|torch|safetensors MEGABYTES TENSORS   then `write PATH` or `read PATH`, a line each

tensorflow: tf.train.Saver, save and restore of variables. torch: torch.save and torch.load of a dict of tensors.
safetensors: save_file and load_file with PyTorch's tensors. Answers each line with the seconds it took. What a lazy
reader only maps is touched within the time: a checkpoint is read when its values are there.
"""
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy


def tensorflow(arrays):
    import tensorflow as tf
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    session = v1.Session()
    for name, array in arrays.items():
        feed = v1.placeholder(tf.float32, array.shape)
        variable = v1.get_variable(name, array.shape, tf.float32, initializer=tf.zeros_initializer())
        session.run(variable.initializer)
        session.run(variable.assign(feed), {feed: array})
    saver = v1.train.Saver(max_to_keep=0)  # what is old is deleted outside of the time measured
    return (lambda path: saver.save(session, path, write_meta_graph=False, write_state=False),
            lambda path: saver.restore(session, path))


def torch(arrays):
    import torch as t
    tensors = {name: t.from_numpy(array) for name, array in arrays.items()}
    return lambda path: t.save(tensors, path), lambda path: t.load(path, weights_only=True)


def safetensors(arrays):
    import torch as t
    from safetensors.torch import load_file, save_file
    tensors = {name: t.from_numpy(array) for name, array in arrays.items()}
    return lambda path: save_file(tensors, path), lambda path: [x.clone() for x in load_file(path).values()]


def main():
    kind, megabytes, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    each = megabytes * 1000000 // count // 4
    source = numpy.random.default_rng(1)
    arrays = {f"tensor_{i:03}": source.standard_normal(each, numpy.float32) for i in range(count)}
    write, read = {"tensorflow": tensorflow, "torch": torch, "safetensors": safetensors}[kind](arrays)
    for line in sys.stdin:
        what, path = line.split()
        work = {"write": write, "read": read}[what]
        started = time.monotonic()
        result = work(path)
        print(f"{time.monotonic() - started:.6f}", flush=True)
        del result


main()
