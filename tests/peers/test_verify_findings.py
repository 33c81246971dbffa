"""eventlog verify: findings in files that other writers made, and TensorBoard's and protobuf's answers to them."""
import json
import os
import pathlib
import random
import struct
import subprocess
import urllib.error

import pytest

from checksum import masked_crc32c
from tensorboard_server import TensorBoard

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"


def verify(*arguments, status=0):
    done = subprocess.run([TOOL, "verify", "--json", *arguments], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return json.loads(done.stdout) if status < 2 else done.stderr


def kinds_of(*arguments, status=1):
    return [f["kind"] for f in verify(*arguments, status=status)["findings"]]


def test_torch_files(tmp_path):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    import numpy
    import torch

    with tensorboard.SummaryWriter(tmp_path) as writer:
        for step in range(20):
            writer.add_scalar("loss", 1.0 / (step + 1), step)
        writer.add_histogram("weights", numpy.arange(100.0), 0)
        writer.add_image("image", numpy.zeros((3, 4, 4)), 0)
        writer.add_text("text", "hello", 0)
        writer.add_pr_curve("pr", numpy.array([0, 1, 1]), numpy.array([0.1, 0.7, 0.9]), 0)
        writer.add_mesh("mesh", torch.zeros((1, 3, 3)), global_step=0)
        writer.add_audio("audio", torch.zeros((1, 100)), 0)
        writer.add_scalar("precise", 1.0, 0, new_style=True, double_precision=True)
    result = verify(tmp_path, status=1)
    found = {(f["kind"], f.get("tag")) for f in result["findings"]}
    assert found == {("scalar_form", "precise"), ("histogram_edges", "weights")}


def write(directory, *events):
    """A run of these messages."""
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    directory.mkdir(parents=True)
    with open(directory / "events.out.tfevents.1700000000.h.1.0", "wb") as file:
        for event in (event_pb2.Event(wall_time=1.7e9, file_version="brain.Event:2"), *events):
            data = event.SerializeToString()
            length = struct.pack("<Q", len(data))
            file.write(length + masked_crc32c(length) + data + masked_crc32c(data))


def value(step, tag, **members):
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    event = event_pb2.Event(wall_time=1.7e9 + step, step=step)
    event.summary.value.add(tag=tag, **members)
    return event


def images(step, tag, *strings):
    shape = {"dim": [{"size": len(strings)}]}
    return value(step, tag, tensor={"dtype": 7, "string_val": strings, "tensor_shape": shape},
                 metadata={"plugin_data": {"plugin_name": "images"}})


def small_graph():
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    graph = graph_pb2.GraphDef(versions={"producer": 22}, library={"function": [{"signature": {"name": "g"}}]})
    graph.node.add(name="a", op="Placeholder", device="/cpu:0").attr["shape"].shape.dim.add(size=3, name="batch")
    node = graph.node.add(name="b", op="Relu", input=["a"])
    node.attr["list"].list.i.extend([1, 300])
    node.attr["f"].func.name = "g"
    return graph


@pytest.mark.parametrize("loader", ["fast", "python"])
def test_what_tensorboard_does(loader, tmp_path):
    """The findings that say that something is not shown, and TensorBoard's answers."""
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    log, names = tmp_path / "log", {"display_name": "name", "summary_description": "words"}
    scalars = {"plugin_data": {"plugin_name": "scalars"}}
    number = {"dtype": 1, "float_val": [1.0], "tensor_shape": {}}
    write(log / "names", value(1, "old", simple_value=1, metadata=names),
          value(1, "new", tensor=number, metadata=scalars | names), value(2, "new", tensor=number, metadata=scalars),
          value(1, "late", tensor=number, metadata=scalars),
          value(2, "late", tensor=number, metadata=scalars | names))
    write(log / "pictures", images(1, "none", b"1", b"1"), images(1, "some", b"1", b"1", b"\x89PNG"))
    good = small_graph().SerializeToString()
    graphs = {"good": good, "cut": good[:-1], "utf8": good.replace(b"Relu", b"R\xffu!"), "empty": b""}
    for name, graph in graphs.items():
        write(log / "graphs" / name, event_pb2.Event(wall_time=1.7e9 + 1, graph_def=graph))
    result = verify(log, status=1)
    assert {(f["run"], f["kind"], f.get("tag")) for f in result["findings"]} == {
        ("names", "text_lost", "old"), ("names", "text_late", "late"), ("pictures", "no_picture", "none"),
        ("graphs/cut", "graph", None), ("graphs/utf8", "graph", None), ("graphs/empty", "graph", None)}
    with TensorBoard(log, tmp_path / "output", loader=loader) as server:
        tags = server.until("scalars/tags", lambda answer: "names" in answer)["names"]
        shown = {tag for tag, words in tags.items() if words["displayName"] == "name"}
        assert shown == ({"new"} if loader == "fast" else {"new", "old"})
        tags = server.until("images/tags", lambda answer: "pictures" in answer)["pictures"]
        assert (tags["none"]["samples"], tags["some"]["samples"]) == (0, 1)
        assert server.get("images/images", run="pictures", tag="none", sample=0) == []
        server.until("graphs/info", lambda runs: {f"graphs/{name}" for name in graphs} <= set(runs))
        for name in graphs:
            try:
                status = bool(server.raw("graphs/graph", run=f"graphs/{name}")[0])
            except urllib.error.HTTPError as error:
                status = error.code
            assert status == {"good": True, "empty": False}.get(name, 500), name


def test_graphs_as_protobuf_takes_them(tmp_path):
    """Changed, cut and filled up at random: those are found that Python's protobuf refuses, or that have no node."""
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    message = pytest.importorskip("google.protobuf.message")
    graph, refused, draw = small_graph(), set(), random.Random(1)
    good = graph.SerializeToString()
    for i in range(500):
        changed, at = bytearray(good), draw.randrange(len(good))
        if i % 4 == 0:
            del changed[at:at + draw.randrange(5)]
        elif i % 4 == 1:
            changed[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 4)))
        else:
            changed[at] = draw.randrange(256)
        write(tmp_path / str(i), event_pb2.Event(wall_time=1.7e9 + 1, graph_def=bytes(changed)))
        try:
            nodes = type(graph).FromString(bytes(changed)).node
        except message.DecodeError:
            nodes = []
        refused |= set() if nodes else {str(i)}
    assert 100 < len(refused) < 490
    assert {f["run"] for f in verify(tmp_path, status=1)["findings"] if f["kind"] == "graph"} == refused


def test_a_restart_within_a_second(tmp_path):
    """TensorFlow gives a file's first record whole seconds, so the second file begins before the first one's last
    point. No point of it does, so nothing is interleaved: a step goes back, as after any restart."""
    for part, first_step, wall in (("a", 0, 0.1), ("b", 3, 0.6)):
        events = [value(first_step + i, "loss", simple_value=1) for i in range(5)]
        for i, event in enumerate(events):
            event.wall_time = 1.7e9 + wall + i / 20
        write(tmp_path / part, *events)
    run = tmp_path / "run"
    run.mkdir()
    for part in "ab":
        next((tmp_path / part).iterdir()).rename(run / f"events.out.tfevents.1700000000.h.{part}.v2")
    assert kinds_of(run, status=0) == ["step_back"]
