"""eventlog tail: the last points, and those that come - byte by byte, from new files and runs, over replacement."""
import json
import os
import pathlib
import select
import struct
import subprocess
import time

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/peers/eventlog_sample"
DEADLINE = 20


def tail(*arguments, status=0):
    done = subprocess.run([TOOL, "tail", *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


class Follow:
    def __init__(self, *arguments):
        self.process = subprocess.Popen([TOOL, "tail", "-f", "--interval", "0.01", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.rest = b""

    def lines(self, count):
        """The next lines; waits for them."""
        end = time.monotonic() + DEADLINE
        while self.rest.count(b"\n") < count:
            assert select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0], self.rest
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more.endswith(b"\n"), "a write that is no whole lines"
            self.rest += more
        lines = self.rest.split(b"\n", count)
        self.rest = lines.pop()
        return [line.decode() for line in lines]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        assert not self.rest


def append(path, data):
    path.parent.mkdir(exist_ok=True)
    with open(path, "ab", buffering=0) as file:
        file.write(data)


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


def test_follows(tmp_path):
    source = tmp_path / "source"
    subprocess.run([SAMPLE, "many", source], check=True)
    path = max((p for p in source.rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)
    data, pieces, at = path.read_bytes(), [], 0
    while at < len(data) and len(pieces) < 60:
        end = at + 16 + struct.unpack_from("<Q", data, at)[0]
        pieces.append(data[at:end])
        at = end
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
