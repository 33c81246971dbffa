"""eventlog repair: TensorBoard's own loader reads the repaired file to its end, every sound record of the damaged one."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def tool(*arguments, status=0):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "many", tmp_path / "log"], check=True)
    return max((p for p in (tmp_path / "log").rglob("*tfevents*") if p.is_file()), key=lambda p: p.stat().st_size)


def records(data):
    at, found = 0, []
    while at < len(data):
        end = at + 16 + struct.unpack_from("<Q", data, at)[0]
        found.append(data[at:end])
        at = end
    return found


def damaged(data):
    """Flipped bits, zeros, garbage, a torn record with others behind it, a torn tail - and what should be left."""
    pieces = records(data)
    kept = list(pieces)
    for at, change in (
        (10, lambda r: r[:14] + bytes([r[14] ^ 1]) + r[15:]),
        (20, lambda r: bytes([r[0] ^ 4]) + r[1:]),
        (30, lambda r: bytes(len(r))),
        (40, lambda r: os.urandom(5000)),
        (50, lambda r: r[:17]),
        (len(pieces) - 1, lambda r: r[:-2]),
    ):
        pieces[at], kept[at] = change(pieces[at]), b""
    return b"".join(pieces), b"".join(kept)


def test_every_sound_record_is_kept(log, tmp_path):
    broken, want = damaged(log.read_bytes())
    log.write_bytes(broken)
    tool("verify", log, status=1)
    new = tmp_path / "new" / "events.out.tfevents.1"
    new.parent.mkdir()
    report = json.loads(tool("repair", "--json", log, "-o", new))
    assert new.read_bytes() == want and log.read_bytes() == broken
    assert (report["bytes"], report["lost"]) == (len(want), len(broken) - len(want))
    tool("verify", new)
    assert f"{(len(broken) - len(want)) / 1024:.2f} KiB lost" in tool("repair", "--in-place", log)
    assert log.read_bytes() == want
    backup = log.with_name(log.name.replace("tfevents", "tf-events") + ".bak")
    assert backup.read_bytes() == broken and "tfevents" not in backup.name
    assert "nothing to repair" in tool("repair", "--in-place", log)
    assert [p.name for p in new.parent.iterdir()] == [new.name]


def test_tensorboard_reads_the_result(log, tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")

    def read(path):
        return list(loader.RawEventFileLoader(str(path)).Load())

    broken, want = damaged(log.read_bytes())
    log.write_bytes(broken)
    stopped = len(read(log))
    tool("repair", "--in-place", log)
    events = read(log)
    assert stopped == 10 and events == [r[12:-4] for r in records(want)]


def test_wrong_use(log, tmp_path):
    for arguments in ([log], [log, "-o", "x", "--in-place"], [], [log, log, "-o", "x"], [log, "-o", log],
                      [log.parent, "-o", tmp_path / "x"], [tmp_path / "none", "--in-place"]):
        assert tool("repair", *arguments, status=2).startswith("eventlog repair: ")
    log.write_bytes(log.read_bytes()[:-1])
    with open(log, "ab"):
        assert "is being written" in tool("repair", "--in-place", log, status=2)
    tool("repair", "--in-place", log)
