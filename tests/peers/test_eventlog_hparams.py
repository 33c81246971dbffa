"""eventlog hparams with the layout of PyTorch's add_hparams, a run named by the time below the writer's own, and with what
TensorBoard's own plugin writes.
"""
import csv
import io
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()


def run(*arguments):
    return subprocess.run([BUILD / "bin/eventlog", *arguments], capture_output=True, text=True, check=True).stdout


def hparams(*arguments):
    """Rows without the run's name, which is a time, and what was said."""
    done = subprocess.run([BUILD / "bin/eventlog", "hparams", "--wide", *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [{k: v for k, v in row.items() if k != "run"} for row in csv.DictReader(io.StringIO(done.stdout))], done.stderr


def test_metrics_of_the_run_above(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    for name, rate in ("a", 0.25), ("b", 0.5):
        with tensorboard.SummaryWriter(tmp_path / "log" / name) as writer:
            for step in range(4):
                writer.add_scalar("loss", rate * (4 - step), step)
                writer.add_scalar("hparam/score", 7, step)
            writer.add_hparams({"rate": rate}, {"hparam/score": 10 * rate})
    metrics = "--metric=loss", "--metric=loss:max", "--metric=hparam/score"
    rows, said = hparams(tmp_path / "log", *metrics)
    assert rows == [{"rate": "0.25", "loss": "0.25", "loss:max": "1.0", "hparam/score": "2.5"},
                    {"rate": "0.5", "loss": "0.5", "loss:max": "2.0", "hparam/score": "5.0"}] and not said
    assert hparams(tmp_path / "log" / "a", *metrics)[0] == rows[:1]  # the run above is then "."


def test_one_run_above_several_sessions(tmp_path):
    """Whose the curves above are nobody can tell, so they are not given to anyone."""
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 1, 0)
        for i in range(3):
            writer.add_hparams({"rate": i}, {"hparam/score": i}, run_name=f"trial-{i}")
    rows, said = hparams(tmp_path, "--metric=loss", "--metric=hparam/score")
    assert rows == [{"rate": f"{i}.0", "loss": "", "hparam/score": f"{i}.0"} for i in range(3)]
    assert said == ("eventlog hparams: run .: loss could belong to any of the 3 runs with hyperparameters below it; "
                    "left out\n")


def test_hparams_of_tensorboards_plugin(tmp_path):
    """Written by the hparams plugin's own API: numbers are doubles, absent ones are empty."""
    api = pytest.importorskip("tensorboard.plugins.hparams.summary")
    writer = pytest.importorskip("tensorboard.summary.writer.event_file_writer")
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    for name, values in ("a", {"batch": 32, "name": 'x, "y"', "ok": True}), ("b", {"batch": 0.5, "größe": "ä"}):
        w = writer.EventFileWriter(str(tmp_path / name))
        event = event_pb2.Event()  # by its bytes: with TensorFlow there the plugin's message is TensorFlow's
        event.summary.ParseFromString(api.session_start_pb(values).SerializeToString())
        w.add_event(event)
        w.close()
    assert run("hparams", tmp_path) == ('run,name,value\na,batch,32.0\na,name,"x, ""y"""\na,ok,True\n'
                                        "b,batch,0.5\nb,größe,ä\n")
    assert json.loads(run("hparams", tmp_path, "--json")) == {
        "header": ["run", "batch", "größe", "name", "ok"],
        "rows": [["a", 32.0, "", 'x, "y"', True], ["b", 0.5, "ä", "", ""]]}
