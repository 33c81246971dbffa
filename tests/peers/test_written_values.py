"""eventlog write: what is written from the shell is what TensorBoard reads."""
import json
import struct
import zlib

import pytest

from eventlog_command import export, run, write

accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
event_file_loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")


def loaded(directory):
    found = accumulator.EventAccumulator(str(directory), size_guidance={"tensors": 0, "scalars": 0})
    found.Reload()
    return found


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"\0" + bytes(6))) + chunk(b"IEND", b""))


def test_values_from_the_command_line(tmp_path):
    (tmp_path / "a.png").write_bytes(png())
    log = tmp_path / "log"
    write(log, "--step", 10, "loss=0.5", "größe/a=b=0.9", "--wall-time", 1700000000.25)
    write(log, "--step", "-11", "loss=nan", "--text", "note=a=**b**", "--image", f"picture={tmp_path / 'a.png'}")
    assert len(list(log.iterdir())) == 1  # the second call went on in the file
    read = loaded(log)
    assert [(e.step, e.wall_time, e.value) for e in read.Scalars("größe/a=b")] == [
        (10, 1700000000.25, struct.unpack("f", struct.pack("f", 0.9))[0])]
    assert [e.step for e in read.Scalars("loss")] == [10, -11]
    assert read.Tensors("note")[0].tensor_proto.string_val == [b"a=**b**"]
    assert list(read.Tensors("picture")[0].tensor_proto.string_val) == [b"2", b"1", png()]
    run("verify", log)
    write(log, "--new", "--step", 12, "loss=1")
    assert len(list(log.iterdir())) == 2
    with open(max(log.iterdir()), "ab"):
        assert "a new file beside it" in write(log, "--step", 13, "loss=1").stderr
    assert len(list(log.iterdir())) == 3


def test_every_value_names_its_plugin(tmp_path):
    """Also those of later calls, which go on in the file: aim's importer and wandb's look at each value alone."""
    (tmp_path / "a.png").write_bytes(png())
    for step in range(3):
        write(tmp_path / "log", "--step", step, "loss=1", "--text", "note=x", "--image", f"picture={tmp_path / 'a.png'}")
        write(tmp_path / "log", "--step", step, "--double", "exact=0.1")
    found = {}
    for path in (tmp_path / "log").iterdir():
        for event in event_file_loader.RawEventFileLoader(str(path)).Load():
            for value in event_pb2.Event.FromString(event).summary.value:
                plugin = value.metadata.plugin_data.plugin_name
                found.setdefault(value.tag, []).append(value.WhichOneof("value") == "simple_value" or plugin)
    assert found == {"loss": [True] * 3, "exact": ["scalars"] * 3, "note": ["text"] * 3, "picture": ["images"] * 3}


def test_wide_comes_back(tmp_path):
    text = "run,step,wall_time,loss,tag:step\na,1,1700000000.5,0.5,\na,2,1700000001.0,,3.0\nb/c,1,1700000002.0,NaN,4.0\n"
    write(tmp_path / "log", "-", text=text)
    assert export(tmp_path / "log", "--format=wide", "--wall-time") == text
    assert (tmp_path / "log/b/c").is_dir()
    text = '{"step":1,"loss":0.5,"acc":0.25,"phase":"train"}\n{"step":2,"loss":0.125}\n{"type":"note","text":"x"}\n'
    report = json.loads(write(tmp_path / "wide", "-", "--json", text=text).stdout)["total"]
    assert (report["points"], report["passed_over"]) == (3, 1)
    assert {t: [(e.step, e.value) for e in loaded(tmp_path / "wide").Scalars(t)] for t in ("loss", "acc")} == {
        "loss": [(1, 0.5), (2, 0.125)], "acc": [(1, 0.25)]}


def test_charts_of_the_custom_scalars_page(tmp_path):
    layout_pb2 = pytest.importorskip("tensorboard.plugins.custom_scalar.layout_pb2")
    told = write(tmp_path, "--json", "--chart", "loss=loss$", "--chart", "speed/images=images/sec=1",
                 "--chart", "loss=a=b", "--chart", "speed/steps=step")
    assert json.loads(told.stdout)["total"]["charts"] == 3
    value = loaded(tmp_path).Tensors("custom_scalars__config__")[0]
    layout = layout_pb2.Layout.FromString(value.tensor_proto.string_val[0])
    charts = [(c.title, [(x.title, list(x.multiline.tag)) for x in c.chart]) for c in layout.category]
    assert charts == [("charts", [("loss", ["loss$", "a=b"])]),
                      ("speed", [("images", ["images/sec=1"]), ("steps", ["step"])])]
    run("verify", tmp_path)
    for wrong in ("loss", "=loss", "loss=", "/loss=a", "a/=b"):
        assert f"--chart: '{wrong}'" in write(tmp_path / "none", "--chart", wrong, status=2).stderr
    assert not (tmp_path / "none").exists()
