"""Event files made by structure (write_made_events.c), sound or damaged in one place: our reader and `eventlog verify`
against TensorFlow's reader of records, and protobuf. MADE_EVENTS=N makes so many instead of 300,
MADE_EVENTS_SEED=S begins with another seed than 0."""
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, WRITER = BUILD / "bin/eventlog", BUILD / "tests/peers/write_made_events"
COUNT, SEED = int(os.environ.get("MADE_EVENTS", 300)), int(os.environ.get("MADE_EVENTS_SEED", 0))

# What verify calls damage where TensorFlow reads on without a word.
STRICTER = {
    "partial": "less than the 12 bytes of a header at the end of the file: for TensorFlow that is the end",
    "wire_type": "a known field in another wire type: Python's protobuf skips it; the default loader gives up",
    "wall_nan": "the default loader gives up on the file there",
}
IMPLIED = {"simple_value": "scalars", "image": "images", "audio": "audio", "histo": "histograms"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """What was made and what our reader says, with the findings of verify: a list of dicts."""
    directory = tmp_path_factory.mktemp("made")
    made = subprocess.run([WRITER, directory, str(SEED), str(COUNT)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    verify = subprocess.run([TOOL, "verify", "--json", directory], capture_output=True, text=True)
    assert verify.returncode == 1, verify.stderr
    result = [{**json.loads(line), "findings": []} for line in made.stdout.splitlines()]
    by_run = {str(one["seed"]): one for one in result}
    for finding in json.loads(verify.stdout)["findings"]:
        by_run[finding["run"]]["findings"].append(finding)
    return result


def bits(number):
    return "nan" if math.isnan(number) else struct.pack(">d", number).hex()


def records(path):
    """(offset, the event or None where protobuf refuses it) of each record, and whether the reader complains then."""
    tf = pytest.importorskip("tensorflow")
    from google.protobuf.message import DecodeError

    result, offset = [], 0
    try:
        for data in tf.compat.v1.io.tf_record_iterator(path):
            try:
                result.append((offset, tf.compat.v1.Event.FromString(data)))
            except DecodeError:
                result.append((offset, None))
            offset += len(data) + 16
    except tf.errors.DataLossError:
        return result, True
    return result, False


def event_of(offset, event):
    what = event.WhichOneof("what")
    number = event.DESCRIPTOR.fields_by_name[what].number if what else 0
    return [offset, number, event.step, bits(event.wall_time)]


def number_of(value, plugin):
    """The number that the value is in a series of that plugin, or None."""
    tf = pytest.importorskip("tensorflow")
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return value.simple_value
    if kind != "tensor" or plugin != "scalars":
        return None
    try:
        array = tf.make_ndarray(value.tensor)
    except ValueError:  # not as many elements as the shape says
        return None
    # V: bfloat16 is a type of another package
    return float(array.item()) if array.size == 1 and array.dtype.kind in "fiubV" else None


def points_of(events):
    plugins, result = {}, []
    for offset, event in events:
        for value in event.summary.value:
            plugin = IMPLIED.get(value.WhichOneof("value"), value.metadata.plugin_data.plugin_name)
            number = number_of(value, plugins.setdefault(value.tag, plugin))
            if number is not None:
                result.append([offset, value.tag.encode().hex(), event.step, bits(event.wall_time), bits(number)])
    return result


def same_nan(points):
    """A NaN is one, whatever its bits."""
    return [[*p[:4], bits(struct.unpack(">d", bytes.fromhex(p[4]))[0])] for p in points]


def test_sound_files(files):
    """All events, and all points to the last bit."""
    sound = [one for one in files if one["verdict"] == "sound"]
    assert sound
    for one in sound:
        events, complains = records(one["file"])
        assert not complains and all(event for _, event in events), one["file"]
        assert one["events"] == [event_of(*e) for e in events], one["file"]
        assert same_nan(one["points"]) == points_of(events), one["file"]


def test_damaged_files(files):
    damaged = [one for one in files if one["verdict"] == "damaged"]
    assert damaged
    for one in damaged:
        damage = {f["kind"] for f in one["findings"] if f["level"] == "damage" or f["kind"] == "partial"}
        if one["damage"] == "length_over_limit":  # TensorFlow takes as much memory as the length says
            assert damage
            continue
        events, complains = records(one["file"])
        refused = {offset for offset, event in events if event is None}
        taken = [(offset, event) for offset, event in events if event and math.isfinite(event.wall_time)]
        ours = [event for event in one["events"] if event[0] not in refused]
        assert ours[:len(taken)] == [event_of(*e) for e in taken], one["file"]
        if complains or refused:
            assert damage, f"{one['file']}: {one['damage']}: TensorFlow complains, verify does not"
        else:
            assert damage <= STRICTER.keys(), f"{one['file']}: {one['damage']}: {damage}"
        if not refused and len(taken) == len(events):
            end = taken[-1][0] if taken else -1
            assert same_nan(p for p in one["points"] if p[0] <= end) == points_of(taken), one["file"]
