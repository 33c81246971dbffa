"""A filter that matches nothing is told with the nearest names, by every command, and is never a success."""
import os
import pathlib
import subprocess

import pytest

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"


def eventlog(*words):
    return subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    top = tmp_path_factory.mktemp("filters") / "log"
    for run in ("mpi/eval", "ps/eval"):
        for step in (1, 2, 3):
            made = eventlog("write", "-d", top / run, "--step", step, f"loss=0.{step}", f"precision=0.9{step}")
            assert made.returncode == 0, made.stderr
    return top


@pytest.mark.parametrize("command", ["stats", "tags", "compare", "plot", "inspect", "export", "tail", "export --format=wide",
                                     "export --format=json", "inspect --json", "stats --json", "compare --json",
                                     "inspect --tree", "downsample -n 2 -o OUT"])
def test_tag(log, tmp_path, command):
    words = [str(tmp_path / "out") if word == "OUT" else word for word in command.split()]
    result = eventlog(*words, log, "--tag", "precison")
    assert result.returncode == 1
    assert f"eventlog {words[0]}: --tag 'precison': no tag matches; did you mean 'precision' or 'loss'?\n" in result.stderr
    # One pattern of two: what the other matches is there, and it is no success all the same.
    result = eventlog(*[w if w != str(tmp_path / "out") else str(tmp_path / "again") for w in words], log,
                      "--tag", "loss", "--tag", "nosuch")
    assert result.returncode == 1 and "--tag 'nosuch': no tag matches" in result.stderr
    assert "--tag 'loss'" not in result.stderr
    assert eventlog(*[w if w != str(tmp_path / "out") else str(tmp_path / "third") for w in words], log,
                    "--tag", "l*s").returncode == 0


@pytest.mark.parametrize("command", ["stats", "tags", "compare", "plot", "inspect", "export", "tail", "verify", "hparams",
                                     "merge", "split --by run", "drop-tag loss", "rename-tag loss=x", "downsample -n 2"])
def test_run(log, tmp_path, command):
    words = command.split()
    paths = [log, "-o", tmp_path / "out"] if words[0] in ("merge", "split", "drop-tag", "rename-tag", "downsample") else [log]
    result = eventlog(*words, *paths, "--run", "mpi/evla")
    assert result.returncode == 1
    assert f"eventlog {words[0]}: --run 'mpi/evla': no run matches; did you mean 'mpi/eval' or 'ps/eval'?\n" in result.stderr
