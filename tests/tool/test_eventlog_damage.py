"""Event files with any byte flipped, cut at any place: what export and inspect still read of them."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "golden", tmp_path / "log"], check=True)
    return tmp_path / "log"


@pytest.fixture
def file(log):
    return min(log.rglob("*tfevents*"))


def export(log):
    """What it says, and the points."""
    done = subprocess.run([TOOL, "export", log, "--format=jsonl", "--order=file"], capture_output=True, text=True)
    return done, [json.loads(line) for line in done.stdout.splitlines()]


def test_damage_is_passed_over(log, file):
    """Every byte of a log flipped in turn: no point that was not there, and most of them still."""
    good = file.read_bytes()
    done, whole = export(log)
    assert done.returncode == 0 and whole
    for i in range(0, len(good), 7):
        file.write_bytes(good[:i] + bytes([good[i] ^ 0x41]) + good[i + 1:])
        done, got = export(log)
        assert all(point in whole for point in got)
        assert len(got) >= len(whole) - 1
        last = i >= 582
        assert done.returncode == 1 or last, done.stderr
        assert f"{file}:" in done.stderr or last


def test_every_cut_is_partial(log, file):
    good = file.read_bytes()
    borders, at = {0}, 0
    while at < len(good):
        at += 16 + struct.unpack_from("<Q", good, at)[0]
        borders.add(at)
    for cut in range(0, len(good) + 1, 3):
        file.write_bytes(good[:cut])
        done = subprocess.run([TOOL, "inspect", "--json", log], capture_output=True, text=True)
        found = json.loads(done.stdout)["runs"][0]["files"][0]
        assert done.returncode == 0
        assert found["end"] == ("clean" if cut in borders else "partial")
        assert found["end_offset"] == max(b for b in borders if b <= cut)
