"""The event writer killed, starved of disk, and many at once in one directory; TensorBoard looks on.

The helper write_events writes scalars (the value at a step is the step modulo 1000) and says what was flushed.
"""
import collections
import contextlib
import json
import os
import pathlib
import random
import re
import struct
import subprocess
import time

import pytest

from tensorboard_server import ALL_POINTS, TensorBoard
from waiting import DEADLINE, wait_for

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
HELPER, TOOL = BUILD / "tests" / "programs" / "write_events", BUILD / "bin" / "eventlog"


def start(directory, *words, prefix=(), **keywords):
    return subprocess.Popen([*prefix, HELPER, directory, *map(str, words)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **keywords)


def write(directory, *words):
    out, err = (process := start(directory, *words)).communicate(timeout=DEADLINE)
    assert process.returncode == 0, err
    return out


def points(*paths):
    """{(run, tag): [(step, value), ...]} of all points in file order, as the tool reads them."""
    run = subprocess.run([TOOL, "export", "--format=csv", "--order=file", *paths], capture_output=True,
                         text=True)
    assert run.returncode == 0 or "no points" in run.stderr, run.stderr
    lines = run.stdout.splitlines()
    columns = lines[0].split(",")
    series = collections.defaultdict(list)
    for line in lines[1:]:
        row = dict(zip(columns, line.split(",")))
        series[row["run"], row["tag"]].append((int(row["step"]), float(row["value"])))
    return series


def walk(path):
    """How many whole records the file has, and bytes behind them."""
    data, at, records = path.read_bytes(), 0, 0
    while len(data) - at >= 12:
        length, = struct.unpack_from("<Q", data, at)
        if len(data) - at < length + 16:
            break
        at += length + 16
        records += 1
    return records, len(data) - at


def verify(*paths):
    run = subprocess.run([TOOL, "verify", "--json", *paths], capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


def whole_or_being_written(*paths):
    """Whether the files are whole. Where they are not, the one thing that may be wrong is an incomplete last record: a
    writer's thread tries again all the time, and cuts off what the disk took of a record."""
    status, said = verify(*paths)
    assert status in (0, 1), said
    assert {f["kind"] for f in json.loads(said)["findings"] if f["level"] != "note"} <= {"partial"}, said
    return status == 0


def event_files(run):
    return sorted(path for path in run.iterdir() if "tfevents" in path.name) if run.exists() else []


def python_loader(run):
    """The steps of a run as TensorBoard's Python loader reads them, file by file."""
    from tensorboard.backend.event_processing import event_file_loader

    return [event.step for path in event_files(run)
            for event in event_file_loader.EventFileLoader(str(path)).Load() if event.HasField("summary")]


def test_killed_at_random_moments(tmp_path):
    """200 times kill -9 in ten runs that go on each time, with buffers, queues and rotation; a TensorBoard reads on
    meanwhile. What was flushed is there, nothing is torn but the end, and every loader shows every point."""
    chance, torn, killed = random.Random(1), 0, 0
    kinds = [(), ("--buffer", 4096), ("--queue", 100000), ("--rotate", 20000),
             ("--queue", 100000, "--rotate", 20000, "--buffer", 4096)]
    written = dict.fromkeys([tmp_path / f"run{i}" for i in range(10)], 0)
    with TensorBoard(tmp_path, tmp_path / "tensorboard.log", ALL_POINTS) as tensorboard:
        for number in range(200):
            run = tmp_path / f"run{number % 10}"
            process = start(run, "--first", written[run], "--resume", "append", "--pace", 50, "--flush-every", 70,
                            *kinds[number % len(kinds)])
            out = process.stdout.readline() if number % 2 else ""  # while it writes; or while it opens, perhaps
            time.sleep(chance.uniform(0.001, 0.02))  # the moment is the test, nothing is waited for
            process.kill()
            out, err = out + process.stdout.read(), process.stderr.read()
            process.wait()
            assert not err
            killed += "open" in out
            files = event_files(run)
            # Only the newest file may end in half a record.
            records, tails = zip(*map(walk, files)) if files else ((), ())
            assert not any(tails[:-1])
            whole = sum(records) - sum(count > 0 for count in records)
            flushed = [int(step) for step in re.findall(r"flushed 0 (\d+)\n", out)]
            assert whole >= max(flushed, default=-1) + 1 and whole >= written[run]
            written[run] = whole
            if files and chance.random() < 0.2:  # the kernel cuts a write short where it likes
                with open(files[-1], "ab") as file:
                    file.write(files[-1].read_bytes()[:chance.randrange(1, 24)])
                    torn += 1
        for run in written:  # a last time, to the end
            write(run, "--first", written[run], "--resume", "append", "--count", 10)
            written[run] += 10
        assert torn > 10 and killed >= 100 and sum(written.values()) > 3000
        assert verify(tmp_path)[0] == 0, verify(tmp_path)[1]
        series = points(tmp_path)
        for run, count in written.items():
            assert series[run.name, "t/0"] == [(step, step % 1000) for step in range(count)]
            assert python_loader(run) == list(range(count))
            wait_for(lambda: [step for step, _, _ in tensorboard.points(run.name, "t/0")] == list(range(count)),
                     f"{run.name} in TensorBoard")


def test_many_writers_in_one_directory(tmp_path):
    """Eight processes of two threads, each thread with a writer, in one run directory for 2.5 s, with rotation: all
    points readable, no file of two writers, verify has nothing to say."""
    run = tmp_path / "run"
    processes = [start(run, "--tag", f"p{i}", "--threads", 2, "--seconds", 2.5, "--pace", 5, "--rotate", 20000)
                 for i in range(8)]
    for process in processes:
        out, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0 and not err, err
    files = event_files(run)
    assert len(files) > 32
    status, said = verify("--strict", run)
    assert status == 0, said
    series = points(run)
    assert {tag for _, tag in series} == {f"p{i}/{k}" for i in range(8) for k in range(2)}
    for row in series.values():
        assert len(row) > 500 and row == [(step, step % 1000) for step in range(len(row))]
    owners = [{tag for _, tag in points(path)} for path in files]
    assert all(len(owner) <= 1 for owner in owners)


@contextlib.contextmanager
def small_disk(path):
    """A file system of 1 MiB; needs the right to mount, or user namespaces."""
    path.mkdir()
    mount = ["sh", "-c", 'mount -t tmpfs -o size=1m none "$0" && exec "$@"', str(path)]
    for prefix in (["unshare", "--mount"], ["unshare", "--mount", "--map-root-user"]):
        if subprocess.run([*prefix, *mount, "true"], capture_output=True).returncode == 0:
            # A process that stays holds the mount; its view of the path is /proc/PID/root/PATH.
            keeper = subprocess.Popen([*prefix, *mount, "sh", "-c", "echo; exec cat"], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE)
            keeper.stdout.readline()
            try:
                yield pathlib.Path(f"/proc/{keeper.pid}/root{path}")
            finally:
                keeper.communicate()
            return
    pytest.skip("no right to mount a small file system")


@pytest.mark.parametrize("words", [("--buffer", 4000), ("--queue", 100000), ("--queue", 100000, "--drop", 1),
                                   ("--buffer", 1000, "--rotate", 30000), ("--queue", 20000, "--rotate", 30000)],
                         ids=["plain", "queue", "drop", "rotation", "queue and rotation"])
def test_full_disk_then_room(tmp_path, words):
    """A disk of 1 MiB becomes full under load, then has room again: the program goes on, what was refused is counted,
    the files are whole and hold all that was accepted."""
    with small_disk(tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(bytes(900 * 1024))
        process = start(disk / "run", "--until-room", 1, "--count", 2000, *words)
        out = ""
        for line in process.stdout:
            out += line
            if line.startswith("full"):
                wait_for(lambda: whole_or_being_written(disk), "whole files on a disk that is full")
                (disk / "ballast").unlink()
        _, err = process.communicate(timeout=DEADLINE)
        assert process.returncode == 0, err
        calls = int(re.search(r"calls 0 (\d+)", out).group(1))
        events, dropped, errors = map(int, re.search(r"events (\d+) dropped (\d+) errors (\d+)", out).groups())
        assert calls == events + dropped and dropped >= 1000 and errors > 0
        assert points(disk)["run", "t/0"] == [(step, step % 1000) for step in range(events)]
        status, said = verify(disk)
        assert status == 0, said
