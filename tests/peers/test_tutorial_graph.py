"""TensorFlow's CIFAR-10 tutorial and our trainer resume each other's checkpoints of cifar10_cnn: the graph that the
tutorial builds, with its losses and their moving averages, restores all of its variables from ours, and goes on.
"""
import os
import re
import subprocess

import numpy
import pytest

tf = pytest.importorskip("tensorflow")
import ranks  # noqa: E402
import seed_models  # noqa: E402
from waiting import DEADLINE  # noqa: E402

v1 = tf.compat.v1
BATCH = 8
AVERAGES = {"cross_entropy/avg", "local3/weight_loss/avg", "local4/weight_loss/avg", "total_loss/avg"}


class Tutorial:
    """cifar10.py's graph of training: inference(), loss(), train(), and the Saver of a MonitoredTrainingSession."""

    def __init__(self):
        self.graph = tf.Graph()
        with self.graph.as_default():
            step = v1.train.get_or_create_global_step()
            self.images = v1.placeholder(tf.float32, [BATCH, 24, 24, 3])
            self.labels = v1.placeholder(tf.int64, [BATCH])
            logits = seed_models.MODELS["cifar10_cnn"].build(self.images, True)
            trainable = v1.trainable_variables()
            losses = []
            for scope in ("local3", "local4"):
                weights, = (v for v in trainable if v.op.name == f"{scope}/weights")
                with tf.name_scope(f"{scope}/"):
                    losses.append(tf.multiply(tf.nn.l2_loss(weights), 0.004, name="weight_loss"))
            cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
            losses.append(tf.reduce_mean(cross_entropy, name="cross_entropy"))
            self.total = tf.add_n(losses, name="total_loss")
            averages = v1.train.ExponentialMovingAverage(0.9, name="avg").apply(losses + [self.total])
            with v1.control_dependencies([averages]):
                gradients = v1.train.GradientDescentOptimizer(0.1)
                update = gradients.apply_gradients(gradients.compute_gradients(self.total), global_step=step)
            with v1.control_dependencies([update]):
                self.train = v1.train.ExponentialMovingAverage(0.9999, step).apply(trainable)
            self.variables = {v.op.name: v for v in v1.global_variables()}
            self.saver = v1.train.Saver()

    def session(self):
        return v1.Session(graph=self.graph)


def train(directory, data, steps, *options):
    """Runs our trainer; returns the losses it logged, by step, and all it said."""
    words = ranks.command(0, "--model", "cifar10_cnn", "--data", "cifar10", "--data-dir", data, "--batch-size", BATCH,
                          "--max-steps", steps, "--checkpoint-dir", directory, "--log-every", 1, "--keep", 0, *options)
    run = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE, env=ranks.ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return {int(step): float(loss) for step, loss in re.findall(r"^step: (\d+), loss: ([\d.]+)", run.stderr, re.M)}, \
        run.stderr


def test_they_resume_each_other(tmp_path):
    data, ours, theirs = ranks.write_cifar(tmp_path / "data"), tmp_path / "ours", tmp_path / "theirs"
    losses, _ = train(ours, data, 5)
    reader = tf.train.load_checkpoint(str(ours / "model.ckpt-5"))
    tutorial = Tutorial()
    names = set(reader.get_variable_to_shape_map())
    assert AVERAGES < set(tutorial.variables) and len(tutorial.variables) == 25
    assert {name for name in names if not name.startswith("evalboard/")} == set(tutorial.variables)
    average = 0.0  # what the tutorial's recurrence makes of the losses that were logged with three decimals
    for step in range(1, 6):
        average -= 0.1 * (average - losses[step])
    assert reader.get_tensor("total_loss/avg") == pytest.approx(average, abs=1e-3)
    parts = sum(reader.get_tensor(name) for name in AVERAGES - {"total_loss/avg"})
    assert parts == pytest.approx(reader.get_tensor("total_loss/avg"), rel=1e-5)

    random = numpy.random.default_rng(1)
    feed = {tutorial.images: random.normal(size=(BATCH, 24, 24, 3)), tutorial.labels: random.integers(10, size=BATCH)}
    os.mkdir(theirs)
    with tutorial.session() as session:
        tutorial.saver.restore(session, str(ours / "model.ckpt-5"))  # fails if one variable is missing
        average, step = tutorial.variables["total_loss/avg"], tutorial.variables["global_step"]
        before = session.run(average)
        total, _ = session.run([tutorial.total, tutorial.train], feed)
        after, step = session.run([average, step])
        assert step == 6 and after == pytest.approx(before - 0.1 * (before - total), rel=1e-5)
        tutorial.saver.save(session, str(theirs / "model.ckpt"), global_step=6)

    losses, said = train(theirs, data, 7, "--log-every", 1)
    assert "resuming from" in said and "begins anew" not in said
    last = tf.train.load_checkpoint(str(theirs / "model.ckpt-7")).get_tensor("total_loss/avg")
    assert last == pytest.approx(after - 0.1 * (after - losses[7]), abs=1e-3)
