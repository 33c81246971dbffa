"""eventlog tail: the last points, and those that come - byte by byte, from new files and runs, over replacement."""
import json
import os
import pathlib
import select
import struct
import subprocess
import time
import zlib

from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/peers/eventlog_sample"


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
