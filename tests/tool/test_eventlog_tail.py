"""eventlog tail: the last points, and those that come - byte by byte, from new files and runs, over replacement."""
import functools
import json
import os
import pathlib
import resource
import select
import shutil
import struct
import subprocess
import time
import zlib

import pytest

from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def tail(*arguments, status=0):
    done = subprocess.run([TOOL, "tail", *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


class Follow:
    def __init__(self, *arguments, interval="0.01", **more):
        self.process = subprocess.Popen([TOOL, "tail", "-f", "--interval", interval, *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
        self.rest = {self.process.stdout: b"", self.process.stderr: b""}

    def lines(self, count, stream=None):
        """The next lines of standard output, or of that stream; waits for them."""
        stream = stream or self.process.stdout
        end = time.monotonic() + DEADLINE
        while self.rest[stream].count(b"\n") < count:
            assert select.select([stream], [], [], max(0, end - time.monotonic()))[0], self.rest
            more = os.read(stream.fileno(), 65536)
            assert more.endswith(b"\n"), "a write that is no whole lines"
            self.rest[stream] += more
        *lines, self.rest[stream] = self.rest[stream].split(b"\n", count)
        return [line.decode() for line in lines]

    def says(self):
        return self.lines(1, self.process.stderr)[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        assert not any(self.rest.values())


def append(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab", buffering=0) as file:
        file.write(data)


def records(data):
    pieces = []
    while data:
        end = 16 + struct.unpack_from("<Q", data)[0]
        pieces.append(data[:end])
        data = data[end:]
    return pieces


def test_last_points(tmp_path):
    log = tmp_path / "log"
    subprocess.run([SAMPLE, "sample", log], check=True)
    every = tail("-n", "-1", log).splitlines()
    assert every[0] == ".\tloss\t0\t0.7\t1700000000.0" and len(every) == 9
    assert tail(log).splitlines() == every
    assert tail("-n", "1", log).splitlines() == [[l for l in every if l.startswith(run)][-1] for run in (".\t", "eval\t")]
    assert tail("-n", "0", log) == ""
    assert all(l.startswith("eval\tloss\t") for l in tail("--run", "eval", "--tag", "loss", log).splitlines())
    exported = subprocess.run([TOOL, "export", "--format=jsonl", log], capture_output=True, text=True).stdout
    assert sorted(tail("--json", log).splitlines()) == sorted(exported.splitlines())
    assert tail(tmp_path / "none", status=2).count("\n") == 1
    (tmp_path / "empty").mkdir()
    tail(tmp_path / "empty", status=1)


def test_changes_are_noticed(tmp_path):
    """Without looking from time to time: points, files, runs, a run that comes back, a run inside a run."""
    source, log = tmp_path / "source", tmp_path / "log"
    subprocess.run([SAMPLE, "many", source], check=True)
    path = max((p for p in source.rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)
    head, *points = records(path.read_bytes())[:8]
    append(log / "a.tfevents.1", head + points[0])
    with Follow("-n", "-1", log, interval="3600") as follow:
        runs = [follow.lines(1)[0].split("\t")[0]]
        append(log / "a.tfevents.1", points[1])
        runs += [follow.lines(1)[0].split("\t")[0]]
        for at, name in enumerate(("a.tfevents.2", "one/a.tfevents.1", "one/two/a.tfevents.1", "three/a.tfevents.1"), 2):
            append(log / name, head + points[at])
            runs += [follow.lines(1)[0].split("\t")[0]]
        shutil.rmtree(log / "three")
        append(log / "three/a.tfevents.2", head + points[6])
        runs += [follow.lines(1)[0].split("\t")[0]]
    assert runs == [".", ".", ".", "one", "one/two", "three", "three"]


def test_follows(tmp_path):
    source = tmp_path / "source"
    subprocess.run([SAMPLE, "many", source], check=True)
    path = max((p for p in source.rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)
    pieces = records(path.read_bytes())[:60]
    whole = tmp_path / "whole" / "a.tfevents.1"
    append(whole, b"".join(pieces))
    want = [l.split("\t", 1)[1] for l in tail("-n", "-1", whole.parent).splitlines()]
    assert len(want) == 59
    log = tmp_path / "log"
    a, b, c = log / "a.tfevents.1", log / "a.tfevents.2", log / "new" / "a.tfevents.1"
    append(a, b"".join(pieces[:5]))

    def told(follow, run, first, last):
        assert follow.lines(last - first) == [f"{run}\t{line}" for line in want[first:last]]

    with Follow("-n", "2", log) as follow:
        told(follow, ".", 2, 4)
        for byte in pieces[5]:
            append(a, bytes([byte]))
        told(follow, ".", 4, 5)
        append(b, pieces[0] + pieces[6])  # rotation
        told(follow, ".", 5, 6)
        append(c, b"".join(pieces[:4]))  # a new run
        told(follow, "new", 0, 3)
        append(a, pieces[6])  # the older file, once more
        told(follow, ".", 5, 6)
        copy = tmp_path / "copy"
        append(copy, a.read_bytes() + pieces[7])
        copy.rename(a)  # a longer copy of itself: goes on
        told(follow, ".", 6, 7)
        append(copy, b"".join(pieces[:1] + pieces[20:22]))
        copy.rename(a)  # another file: from its start
        told(follow, ".", 19, 21)
        a.unlink()
        append(b, pieces[30])
        told(follow, ".", 29, 30)
        append(a, b"".join(pieces[:1] + pieces[40:42]))  # it came back
        told(follow, ".", 39, 41)
        log.rename(tmp_path / "away")
        append(tmp_path / "away" / "a.tfevents.2", pieces[31])
        told(follow, ".", 30, 31)
        (tmp_path / "away").rename(log)
        append(b, pieces[32])
        told(follow, ".", 31, 32)


def test_waits_for_a_first_run_and_ends_when_idle(tmp_path):
    sample = tmp_path / "sample"
    subprocess.run([SAMPLE, "sample", sample], check=True)
    log = tmp_path / "log"
    log.mkdir()
    with Follow("--json", "--idle-timeout", "2", log) as follow:
        (sample / "eval").rename(log / "eval")
        assert {json.loads(line)["run"] for line in follow.lines(5)} == {"eval"}
        assert follow.process.wait(DEADLINE) == 0


def write(log, run, step):
    subprocess.run([TOOL, "write", "--dir", log / run, "--step", str(step), "loss=0.5"], check=True)


def test_waits_for_what_is_not_there(tmp_path):
    """Says so once each time, prints what comes to the others meanwhile, and names runs as it would with all there."""
    one, two = tmp_path / "one", tmp_path / "two"
    with Follow("-n", "-1", "two", one, cwd=tmp_path) as follow:
        assert follow.says() == "eventlog tail: two: does not exist; waiting for it"
        write(two, "a", 1)
        assert follow.lines(1)[0].startswith("two/a\tloss\t1\t")
        assert follow.says() == f"eventlog tail: {one}: does not exist; waiting for it"
        write(one, "b", 2)
        assert follow.lines(1)[0].startswith("one/b\tloss\t2\t")
        two.rename(tmp_path / "away")
        assert follow.says() == "eventlog tail: two: does not exist; waiting for it"
        write(one, "b", 3)
        assert follow.lines(1)[0].startswith("one/b\tloss\t3\t")
        (tmp_path / "away").rename(two)  # it came back, then another in its place
        write(two, "a", 4)
        assert follow.lines(1)[0].startswith("two/a\tloss\t4\t")
        shutil.rmtree(two)
        assert follow.says() == "eventlog tail: two: does not exist; waiting for it"
        write(two, "c", 5)
        assert follow.lines(1)[0].startswith("two/c\tloss\t5\t")
    none = tmp_path / "none"
    done = subprocess.run([TOOL, "tail", "-f", "--idle-timeout", "0.1", none], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (
        1, "", f"eventlog tail: {none}: does not exist; waiting for it\n")


def test_all_kinds(tmp_path):
    """Lines that are no points carry a "type"; the points stay what they were, in the order of the file."""
    picture = tmp_path / "a.png"
    chunk = lambda kind, data: (struct.pack(">I", len(data)) + kind + data  # noqa: E731
                                + struct.pack(">I", zlib.crc32(kind + data)))
    picture.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 3, 2, 8, 0, 0, 0, 0))
                        + chunk(b"IDAT", zlib.compress(bytes(8))) + chunk(b"IEND", b""))
    log = tmp_path / "log"
    subprocess.run([TOOL, "write", "--dir", log, "--step", "5", "--wall-time", "1700000000", "loss=0.5",
                    "--text", "note=a\tb\\c " + "x" * 300, "--image", f"pic={picture}"], check=True)
    points = tail("--json", log)
    lines = [json.loads(line) for line in tail("--json", "--all", log).splitlines()]
    assert [json.loads(line) for line in points.splitlines()] == [l for l in lines if "type" not in l] == [
        {"run": ".", "tag": "loss", "step": 5, "wall_time": 1700000000.0, "value": 0.5}]
    assert lines[1:] == [
        {"type": "text", "run": ".", "tag": "note", "step": 5, "wall_time": 1700000000.0, "bytes": 306, "shape": [],
         "text": "a\tb\\c " + "x" * 300},
        {"type": "image", "run": ".", "tag": "pic", "step": 5, "wall_time": 1700000000.0,
         "bytes": picture.stat().st_size, "width": 3, "height": 2, "count": 1}]
    assert tail("--all", log).splitlines()[1:] == [
        ".\tnote\t5\t<text: a\\x09b\\\\c " + "x" * 194 + "...>\t1700000000.0",
        f".\tpic\t5\t<image: 3x2, {picture.stat().st_size} B>\t1700000000.0"]
    assert len(tail("--all", "-n", "1", log).splitlines()) == 1
    assert [json.loads(line)["type"] for line in tail("--all", "--json", "--tag", "[np]*", log).splitlines()] == [
        "text", "image"]
    golden = tmp_path / "golden"
    subprocess.run([SAMPLE, "golden", golden], check=True)
    assert [json.loads(line).get("type", "point") for line in tail("--all", "--json", "-n", "-1", golden).splitlines()] == [
        "point", "point", "point", "histogram", "image", "audio", "text", "graph", "hparams", "point"]
    with Follow("--all", "--json", "-n", "1", log) as follow:
        assert json.loads(follow.lines(1)[0])["type"] == "image"  # it has begun
        subprocess.run([TOOL, "write", "--dir", log, "--step", "6", "--text", "note=new"], check=True)
        assert json.loads(follow.lines(1)[0])["text"] == "new"


def log_of(directory, runs):
    """A log of so many runs of one file, each with a scalar; the files, and the bytes of each."""
    subprocess.run([TOOL, "write", "--dir", directory / "run0000", "--step", "1", "loss=0.5"], check=True)
    files = [next((directory / "run0000").iterdir())]
    data = files[0].read_bytes()
    for i in range(1, runs):
        files.append(directory / f"run{i:04d}" / files[0].name)
        append(files[-1], data)
    return files, data


def few_descriptors(limit):
    return functools.partial(resource.setrlimit, resource.RLIMIT_NOFILE, (limit, limit))


@pytest.mark.parametrize("limit", [64, 256])
def test_more_runs_than_descriptors(tmp_path, limit):
    """What is there at first, and every point that comes to any run, with a file that is renamed while it is written."""
    log, count = tmp_path / "log", 400
    files, data = log_of(log, count)
    point = records(data)[-1]
    done = subprocess.run([TOOL, "tail", log], preexec_fn=few_descriptors(limit), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and len(done.stdout.splitlines()) == count
    with Follow("-n", "1", log, preexec_fn=few_descriptors(limit)) as follow:
        names = sorted(line.split("\t")[0] for line in follow.lines(count))
        assert names == [file.parent.name for file in files]
        for _ in range(3):
            for file in files:
                append(file, point)
            assert sorted(line.split("\t")[0] for line in follow.lines(count)) == names
        latest = max(file.stat().st_mtime_ns for file in files[:-1])
        while files[-1].stat().st_mtime_ns <= latest:  # the clock of files is coarse: of equals any may be closed
            append(files[-1], point)
            assert follow.lines(1)[0].startswith(names[-1] + "\t")
        moved = files[-1].rename(tmp_path / "elsewhere")
        append(moved, point)
        assert follow.lines(1)[0].startswith(names[-1] + "\t")


def test_descriptors_and_memory_do_not_grow_with_the_runs(tmp_path):
    """At most 64 descriptors, and for a run what is known of it, not a window of its file."""
    log_of(tmp_path / "few", 100)
    log_of(tmp_path / "many", 2000)
    memory = {}
    for name, count in ("few", 100), ("many", 2000):
        with Follow("-n", "1", tmp_path / name) as follow:
            follow.lines(count)
            process = pathlib.Path(f"/proc/{follow.process.pid}")
            status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
            memory[name] = int(status["VmData"].split()[0])
            assert len(list((process / "fd").iterdir())) <= 64 + 5  # the watch, and a directory that is being listed
    assert memory["many"] - memory["few"] < 1900 * 32  # KiB
