"""Rotation and the resume policies as both of TensorBoard's loaders show them: what eventlog.h promises of each."""
import os
import pathlib
import subprocess

import pytest

from tensorboard_server import ALL_POINTS, TensorBoard
from waiting import DEADLINE, wait_for

pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
WRITER = BUILD / "tests/programs/write_events"
COUNT = 3000


def write(run, tag, first, count, *words):
    subprocess.run([WRITER, run, "--tag", tag, "--first", str(first), "--count", str(count), *map(str, words)],
                   check=True, timeout=DEADLINE, stdout=subprocess.DEVNULL)


def shows(board, run, tag, wanted):
    def steps():
        return [step for step, _, _ in board.points(run, f"{tag}/0")]

    wait_for(lambda: steps() == wanted, lambda: f"{wanted} of {tag} in {run}, not {steps()}")


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


@pytest.fixture(scope="module", params=["fast", "python"])
def board(request, logdir, tmp_path_factory):
    output = tmp_path_factory.mktemp("board") / "output"
    with TensorBoard(logdir, output, ALL_POINTS, loader=request.param) as tensorboard:
        yield tensorboard


def span(*ends):
    return [step for first, last in zip(ends[::2], ends[1::2]) for step in range(first, last)]


def test_append(board):
    shows(board, "append", "again", span(0, 130))
    shows(board, "append", "stale", span(0, 100))


def test_new(board):
    """The default loader drops from the first new step on; the other shows both."""
    shows(board, "new", "again", span(0, 80) if board.loader == "fast" else span(0, 100, 50, 80))
    shows(board, "new", "stale", span(0, 100))


def test_purge(board):
    """The tail of a tag that is not logged again stays in the default loader, and so do steps until it is."""
    shows(board, "purge", "again", span(0, 80))
    shows(board, "purge", "stale", span(0, 100) if board.loader == "fast" else span(0, 50))
    shows(board, "later", "again", span(0, 90) if board.loader == "fast" else span(0, 50, 60, 90))


def test_rotation_while_it_looks_on(board, logdir):
    """A writer that begins a new file every 4 kB, one run a loader: every point is shown, in order."""
    run = f"rotation-{board.loader}"
    write(logdir / run, "loss", 0, COUNT, "--pace", 1, "--buffer", 500, "--rotate", 4000)
    assert len(list((logdir / run).iterdir())) > 20
    shows(board, run, "loss", span(0, COUNT))
