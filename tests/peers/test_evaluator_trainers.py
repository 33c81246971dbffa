"""Trainers of other people save while the evaluator watches, with the options that docs/trainers.md has for each: every checkpoint is scored once,
whole, under its step; and with --tags keras where Keras itself logs.

Imitations of those that are not installed here, and of what goes wrong in the middle, are in
tests/evaluator/test_evaluator_layouts.py.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

from trainers_page import options
from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
EVALUATOR = BUILD / "bin/evaluator"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}

KERAS = """
import os, numpy, keras, tensorflow
top = os.environ["TOP"]
x, y = numpy.zeros((40, 3), "float32"), numpy.zeros((40, 2), "float32")
model = keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2000), keras.layers.Dense(2)])
model.compile("adam", "mse", metrics=["mae"])
manager = tensorflow.train.CheckpointManager(tensorflow.train.Checkpoint(model=model, optimizer=model.optimizer), top + "/tf", 3)
board = keras.callbacks.TensorBoard(top + "/logs")
class Save(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        manager.save()
model.fit(x, y, batch_size=8, epochs=3, verbose=0, validation_data=(x, y), callbacks=[board, Save(),
          keras.callbacks.ModelCheckpoint(top + "/keras/model.{epoch:02d}-{val_loss:.2f}.keras"),
          keras.callbacks.ModelCheckpoint(top + "/h5/{epoch:02d}.weights.h5", save_weights_only=True),
          keras.callbacks.ModelCheckpoint(top + "/latest/latest.weights.h5", save_weights_only=True)])
"""
TENSORFLOW = """
import os, tensorflow as tf
top, v1 = os.environ["TOP"], tf.compat.v1
with tf.Graph().as_default():
    step = v1.train.get_or_create_global_step()
    v1.get_variable("w", [200, 200])
    advance = v1.assign_add(step, 1)
    hooks = [v1.train.CheckpointSaverHook(top + "/hook", save_steps=10), v1.train.StopAtStepHook(30)]
    with v1.train.MonitoredSession(v1.train.ChiefSessionCreator(), hooks=hooks) as session:
        while not session.should_stop():
            session.run(advance)
checkpoint = tf.train.Checkpoint(w=tf.Variable(tf.zeros([200, 200])))
for epoch in (1, 2, 3):
    checkpoint.write(f"{top}/format/cp-{epoch:04d}.ckpt")
"""
TORCH = """
import json, os, time, torch, torch.distributed.checkpoint as dcp
top = os.environ["TOP"]
for name in ("torch", "distributed", "last"):
    os.makedirs(f"{top}/{name}", exist_ok=True)
for step in (10, 20, 30):
    state = {"w": torch.randn(500, 1000), "step": step}
    torch.save(state, f"{top}/torch/model_{step}.pt")
    torch.save(state, f"{top}/last/last.pt")
    json.dump({"trainer": {"step": step}}, open(f"{top}/last/state.json", "w"))
    dcp.save(state, checkpoint_id=f"{top}/distributed/step-{step}")
    time.sleep(2)  # the time that a training takes from one to the next
"""


def follow(directory, name, *options):
    """An evaluator on directory/name that scores a checkpoint by its bytes; it ends when directory/done is there."""
    score = directory / "score.sh"
    score.write_text('[ -e "$1" ] || set -- "$1".*\necho "bytes $(find "$@" -type f | xargs cat | wc -c)"; echo loss 1\n')
    return subprocess.Popen([EVALUATOR, "--checkpoint-dir", directory / name, "--eval-dir", directory / f"eval-{name}",
                             "--exec", f"sh '{score}' {{checkpoint}}", "--done-file", directory / "done", *options],
                            stderr=subprocess.PIPE, text=True)


def train(directory, program, followers):
    """Runs the trainer beside them; returns the ledgers."""
    run = subprocess.run([sys.executable, "-c", program], env={**ENVIRONMENT, "TOP": str(directory)}, text=True,
                         capture_output=True, timeout=DEADLINE)
    assert run.returncode == 0, run.stderr
    (directory / "done").touch()
    ledgers = {}
    for name, process in followers.items():
        _, said = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, said
        lines = (directory / f"eval-{name}/evaluations.jsonl").read_text().splitlines()
        ledgers[name] = [json.loads(line) for line in lines]
    return ledgers


def tag_steps(run, tag):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    return [event.step for path in sorted(run.glob("events.out.tfevents.*"))
            for event in loader.EventFileLoader(str(path)).Load() for value in event.summary.value if value.tag == tag]


def test_keras(tmp_path):
    pytest.importorskip("keras")
    pytest.importorskip("tensorflow")
    batches = 5  # of an epoch
    ledgers = train(tmp_path, KERAS, {
        "tf": follow(tmp_path, "tf", *options("TensorFlow: CheckpointManager")),
        "keras": follow(tmp_path, "keras", *options("Keras: .keras", batches)),
        "h5": follow(tmp_path, "h5", *options("Keras: .h5", batches)),
        "latest": follow(tmp_path, "latest", *options("Keras: one file, overwritten"))})
    for name in ("tf", "keras", "h5"):
        assert [r["step"] for r in ledgers[name]] == [5, 10, 15], name
        assert all(r["status"] == "done" for r in ledgers[name])
    for name in ("keras", "h5"):
        sizes = [p.stat().st_size for p in sorted((tmp_path / name).iterdir())]
        assert [r["metrics"]["bytes"] for r in ledgers[name]] == sizes
    assert ledgers["latest"][-1]["metrics"]["bytes"] == (tmp_path / "latest/latest.weights.h5").stat().st_size
    assert len({r["digest"] for r in ledgers["latest"]}) == len(ledgers["latest"])
    # The same tag at the same steps as the framework's own.
    theirs = tag_steps(tmp_path / "logs/validation", "evaluation_loss_vs_iterations")
    assert theirs == [5, 10, 15]
    for name in ("tf", "h5"):
        assert tag_steps(tmp_path / f"eval-{name}", "evaluation_loss_vs_iterations") == theirs
        assert tag_steps(tmp_path / f"eval-{name}", "evaluation_bytes_vs_iterations") == theirs


def test_tensorflow(tmp_path):
    pytest.importorskip("tensorflow")
    for name in ("hook", "format"):
        (tmp_path / name).mkdir()
    ledgers = train(tmp_path, TENSORFLOW, {
        "hook": follow(tmp_path, "hook", *options("TensorFlow 1: CheckpointSaverHook")),
        "format": follow(tmp_path, "format", *options("Keras: weights in TensorFlow's format", 5))})
    assert [(r["step"], r["status"]) for r in ledgers["hook"]] == [(s, "done") for s in (0, 10, 20, 30)]
    assert [(r["step"], r["status"]) for r in ledgers["format"]] == [(s, "done") for s in (5, 10, 15)]


def test_torch(tmp_path):
    pytest.importorskip("torch")
    ledgers = train(tmp_path, TORCH, {
        "torch": follow(tmp_path, "torch", *options("PyTorch: torch.save")),
        "distributed": follow(tmp_path, "distributed", *options("PyTorch: torch.distributed.checkpoint")),
        "last": follow(tmp_path, "last", *options("PyTorch: one file, and its step in JSON"))})
    for name, records in ledgers.items():
        assert [(r["step"], r["status"]) for r in records] == [(s, "done") for s in (10, 20, 30)], name
    for record in ledgers["distributed"]:
        directory = tmp_path / f"distributed/step-{record['step']}"
        assert (directory / ".metadata").exists()
        assert record["metrics"]["bytes"] == sum(p.stat().st_size for p in directory.iterdir())
    for record in ledgers["torch"] + ledgers["last"][-1:]:
        path = tmp_path / ("last/last.pt" if record["checkpoint"] == "last.pt" else f"torch/{record['checkpoint']}")
        assert record["metrics"]["bytes"] == path.stat().st_size
