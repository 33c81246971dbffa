"""`export --view=tensorboard` and `inspect`'s shown against what TensorBoard's default loader serves: every form of a
number, every data class, every place of damage, each a run of its own in one log directory."""
import csv
import io
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest

from checksum import masked_crc32c
from tensorboard_server import ALL_POINTS, TensorBoard

event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
FLOAT, DOUBLE, STRING = 1, 2, 7
LISTS = {1: "float_val", 2: "double_val", 3: "int_val", 4: "int_val", 5: "int_val", 6: "int_val", 7: "string_val",
         8: "scomplex_val", 9: "int64_val", 10: "bool_val", 14: "half_val", 17: "int_val", 18: "dcomplex_val",
         19: "half_val", 22: "uint32_val", 23: "uint64_val"}


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def record(step, fill, wall=None):
    """A record of one value; fill(value) makes it."""
    event = event_pb2.Event(wall_time=1.7e9 + step if wall is None else wall, step=step)
    fill(event.summary.value.add())
    return framed(event.SerializeToString())


VERSION = framed(event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2").SerializeToString())


def write(directory, *records, name="events.out.tfevents.1700000000.host.1.0"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(b"".join((VERSION, *records)))


def simple(tag, number):
    def fill(value):
        value.tag, value.simple_value = tag, number
    return fill


def tensor(tag, dtype=FLOAT, shape=(), content=b"", plugin=None, data_class=0, **lists):
    def fill(value):
        value.tag = tag
        value.tensor.dtype = dtype
        value.tensor.tensor_content = content
        if shape is not None:
            value.tensor.tensor_shape.SetInParent()
            for size in shape:
                value.tensor.tensor_shape.dim.add(size=size)
        for name, numbers in lists.items():
            getattr(value.tensor, name).extend(numbers)
        if plugin is not None:
            value.metadata.plugin_data.plugin_name = plugin
            value.metadata.data_class = data_class
    return fill


def first_of(kind, tag, plugin, data_class):
    """The first value of a series: of that kind, with that metadata or (plugin None) without."""
    def fill(value):
        value.tag = tag
        if kind == "simple":
            value.simple_value = 1
        elif kind == "image":
            value.image.width = 1
        elif kind == "audio":
            value.audio.sample_rate = 1
        elif kind == "histogram":
            value.histo.bucket.extend([1])
            value.histo.bucket_limit.extend([1])
        elif kind == "float":
            tensor(tag, float_val=[1])(value)
        elif kind == "double":
            tensor(tag, DOUBLE, double_val=[1])(value)
        elif kind == "text":
            tensor(tag, STRING, string_val=[b"1"])(value)
        if plugin is not None:
            value.metadata.plugin_data.plugin_name = plugin
            value.metadata.data_class = data_class
            value.metadata.SetInParent()
    return fill


def series_kinds(log):
    """Every first value with every metadata, and then numbers of each form."""
    for kind in "simple", "float", "double", "text", "image", "audio", "histogram", "nothing":
        records = []
        for plugin in None, "", "scalars", "histograms", "mine":
            for data_class in (0,) if plugin is None else (0, 1, 2, 3, 4, 9, -1):
                tag = f"{plugin}/{data_class}"
                records += [record(1, first_of(kind, tag, plugin, data_class)), record(2, simple(tag, 2)),
                            record(3, tensor(tag, float_val=[3])), record(4, tensor(tag, DOUBLE, double_val=[4])),
                            record(5, tensor(tag, content=struct.pack("<f", 5), plugin="scalars"))]
        write(log / "first" / kind, *records)


def number_forms(log):
    """Numbers of every type in a series of scalars: what is dropped still removes the points from its step on."""
    forms = {"list and content": dict(content=struct.pack("<f", 9), float_val=[7]), "nothing": {},
             "two and content": dict(content=struct.pack("<f", 9), float_val=[7, 8]), "two": dict(float_val=[7, 8]),
             "long content": dict(content=bytes(8)), "list and long content": dict(content=bytes(8), float_val=[7]),
             "no shape": dict(shape=None, float_val=[7]), "shape 1": dict(shape=(1,), float_val=[7]),
             "shape 1x1": dict(shape=(1, 1), float_val=[7]), "shape 0": dict(shape=(0,)),
             "shape -1": dict(shape=(-1,), float_val=[7]), "doubles in a float": dict(double_val=[7]),
             "NaN": dict(float_val=[math.nan]), "infinite": dict(float_val=[-math.inf])}
    for dtype, name in LISTS.items():
        forms[f"{dtype} list"] = dict(dtype=dtype, **{name: [b"7"] if dtype == STRING else [7]})
        forms[f"{dtype} floats"] = dict(dtype=dtype, float_val=[7])
        forms[f"{dtype} content"] = dict(dtype=dtype, content=bytes([7, 0, 0, 0]))
    forms["101"], forms["-1"] = dict(dtype=101, float_val=[7]), dict(dtype=0, float_val=[7])
    records = []
    for form, fields in forms.items():
        records += [record(step, tensor(form, float_val=[step], plugin="scalars")) for step in (1, 2, 3)]
        records += [record(2, tensor(form, **fields)), record(4, tensor(form, **fields)), record(5, simple(form, 5))]
    for form, fill in ("image", first_of("image", "image", None, 0)), ("none", first_of("nothing", "none", None, 0)):
        records += [record(step, simple(form, step)) for step in (1, 2, 3)] + [record(2, fill), record(4, simple(form, 4))]
    write(log / "forms", *records)


def times(log):
    """Events that the loader drops before anything else, and one that ends the file."""
    write(log / "infinite", record(1, tensor("a", STRING, string_val=[b"x"], plugin="text"), math.inf),
          record(2, tensor("a", float_val=[2], plugin="scalars")), record(3, simple("b", 3)),
          record(3, simple("b", 4), -math.inf), record(1, simple("b", 5), math.inf))
    write(log / "nan", record(1, simple("a", 1)), record(2, simple("a", 2), math.nan), record(3, simple("a", 3)))


def wire(log):
    """Messages that one reader takes and another does not."""
    good, later = record(1, simple("a", 1)), record(3, simple("a", 3))
    whole = event_pb2.Event(wall_time=1.7e9, step=2)
    whole.summary.value.add(tag="a", simple_value=2)
    data = whole.SerializeToString()
    for name, odd in {"group": data + b"\x13\x14", "group end": data + b"\x14", "unknown": data + b"\x98\x06\x01",
                      "other type": data + b"\x0d" + bytes(4), "empty": b"", "cut": data[:-1],
                      "field 0": data + b"\x00\x01", "tag": data.replace(b"\x01a", b"\x01\xff"),
                      "long varint": data + b"\x10" + b"\x80" * 10 + b"\x01",
                      "wide varint": data + b"\x10" + b"\xff" * 9 + b"\x7f",
                      "huge field": data + b"\xf8\xff\xff\xff\xff\xff\x01\x00",
                      "again": data + b"\x10\x05", "version after": data + b"\x1a\x01x",
                      "unknown in value": data.replace(b"*\x08\n\x06", b"*\x0c\n\n") + b"\x98\x06\x98\x06"}.items():
        write(log / "wire" / name, good, framed(odd), later)


def damage(log):
    """Each byte of one record changed in two ways, zeros and garbage in it, the file cut in it, for each form of a
    scalar."""
    for form, fill in ("simple", simple("tag", 2)), ("tensor", tensor("tag", float_val=[2], plugin="scalars")):
        before = [record(1, simple(tag, 1)) for tag in ("tag", "other")]
        odd = record(2, fill)
        behind = [record(3, simple(tag, 3)) for tag in ("tag", "other")]
        for at in range(len(odd)):
            for name, byte in ("flipped", odd[at] ^ 1), ("other", odd[at] ^ 0x83):
                write(log / "damage" / form / f"{at}-{name}", *before, odd[:at] + bytes([byte]) + odd[at + 1:], *behind)
        for at in range(0, len(odd), 4):
            write(log / "cut" / form / str(at), *before, odd[:at])
            write(log / "zeros" / form / str(at), *before, odd[:at] + bytes(len(odd) - at), *behind)
            write(log / "tail" / form / str(at), *before, odd[:at] + bytes(len(odd) - at))
            write(log / "garbage" / form / str(at), *before, odd[:at], b"\x9d\x00\x52", odd[at:], *behind)


def several_files(log):
    one, two, three = (record(step, simple("tag", step)) for step in (1, 2, 3))
    broken = bytes([two[0] ^ 1]) + two[1:]
    write(log / "files", one, broken, three, name="events.out.tfevents.1700000000.h.1.0")
    write(log / "files", record(4, simple("tag", 4)), name="events.out.tfevents.1700000001.h.1.0")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    directory = tmp_path_factory.mktemp("default") / "log"
    for make in series_kinds, number_forms, times, wire, damage, several_files:
        make(directory)
    return directory


@pytest.fixture(scope="module")
def served(log, tmp_path_factory):
    """{run: {tag: [(step, value)]}} of the default loader, for whom every run has a scalar."""
    runs = {str(path.parent.relative_to(log)) for path in log.rglob("*tfevents*")}
    with TensorBoard(log, tmp_path_factory.mktemp("output") / "fast", ALL_POINTS) as server:
        tags = server.until("scalars/tags", lambda tags: set(tags) == runs)
        return {run: {tag: points(server.points(run, tag)) for tag in tags[run]} for run in runs}


def points(triples):
    """[(step, value)], a NaN as text, since it is equal to nothing."""
    return [(step, "nan" if math.isnan(value) else value) for step, _, value in triples]


def not_written_yet(run):
    """A last record of which only the CRC is missing, with zeros in its place, and whose message is one with zeros at
    its end, too: it counts as being written here, while the default loader takes it."""
    kind, _, rest = run.partition("/")
    return kind == "tail" and rest in ("simple/36", "tensor/52", "tensor/56")


def test_points(log, served):
    done = subprocess.run([TOOL, "export", "--view=tensorboard", log], capture_output=True, text=True)
    assert done.returncode == 1  # damage
    ours = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        ours.setdefault(row["run"], {}).setdefault(row["tag"], []).append(
            (int(row["step"]), float(row["wall_time"]), float(row["value"])))
    assert set(ours) == set(served) and len(served) > 300
    for run, series in served.items():
        mine = {tag: points(triples) for tag, triples in ours[run].items()}
        theirs = {tag: shown for tag, shown in series.items() if shown}
        if not_written_yet(run):
            assert mine["tag"] == [(1, 1.0)] and theirs["tag"][:1] == mine["tag"]
            theirs["tag"] = mine["tag"]
        assert mine == theirs, run


def test_shown(log, served):
    done = subprocess.run([TOOL, "inspect", "--json", log], capture_output=True, text=True)
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == len(served)
    for run in runs:
        for series in run["series"]:
            if not not_written_yet(run["run"]):
                shown = len(served[run["run"]].get(series["tag"], []))
                assert series["shown"] == shown, (run["run"], series["tag"])
