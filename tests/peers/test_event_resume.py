"""Rotation and the resume policies as both of TensorBoard's loaders show them: what eventlog.h promises of each."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
WRITER = BUILD / "tests/faults/write_events"
DEADLINE = 60
COUNT = 3000


def write(run, tag, first, count, *words):
    subprocess.run([WRITER, run, "--tag", tag, "--first", str(first), "--count", str(count), *map(str, words)],
                   check=True, timeout=DEADLINE, stdout=subprocess.DEVNULL)


class Board:
    def __init__(self, logdir, fast, output):
        with open(output, "w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--port", "0", "--host", "127.0.0.1",
                 f"--load_fast={fast}", "--reload_interval=1", "--samples_per_plugin=scalars=100000"], stdout=log,
                stderr=log)
        end = time.monotonic() + DEADLINE
        while not (match := re.search(r"http://\S+?:\d+/", output.read_text())):
            assert time.monotonic() < end and self.process.poll() is None, output.read_text()
            time.sleep(0.05)
        self.base = match.group() + "data/plugin/scalars/scalars?"

    def steps(self, run, tag):
        query = urllib.parse.urlencode({"run": run, "tag": f"{tag}/0"})
        try:
            with urllib.request.urlopen(self.base + query, timeout=30) as answer:
                return [point[1] for point in json.load(answer)]
        except urllib.error.HTTPError:  # not known yet
            return []

    def shows(self, run, tag, wanted):
        end = time.monotonic() + 20
        while (steps := self.steps(run, tag)) != wanted and time.monotonic() < end:
            time.sleep(0.1)
        assert steps == wanted


@pytest.fixture(scope="module")
def logdir(tmp_path_factory):
    """Runs of two processes, one after the other: 0 to 99 of `again` and `stale`, then `again` from 50 or 60 on."""
    logs = tmp_path_factory.mktemp("logs")
    for run, words in {"purge": ("--resume", "purge", "--purge", 50), "later": ("--resume", "purge", "--purge", 50),
                       "new": (), "append": ("--resume", "append")}.items():
        write(logs / run, "stale", 0, 100)
        write(logs / run, "again", 0, 100, "--resume", "append")
        first = {"later": 60, "append": 100}.get(run, 50)
        write(logs / run, "again", first, 30, *words)
    assert len(list((logs / "append").iterdir())) == 1 and len(list((logs / "purge").iterdir())) == 2
    return logs


@pytest.fixture(scope="module", params=["default", "python"])
def board(request, logdir, tmp_path_factory):
    if request.param == "default":
        pytest.importorskip("tensorboard_data_server")
    b = Board(logdir, "true" if request.param == "default" else "false", tmp_path_factory.mktemp("board") / "output")
    b.default = request.param == "default"
    yield b
    b.process.terminate()
    b.process.wait()


def span(*ends):
    return [step for first, last in zip(ends[::2], ends[1::2]) for step in range(first, last)]


def test_append(board):
    board.shows("append", "again", span(0, 130))
    board.shows("append", "stale", span(0, 100))


def test_new(board):
    """The default loader drops from the first new step on; the other shows both."""
    board.shows("new", "again", span(0, 80) if board.default else span(0, 100, 50, 80))
    board.shows("new", "stale", span(0, 100))


def test_purge(board):
    """The tail of a tag that is not logged again stays in the default loader, and so do steps until it is."""
    board.shows("purge", "again", span(0, 80))
    board.shows("purge", "stale", span(0, 100) if board.default else span(0, 50))
    board.shows("later", "again", span(0, 90) if board.default else span(0, 50, 60, 90))


def test_rotation_while_it_looks_on(board, logdir):
    """A writer that begins a new file every 4 kB, one run a loader: every point is shown, in order."""
    run = f"rotation-{'default' if board.default else 'python'}"
    write(logdir / run, "loss", 0, COUNT, "--pace", 1, "--buffer", 500, "--rotate", 4000)
    assert len(list((logdir / run).iterdir())) > 20
    board.shows(run, "loss", span(0, COUNT))
