"""Trainers of other people save while the evaluator watches, with the options for each: every checkpoint is scored once,
whole, under its step; and with --tags keras where Keras itself logs.

Imitations of those that are not installed here, and of what goes wrong in the middle, are in
tests/faults/test_evaluator_layouts.py.
"""
import json
import os
import pathlib
import subprocess
import sys

import pytest

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
manager = tensorflow.train.CheckpointManager(tensorflow.train.Checkpoint(model=model, optimizer=model.optimizer), top + "/tf", 2)
board = keras.callbacks.TensorBoard(top + "/logs")
class Save(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        manager.save()
model.fit(x, y, batch_size=8, epochs=3, verbose=0, validation_data=(x, y), callbacks=[board, Save(),
          keras.callbacks.ModelCheckpoint(top + "/keras/model.{epoch:02d}-{val_loss:.2f}.keras"),
          keras.callbacks.ModelCheckpoint(top + "/h5/{epoch:02d}.weights.h5", save_weights_only=True),
          keras.callbacks.ModelCheckpoint(top + "/latest/latest.weights.h5", save_weights_only=True)])
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
    scale = ["--step-scale", "5"]  # batches of an epoch
    ledgers = train(tmp_path, KERAS, {
        "tf": follow(tmp_path, "tf", "--pin", "--tags", "keras"),
        "keras": follow(tmp_path, "keras", "--pattern", "model.{step}-{*}.keras", *scale),
        "h5": follow(tmp_path, "h5", "--pattern", "{step}.weights.h5", "--tags", "keras", *scale),
        "latest": follow(tmp_path, "latest", "--pattern", "latest.weights.h5", "--step-from", "count")})
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


def test_torch(tmp_path):
    pytest.importorskip("torch")
    ledgers = train(tmp_path, TORCH, {
        "torch": follow(tmp_path, "torch", "--pattern", "model_{step}.pt"),
        "distributed": follow(tmp_path, "distributed", "--pattern", "step-{step}/", "--ready", "marker:.metadata"),
        "last": follow(tmp_path, "last", "--pattern", "last.pt", "--step-from", "state.json:trainer.step", "--ready",
                       "quiet:0.5", "--pin")})
    for name, records in ledgers.items():
        assert [(r["step"], r["status"]) for r in records] == [(s, "done") for s in (10, 20, 30)], name
    for record in ledgers["distributed"]:
        directory = tmp_path / f"distributed/step-{record['step']}"
        assert (directory / ".metadata").exists()
        assert record["metrics"]["bytes"] == sum(p.stat().st_size for p in directory.iterdir())
    for record in ledgers["torch"] + ledgers["last"][-1:]:
        path = tmp_path / ("last/last.pt" if record["checkpoint"] == "last.pt" else f"torch/{record['checkpoint']}")
        assert record["metrics"]["bytes"] == path.stat().st_size
