"""A filter that matches nothing is told with the nearest names, by every command, and is never a success."""
import os
import pathlib
import subprocess

import pytest

from waiting import DEADLINE

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"


def eventlog(*words):
    return subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE)


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


def told(status, *words):
    result = eventlog(*words)
    assert result.returncode == status, result.stderr
    return result.stderr


def test_plugin(log):
    assert "--plugin 'scalar': no plugin matches; did you mean 'scalars'?\n" in told(1, "tags", log, "--plugin", "scalar")
    assert told(0, "tags", log, "--plugin", "sc*") == ""
    assert "--plugin 'images'" in told(1, "tags", log, "--plugin", "scalars", "--plugin", "images")


def test_metric(kinds):
    """The column is there all the same, empty."""
    result = eventlog("hparams", kinds, "--wide", "--metric", "losss:min", "--metric", "loss")
    assert result.returncode == 1 and result.stdout.startswith("run,augment,optimizer,rate,losss:min,loss\ntrial-0,")
    assert "--metric 'losss:min': no tag matches; did you mean 'loss'" in result.stderr and result.stderr.count("\n") == 1
    assert "no run has hyperparameters" in told(1, "hparams", kinds, "--run", "kinds")


def test_names_of_rewriting_commands(log, tmp_path):
    out = "-o", tmp_path / "out"
    assert "GLOB 'los': no tag matches; did you mean 'loss' or 'precision'?\n" in told(1, "drop-tag", "los", log, *out)
    assert "--tag 'los': no tag matches" in told(1, "drop-tag", "--tag", "los", "--tag", "pre*", log, "-f", *out)
    assert "GLOB" not in told(0, "drop-tag", "loss", log, "-f", *out)
    assert "OLD 'los': no tag matches; did you mean 'loss' or 'precision'?\n" in told(1, "rename-tag", "los=x", log, "-f", *out)
    assert "OLD 'los*'" in told(1, "rename-tag", "-e", "los*=y", "-e", "loss=x", log, "-f", *out)  # a name, no pattern
    assert "--regex '^los$': no tag matches" in told(1, "rename-tag", "--regex", "^los$=y", log, "-f", *out)
    assert told(0, "rename-tag", "--regex", "^lo=y", log, "-f", *out) == ""
    assert "--tags 'los': no tag matches; did you mean 'loss'" in told(1, "split", "--tags", "a=los", "--tags", "b=pre*", log,
                                                                       "--rest", "c", "-f", *out)
    assert told(0, "split", "--tags", "a=loss", "--rest", "c", log, "-f", *out) == ""
    assert "--steps 'late=50:': no value at these steps\n" in told(1, "split", "--steps", "late=50:", "--steps", "early=:50",
                                                                     log, "-f", *out)


@pytest.mark.parametrize("command", ["stats", "tail", "compare", "plot", "export", "export --format=wide"])
def test_only_other_values(kinds, command):
    """Who asks for texts learns that they are there, and how to see them."""
    said = told(1, *command.split(), kinds, "--tag", "text/*")
    assert "nothing matched: series with such tags have no scalar points, but other values; 'eventlog tail --all'" in said


@pytest.mark.parametrize("command", ["stats", "tail", "compare", "plot", "export", "export --format=jsonl",
                                     "export --format=wide", "export --format=reduce"])
@pytest.mark.parametrize("kind, tags", [("image", "*image*"), ("histogram", "*histogram*"), ("text", "text/*")])
def test_only_other_kinds(kinds, command, kind, tags, tmp_path):
    """Without any filter, too: what the log has instead of points, and the command for it."""
    told(0, "drop-tag", "--keep", tags, kinds, "-o", tmp_path / "log")
    said = told(1, *command.split(), tmp_path / "log")
    assert "no scalar points, but other values; 'eventlog tail --all'" in said and f" of kind {kind}" in said
    assert ("--format=histograms" in said) == (kind == "histogram")


@pytest.mark.parametrize("command", ["stats", "tail", "compare", "plot", "export", "export --format=wide"])
def test_nothing_in_a_range(log, command):
    """Where no filter explains it, it is said all the same."""
    assert told(1, *command.split(), log, "--from-step", "100") == f"eventlog {command.split()[0]}: nothing matched\n"
