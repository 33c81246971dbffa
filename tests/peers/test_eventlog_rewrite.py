"""The commands that make logs into other logs: TensorBoard's loaders read what they write, every value bit for bit."""
import json
import os
import pathlib
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE, KINDS = BUILD / "bin/eventlog", BUILD / "tests/peers/eventlog_sample", BUILD / "tests/peers/event_kinds"
pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing import event_accumulator, event_file_loader  # noqa: E402
from tensorboard.compat.proto import event_pb2  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402


def tool(*arguments, status=0, **more):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, **more)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


def told(*arguments, **more):
    return json.loads(tool(*arguments, "--json", **more))


def event_files(directory):
    return sorted(p for p in pathlib.Path(directory).rglob("*tfevents*") if p.is_file())


def events(path):
    return [event_pb2.Event.FromString(e) for e in event_file_loader.RawEventFileLoader(str(path)).Load()]


def values(path, renamed=lambda tag: tag):
    """(step, wall time, tag, the rest of the value as bytes) of each value of a file, in order."""
    found = []
    for event in events(path):
        for value in event.summary.value:
            tag = renamed(value.tag)
            value.ClearField("tag")
            found.append((event.step, event.wall_time, tag, value.SerializeToString()))
    return found


def others(path):
    return [e.SerializeToString() for e in events(path) if e.WhichOneof("what") != "summary"]


def scalars(directory):
    """{tag: [(step, wall time, value)]} as TensorBoard holds them, all points."""
    accumulator = event_accumulator.EventAccumulator(str(directory), size_guidance={"tensors": 0, "scalars": 0})
    accumulator.Reload()
    found = {}
    for tag in accumulator.Tags()["scalars"]:
        found[tag] = [(e.step, e.wall_time, e.value) for e in accumulator.Scalars(tag)]
    for tag in accumulator.Tags()["tensors"]:
        points = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
        if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            found[tag] = [(step, wall_time, value.item()) for step, wall_time, value in points]
    return found


@pytest.fixture
def kinds(tmp_path):
    """A log with a value of every kind."""
    gif, wav = tmp_path / "a.gif", tmp_path / "a.wav"
    gif.write_bytes(b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;")
    wav.write_bytes(b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
                    + b"data" + struct.pack("<I", 2) + b"\0\0")
    subprocess.run([KINDS, tmp_path / "kinds", gif, wav], check=True)
    return tmp_path / "kinds"


def test_every_kind_survives_a_new_name(kinds, tmp_path):
    report = told("rename-tag", "--regex", "^=x/", kinds, "-o", tmp_path / "new")
    old, new = event_files(kinds), event_files(tmp_path / "new")
    assert [p.relative_to(kinds) for p in old] == [p.relative_to(tmp_path / "new") for p in new]
    count = 0
    for a, b in zip(old, new):
        assert values(a, lambda tag: "x/" + tag) == values(b) and others(a) == others(b)
        count += len(values(a))
    assert report["values"] == report["renamed"] == count > 20
    # And back again: the same bytes.
    tool("rename-tag", "--regex", "^x/=", tmp_path / "new", "-o", tmp_path / "back")
    for a, b in zip(old, event_files(tmp_path / "back")):
        assert values(a) == values(b)
        assert len(a.read_bytes()) == len(b.read_bytes())


def test_names_change_places(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    before = scalars(tmp_path / "log")
    tool("rename-tag", "-e", "loss=lr", "-e", "lr=loss", tmp_path / "log", "-o", tmp_path / "new")
    after = scalars(tmp_path / "new")
    assert repr(after) == repr({"lr": before["loss"], "loss": before["lr"]})
    log = event_files(tmp_path / "log")[-1]  # of the run ".", behind eval/
    assert "both be 'lr'" in tool("rename-tag", "loss=lr", tmp_path / "log", "-o", tmp_path / "none", status=2)
    assert not (tmp_path / "none").exists()
    assert "holds event files" in tool("rename-tag", "loss=x", log, "-o", tmp_path / "new", status=2)
    tool("rename-tag", "loss=x", log, "-o", tmp_path / "new", "-f")
    assert set(scalars(tmp_path / "new")) == {"x", "lr"}
    assert "one of the files that are read" in tool("rename-tag", "loss=x", log, "-o", log.parent, "-f", status=2)
    tool("rename-tag", "nothing=x", log, "-o", tmp_path / "copy", status=1)
    assert event_files(tmp_path / "copy")[0].read_bytes() == log.read_bytes()


def test_series_are_dropped(kinds, tmp_path):
    tags = {v[2] for p in event_files(kinds) for v in values(p)}
    gone = {tag for tag in tags if tag.startswith("i")}
    assert gone and gone != tags
    report = told("drop-tag", "i*", kinds, "-o", tmp_path / "less")
    assert report["tags"] == len(gone) and report["dropped"] > 0
    for a, b in zip(event_files(kinds), event_files(tmp_path / "less")):
        assert [v for v in values(a) if v[2] not in gone] == values(b) and others(a) == others(b)
    tool("drop-tag", "--keep", "--tag", "i*", kinds, "-o", tmp_path / "only")
    for a, b in zip(event_files(kinds), event_files(tmp_path / "only")):
        assert [v for v in values(a) if v[2] in gone] == values(b) and others(a) == others(b)


def test_in_place_keeps_the_old_file(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    old = {p: p.read_bytes() for p in event_files(tmp_path / "log")}
    with open(next(iter(old)), "ab"):
        assert "is being written" in tool("drop-tag", "loss", tmp_path / "log", "--in-place", status=2)
    assert {p: p.read_bytes() for p in event_files(tmp_path / "log")} == old
    tool("drop-tag", "lr", tmp_path / "log", "--in-place")
    changed = [p for p in old if p.read_bytes() != old[p]]
    assert len(changed) == 1 and set(scalars(changed[0].parent)) == {"loss"}
    backup = changed[0].with_name(changed[0].name.replace("tfevents", "tf-events") + ".bak")
    assert backup.read_bytes() == old[changed[0]]
    tool("drop-tag", "l*", tmp_path / "log", "--in-place", status=2)  # a backup is there
    assert event_files(tmp_path / "log") == sorted(old)


def test_damage_is_told_and_left_out(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    log = event_files(tmp_path / "log")[-1]
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(bytes(data[:-3]))
    done = subprocess.run([TOOL, "drop-tag", "none", log, "-o", tmp_path / "new", "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert done.returncode == 1 and report["damaged"] == 1 and report["torn_bytes"] > 0
    assert f"{log}:40: a wrong data CRC" in done.stderr and "no whole record" in done.stderr
    tool("verify", tmp_path / "new")
