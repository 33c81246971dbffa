"""Each command of docs/tasks.md does its task, on runs as they are in real life."""
import csv
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

import pytest

import kinds_log
import ranks
import waiting

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
DAY = 86400
SSH = """#!/bin/sh
# `ssh [-t] HOST COMMAND...` to this machine
[ "$1" = -t ] && shift
shift
exec "$@"
"""


def tasks():
    rows = re.findall(r"^\| (.+?) \| `(.+)` \|$", (ROOT / "docs" / "tasks.md").read_text(), re.M)
    return [(task, command.replace(r"\|", "|")) for task, command in rows]


def write(directory, *points):
    """points: (tag, step, value, wall time)."""
    lines = "".join(json.dumps(dict(zip(("tag", "step", "value", "wall_time"), p))) + "\n" for p in points)
    subprocess.run([BUILD / "bin/eventlog", "write", "--new", "-d", directory, "-"], input=lines, text=True, check=True)


def curve(rate, final, start):
    return [(tag, step, value, start + step / rate) for step in range(0, 101, 10)
            for tag, value in (("accuracy", min(final, 0.1 + step / 90)), ("loss", 2 / (1 + step)))]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    top, now = tmp_path_factory.mktemp("tasks"), time.time()
    runs = kinds_log.write(top / "runs")  # images, and runs with hyperparameters
    for run, rate, final in ("mpi", 2, 0.95), ("ps", 1, 0.93), ("seed-1", 1, 0.89), ("seed-2", 1, 0.91):
        write(runs / run, *curve(rate, final, now - 3600))
    write(runs / "broken", *curve(1, 0.5, now - 3600), ("loss", 110, float("nan"), now - 3000))
    write(runs / "restarted", *curve(1, 0.9, now - 9000))
    write(runs / "restarted", *[(t, s + 50, v, w + 500) for t, s, v, w in curve(1, 0.9, now - 9000)])
    write(runs / "old", *curve(1, 0.9, now - 90 * DAY))
    for file in (runs / "old").iterdir():
        os.utime(file, (now - 90 * DAY,) * 2)
    data = ranks.write_cifar(top / "data", records=20)
    ranks.train(0, "--run-option", "single", "--model", "cifar10_cnn", "--data", "cifar10", "--data-dir", data, "--batch-size", 4,
                "--max-steps", 8, "--save-checkpoint-steps", 4, "--checkpoint-dir", top / "ckpt", "--log-dir", top / "train")
    subprocess.run([BUILD / "bin/evaluator", "--checkpoint-dir", top / "ckpt", "--eval-dir", runs / "ps/eval", "--model",
                    "cifar10_cnn", "--data", "cifar10", "--data-dir", data, "--once"], check=True)
    (top / "bin").mkdir()
    (top / "bin/ssh").write_text(SSH)
    (top / "bin/ssh").chmod(0o755)
    return top


def environment(place):
    folders = place / "bin", BUILD / "bin", pathlib.Path(sys.executable).parent, os.environ["PATH"]
    return {**os.environ, "PATH": ":".join(map(str, folders)),
            "COLUMNS": "200"}


def run(place, command, status=0):
    done = subprocess.run(["sh", "-c", command], cwd=place, env=environment(place), capture_output=True, text=True,
                          timeout=waiting.DEADLINE)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def follow(place, command):
    """A new point comes while it follows."""
    process = subprocess.Popen(["sh", "-c", command], cwd=place, env=environment(place), stdout=subprocess.PIPE, text=True,
                               start_new_session=True)
    try:
        while "mpi" not in process.stdout.readline():
            assert process.poll() is None
        write(place / "runs/mpi", ("newest", 7, 42, time.time()))
        assert any("newest" in line for line in process.stdout)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT)


def check_csv(place, name):
    return list(csv.DictReader((place / name).open()))


def ranked(place, command):
    rows = list(csv.DictReader(run(place, command).splitlines()))
    assert [r["run"] for r in rows][:2] == ["mpi", "ps"] and len(rows) == 5


def compared(place, command):
    assert re.findall(r"^  (mpi|ps) .* 0\.9(?:5|3)0", run(place, command), re.M) == ["mpi", "ps"]


def diverged(place, command):
    rows = list(csv.DictReader(run(place, command, status=1).splitlines()))
    assert [(r["run"], r["tag"]) for r in rows] == [("broken", "loss")]


def reached(place, command):
    rows = re.findall(r"^  (\S+) +(\d+|-) ", run(place, command), re.M)
    assert rows[0] == ("mpi", "80") and ("ps", "80") in rows[1:] and ("seed-1", "-") in rows


def newest(place, command):
    assert {"mpi", "ps", "broken"} <= {line.split("\t")[0] for line in run(place, command).splitlines()}


def smooth(place, command):
    assert "loss" in run(place, command) and "smoothing 0.9" in run(place, command)


def band(place, command):
    run(place, command)
    assert "deviation" in (place / "seeds.svg").read_text()


def hyperparameters(place, command):
    assert {"trial-0", "trial-1"} <= {r["run"] for r in csv.DictReader(run(place, command).splitlines())}


def one_tag(place, command):
    run(place, command)
    assert {r["tag"] for r in check_csv(place, "accuracy.csv")} == {"accuracy"}


def pandas(place, command):
    assert re.search(r"\[\d+ rows x 5 columns\]", run(place, command))


def recent(place, command):
    run(place, command)
    assert {"mpi", "ps"} <= {r["run"] for r in check_csv(place, "new.csv")}
    assert not {"old", "restarted"} & {r["run"] for r in check_csv(place, "new.csv")}


def images(place, command):
    run(place, command)
    assert list((place / "images").rglob("*.png"))


def merged(place, command):
    run(place, command)
    assert len(list((place / "whole").iterdir())) == 1


def pruned(place, command):
    assert re.search("^old ", run(place, command.replace("--delete ", "")), re.M) and (place / "runs/old").exists()
    run(place, command)
    assert not (place / "runs/old").exists() and (place / "runs/mpi").exists()


def trained(place, command):
    assert re.search(r"^finished +8 +8 ", run(place, command), re.M)


def evaluated(place, command):
    assert "ended" in run(place, command)


def best(place, command):
    assert re.search(r"best .* at step \d+, .*model\.ckpt-\d", run(place, command))


def different(place, command):
    assert "A" in run(place, command, status=1)


def tensor(place, command):
    assert re.search(r"global_step.*8", run(place, command), re.S)


def live(place, command):
    """Its page is tested in test_eventlog_watch.py; here only that it is there."""
    done = subprocess.run(["sh", "-c", command], cwd=place, env=environment(place), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=waiting.DEADLINE)
    assert done.returncode == 2 and "terminal" in done.stderr


CHECKS = [ranked, compared, diverged, reached, newest, follow, live, smooth, band, hyperparameters, one_tag, pandas, recent, images,
          merged, pruned, trained, evaluated, best, different, tensor]


def test_every_task_is_here():
    assert len(tasks()) == len(CHECKS) == 21


@pytest.mark.parametrize("number", range(len(CHECKS)), ids=[c.__name__ for c in CHECKS])
def test_task(place, number):
    task, command = tasks()[number]
    assert shlex.split(command)[0] in ("eventlog", "evaluator", "trainer", "checkpoint", "dataset", "ssh", "python3"), task
    CHECKS[number](place, command)
