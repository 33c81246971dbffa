"""Files that are no event files, whatever they are called: every command names what they are, and writes nothing of them."""
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import sqlite3
import struct
import subprocess
import zipfile

import pytest

from waiting import wait_for

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
READING = ["inspect", "export --format=csv", "export --format=jsonl", "stats", "tags", "hparams", "tail", "tail --all"]
REWRITING = ["merge", "split --tags all=*", "rename-tag loss=l", "drop-tag loss", "downsample -n 2"]


def run(*arguments, status):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr + done.stdout
    return done


def pytorch(tmp_path):
    """torch.save() since 1.6: all in a folder of the file's name, its pickle first."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("model/data.pkl", b"\x80\x02}q\0.")
        archive.writestr("model/data/0", bytes(4000))
    return data.getvalue()


def sqlite(tmp_path):
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("CREATE TABLE points (step, value)")
    return (tmp_path / "x.db").read_bytes()


def safetensors(tmp_path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(400)


def tensorflow_index(tmp_path):
    return random.Random(1).randbytes(500) + struct.pack("<Q", 0xdb4775248b80fb57)  # LevelDB's magic ends it


CSV = b"step,loss\n" + b"".join(b"%d,0.5\n" % step for step in range(1000))
FILES = {  # what it is called, and its bytes
    "a Git LFS pointer; 'git lfs pull' fetches the file itself": lambda _: b"version https://git-lfs.github.com/spec/v1\noid sha256:"
                                                                         + b"5" * 64 + b"\nsize 12345\n",
    "a text file": lambda _: CSV,
    "JSON text": lambda _: b'{"tag":"loss","step":1,"value":0.5}\n' * 10,
    "it holds no complete record": lambda _: random.Random(2).randbytes(20000),
    "a PyTorch file": pytorch,
    "an SQLite database": sqlite,
    "a safetensors file; 'checkpoint inspect' reads it": safetensors,
    "the index of a TensorFlow checkpoint; 'checkpoint inspect' reads it": tensorflow_index,
}


def says(message, path, what):
    return f"{path}: not an event file: {what}" in message or f"{path}: not an event file, but {what}" in message


@pytest.fixture(params=FILES)
def other(request, tmp_path):
    """The file, and what it is."""
    path = tmp_path / "events.out.tfevents.1700000000.host"
    path.write_bytes(FILES[request.param](tmp_path))
    return path, request.param


def test_repair(other, tmp_path):
    path, what = other
    before = path.read_bytes()
    assert says(run("repair", path, "-o", tmp_path / "new", status=2).stderr, path, what)
    assert says(run("repair", path, "-o", "-", status=2).stderr, path, what)
    assert says(run("repair", "--in-place", path, status=2).stderr, path, what)
    assert path.read_bytes() == before and {p.name for p in tmp_path.iterdir()} <= {path.name, "x.db"}


@pytest.mark.parametrize("command", READING + REWRITING)
def test_every_command(other, command, tmp_path):
    path, what = other
    to = ["-o", tmp_path / "new"] if command in REWRITING else []
    done = run(*command.split(), path, *to, status=2)
    assert says(done.stderr, path, what) and done.stderr.count("not an event file") == 1


def test_verify(other):
    """Its finding, with what the file is beside it."""
    path, what = other
    done = run("verify", "--json", path, status=1)
    assert [f["kind"] for f in json.loads(done.stdout)["findings"]] == ["no_log"] and says(done.stderr, path, what)


def test_compressed(tmp_path):
    path = tmp_path / "points.csv.gz"
    path.write_bytes(gzip.compress(CSV))
    assert says(run("stats", path, status=2).stderr, path, "a text file")
    assert says(run("repair", path, "-o", tmp_path / "new", status=2).stderr, path, "a text file")
    path.write_bytes(b"\x1f\x8b" + random.Random(4).randbytes(500))
    assert "nothing in it can be kept: 1 damaged place, " in run("repair", path, "-o", tmp_path / "new", status=2).stderr
    assert not (tmp_path / "new").exists()


def test_beside_event_files(tmp_path):
    """The others are read all the same."""
    subprocess.run([SAMPLE, "many", tmp_path / "log"], check=True)
    want = run("stats", tmp_path / "log", status=0).stdout
    pointer = tmp_path / "log/a.tfevents"
    pointer.write_bytes(CSV)
    done = run("stats", tmp_path / "log", status=2)
    assert done.stdout == want and says(done.stderr, pointer, "a text file")
    run("drop-tag", "loss", "--in-place", tmp_path / "log", status=2)
    assert pointer.read_bytes() == CSV


def test_followed(tmp_path):
    """Told once; once it is an event file it is read."""
    log, sample = tmp_path / "log", tmp_path / "sample"
    subprocess.run([SAMPLE, "sample", sample], check=True)
    event_file = next(p for p in sample.rglob("*tfevents*") if p.is_file())
    pointer = log / event_file.name
    log.mkdir()
    pointer.write_bytes(CSV)
    with open(tmp_path / "out", "wb") as out, open(tmp_path / "err", "wb") as err:
        tail = subprocess.Popen([TOOL, "tail", "-f", log], stdout=out, stderr=err)
    try:
        wait_for(lambda: says((tmp_path / "err").read_text(), pointer, "a text file"), "the message")
        shutil.copy(event_file, log / "other.tfevents")
        wait_for((tmp_path / "out").read_bytes, "points of the other file")
        seen = (tmp_path / "out").read_bytes()
        os.replace(event_file, pointer)
        wait_for(lambda: (tmp_path / "out").read_bytes() > seen, "the file's points")
    finally:
        tail.terminate()
        tail.wait()
    assert (tmp_path / "err").read_text().count("not an event file") == 1


def test_records_that_are_no_events(tmp_path):
    """A TFRecord file of examples: framing that is right, nothing to keep."""
    from checksum import masked_crc32c
    data = b"\x0a\x05\x0a\x03abc"  # field 1, an event's wall time, as a message
    length = struct.pack("<Q", len(data))
    path = tmp_path / "examples.tfevents"
    path.write_bytes((length + masked_crc32c(length) + data + masked_crc32c(data)) * 5)
    message = run("repair", path, "-o", tmp_path / "new", status=2).stderr
    assert "nothing in it can be kept: 0 damaged places, 5 records that are not events" in message
    assert "nothing in it can be kept" in run("repair", "--in-place", path, status=2).stderr
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("broken", [12, 5000])
def test_a_damaged_beginning_is_repaired(tmp_path, broken):
    subprocess.run([SAMPLE, "many", tmp_path / "log"], check=True)
    path = max((p for p in (tmp_path / "log").rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = path.read_bytes()
    path.write_bytes(random.Random(5).randbytes(broken) + data[broken:])
    run("repair", path, "-o", tmp_path / "new", status=0)
    kept = (tmp_path / "new").read_bytes()
    assert len(kept) > len(data) - broken - 200 and data.endswith(kept)


@pytest.mark.parametrize("content", [b"", bytes(5)])
def test_merge_leaves_out_runs_without_records(content, tmp_path):
    """Empty files, as of a job that was killed at its start, become no run of 1970."""
    run("write", "--dir", tmp_path / "l/a", "--step", 1, "loss=1", status=0)
    (tmp_path / "l/b").mkdir()
    (tmp_path / "l/b/events.out.tfevents.1700000000.h").write_bytes(content)
    done = run("merge", "--keep-runs", tmp_path / "l", "-o", tmp_path / "m", status=0)
    assert "eventlog merge: b: its event files have no records; left out\n" in done.stderr
    assert [p.parent.name for p in (tmp_path / "m").rglob("*tfevents*")] == ["a"]
    run("verify", tmp_path / "m", status=0)
    for more in [], ["--keep-runs"]:
        done = run("merge", *more, tmp_path / "l/b", "-o", tmp_path / "n", status=1)
        assert "no records; left out\n" in done.stderr and "nothing matched" not in done.stderr
        assert not (tmp_path / "n").exists()
