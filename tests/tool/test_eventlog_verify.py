"""eventlog verify: damage at its place, statuses, names that only a tree has, and nothing in what our own writer wrote."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def verify(*arguments, status=0):
    done = subprocess.run([TOOL, "verify", "--json", *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return json.loads(done.stdout) if status < 2 else done.stderr


def kinds_of(*arguments, status=1):
    return [f["kind"] for f in verify(*arguments, status=status)["findings"]]


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "many", tmp_path / "log"], check=True)
    return tmp_path / "log"


def largest(log):
    return max((p for p in log.rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)


def offsets(data):
    at = 0
    while at < len(data):
        yield at
        at += 16 + struct.unpack_from("<Q", data, at)[0]


def test_damage_is_named(log):
    path = largest(log)
    data = path.read_bytes()
    places = list(offsets(data))
    third = places[2]
    flipped = bytearray(data)
    flipped[third + 14] ^= 8
    path.write_bytes(flipped)
    found = [f for f in verify(log, status=1)["findings"] if f["level"] == "damage"]
    assert [(f["kind"], f["offset"], f["lost"]) for f in found] == [("data_crc", third, places[3] - third)]
    assert found[0]["file"] == str(path)
    text = subprocess.run([TOOL, "verify", log], capture_output=True, text=True)
    assert text.returncode == 1 and f"{path}:{third}: damage, data_crc: " in text.stdout and not text.stderr
    flipped = bytearray(data)
    flipped[third + 1] ^= 8
    path.write_bytes(flipped)
    found = [f for f in verify(log, status=1)["findings"] if f["level"] == "damage"]
    assert [(f["kind"], f["offset"], f["lost"]) for f in found] == [("length_crc", third, places[3] - third)]
    path.write_bytes(data[:-5])
    assert ["partial"] == [f["kind"] for f in verify(log, status=1)["findings"] if f["level"] == "hidden"]
    assert all(f["offset"] == places[-1] for f in verify(log, status=1)["findings"] if f["kind"] == "partial")
    path.write_bytes(b"xy" + data)
    assert "length_crc" in kinds_of(log)


def test_statuses(tmp_path, log):
    assert verify(log, status=0)["total"]["damage"] == 0
    (tmp_path / "empty").mkdir()
    verify(tmp_path / "empty", status=1)
    assert "nowhere" in verify(tmp_path / "nowhere", status=2)
    bad = log / "bad.tfevents.1"
    bad.write_bytes(b"\x00\x8b\x08" + b"x" * 40)
    assert kinds_of(bad) == ["no_log"]
    bad.write_bytes(b"\x1f\x8b\x08" + b"x" * 40)
    assert kinds_of(bad) == ["compressed", "stream"]
    bad.write_bytes(b"")
    assert kinds_of(bad, status=0) == ["empty_file"]
    assert kinds_of("--strict", bad, status=1) == ["empty_file"]


def test_directory_names(log):
    (log / "my.tfevents.d").mkdir()
    (log / "r" / ".hidden").mkdir(parents=True)
    found = [f for f in verify(log, status=1)["findings"] if f["kind"] == "directory_name"]
    assert [f["file"] for f in found] == [str(log / "my.tfevents.d")]


def test_our_own_files_are_sound(tmp_path):
    """Each of the sample logs, but for what they are made to hold."""
    for name, status in ("golden", 0), ("sample", 1):
        subprocess.run([SAMPLE, name, tmp_path / name], check=True)
        result = verify(tmp_path / name, status=status)
        assert result["total"]["damage"] == 0
        assert {f["kind"] for f in result["findings"]} <= {"step_back", "step_twice", "scalar_form"}


def test_every_kind_of_our_writer_is_sound(kinds):
    """Nothing at all is found in what the library writes: as much a test of the rules as of the writer."""
    result = verify("--strict", kinds)
    assert result["findings"] == [] and result["total"]["records"] > 50
