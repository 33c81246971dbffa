"""TFRecord files that hold no events: every command says what they are, and ends with status 1."""
import gzip
import json
import os
import pathlib
import subprocess

import pytest

from tfrecord_files import example, field, record, varint, write_tfrecord

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
EVENT = b"\x09" + bytes(6) + b"\xf0\x3f\x10\x01" + field(5, field(1, field(1, b"loss") + b"\x15\0\0\x80\x3f"))
SEQUENCE = field(1, b"") + field(2, field(1, field(1, b"words") + field(2, field(1, field(3, field(1, b"\x07"))))))


def run(*words):
    return subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600)


@pytest.fixture
def examples(tmp_path):
    file = tmp_path / "train.tfrecord"
    write_tfrecord(file, [{"label": 7, "image": b"\xff\xd8\xff" + bytes(300)}] * 50)
    return file


@pytest.mark.parametrize("command", ["inspect", "inspect --json", "inspect --format=tb", "inspect --tree", "export", "export --format=wide",
                                     "stats", "stats --diverged", "tags", "hparams", "plot", "tail --no-follow"])
def test_every_command_says_it(examples, command):
    done = run(*command.split(), examples)
    assert done.returncode == 1
    assert f"{examples}: its records hold tf.Example, not events\n" in done.stderr and "nothing matched" not in done.stderr
    if command == "inspect --json":
        assert json.loads(done.stdout)["total"]["records"] == 50


def test_verify(examples):
    done = run("verify", examples)
    assert done.returncode == 1 and "damage, example: the record is a tf.Example, of a data set, and not an event" in done.stdout


@pytest.mark.parametrize("name, content, said", [
    ("sequence", record(SEQUENCE) * 3, "tf.SequenceExample"), ("no-context", record(SEQUENCE[2:]), "tf.SequenceExample"),
    ("empty-features", record(field(1, b"")), "tf.Example"), ("of-floats", record(field(1, field(1, field(1, b"x") + field(2, field(2, field(1, bytes(8))))))),
                                                             "tf.Example"),
    ("other", record(varint(1 << 3) + b"\x07"), "messages of another kind"), ("large-fields", record(field(20, b"abc")), "messages of another kind"),
    ("packed", gzip.compress(record(example({"label": 7})) * 3, mtime=0), "tf.Example")])
def test_what_they_hold(tmp_path, name, content, said):
    (tmp_path / "events.out.tfevents.1.h").write_bytes(content)
    done = run("inspect", tmp_path)
    assert done.returncode == 1 and done.stderr.endswith(f": its records hold {said}, not events\n"), name


@pytest.mark.parametrize("content", [record(EVENT), record(b"") + record(EVENT), record(b"\x10\x05") + record(EVENT), record(field(3, b"brain.Event:2")) + record(EVENT)])
def test_events_are_events(tmp_path, content):
    (tmp_path / "events.out.tfevents.1.h").write_bytes(content)
    for words in ["inspect"], ["export"]:
        done = run(*words, tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_beside_events(examples):
    """The others are shown, and the status is 1."""
    (examples.parent / "a").mkdir()
    (examples.parent / "a/events.out.tfevents.1.h").write_bytes(record(EVENT))
    (examples.parent / "b").mkdir()
    examples.rename(examples.parent / "b/data.tfevents.2.h")
    for words in ["export"], ["stats", "--format=csv"], ["inspect", "--format=csv"]:
        done = run(*words, examples.parent)
        assert done.returncode == 1 and "loss" in done.stdout and done.stderr.count("\n") == 1 and "hold tf.Example" in done.stderr


def test_tail_waits_no_longer_than_for_others(examples):
    done = run("tail", "--no-follow", "--all", examples)
    assert done.returncode == 1 and done.stdout == ""
