"""The public reader beside TensorBoard's own code: every value of logs of five writers, bit for bit."""
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

import kinds_log

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
READ = BUILD / "tests/programs/read_log"


def read_log(path):
    done = subprocess.run([READ, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def tensorflow_log(directory):
    tf = pytest.importorskip("tensorflow")
    random = np.random.default_rng(1)
    with tf.summary.create_file_writer(str(directory)).as_default():
        for step in range(3):
            tf.summary.scalar("loss", 0.1 * step, step=step, description="how *bad*")
            tf.summary.histogram("weights", random.normal(size=500), step=step)
            tf.summary.image("picture", random.random((2, 4, 5, 3)), step=step)
            tf.summary.audio("sound", random.random((2, 100, 1), np.float32) * 2 - 1, 8000, step=step)
            tf.summary.text("words", tf.constant([["a", "b"], ["c", "d"]]), step=step)
            for dtype in ("float16", "bfloat16", "float64", "int8", "uint8", "int16", "int32", "int64", "uint16",
                          "uint32", "uint64", "bool", "complex64", "complex128", "string"):
                array = tf.constant(["x", "yz", ""] if dtype == "string" else [[0, 1], [2, 3]])
                array = array if dtype == "string" else tf.cast(array, dtype)
                metadata = tf.compat.v1.SummaryMetadata(
                    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="mine", content=b"\0c"))
                tf.summary.write(f"tensor/{dtype}", array, step=step, metadata=metadata)
        tf.summary.graph(tf.function(lambda x: x + 1).get_concrete_function(tf.TensorSpec([])).graph)


def tensorflow_1_log(directory):
    tf = pytest.importorskip("tensorflow").compat.v1
    with tf.Graph().as_default(), tf.Session() as session:
        tf.summary.scalar("loss", tf.constant(0.5))
        tf.summary.histogram("weights", tf.random.normal([1000]))
        tf.summary.image("picture", tf.random.uniform([1, 4, 5, 3]))
        tf.summary.audio("sound", tf.random.uniform([1, 100, 1]), 8000.0)
        tf.summary.tensor_summary("tensor", tf.constant([[1.5, 2], [3, 4]]))
        writer, merged = tf.summary.FileWriter(str(directory), session.graph), tf.summary.merge_all()
        for step in range(3):
            writer.add_summary(session.run(merged), step)
        writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), 1)
        writer.close()


def torch_log(directory, module="torch.utils.tensorboard"):
    writer = pytest.importorskip(module).SummaryWriter(str(directory))
    random = np.random.default_rng(2)
    for step in range(3):
        writer.add_scalar("loss", 0.1 * step, step, walltime=1e9 + step)
        writer.add_histogram("weights", random.normal(size=500), step)
        writer.add_image("picture", random.random((3, 4, 5)), step)
        writer.add_text("words", "hello *there*", step)
        writer.add_pr_curve("pr", random.integers(0, 2, 50), random.random(50), step)
        if module.startswith("torch"):
            writer.add_scalar("precise", 0.1, step, new_style=True, double_precision=True)
            writer.add_mesh("mesh", pytest.importorskip("torch").rand(1, 5, 3), global_step=step)
    writer.add_hparams({"rate": 0.1, "name": "x"}, {"best": 1.0}, run_name=".") if module.startswith("torch") else None
    writer.close()


WRITERS = {"tensorflow 2": tensorflow_log, "tensorflow 1": tensorflow_1_log, "torch": torch_log,
           "tensorboardX": lambda directory: torch_log(directory, "tensorboardX"),
           "ours": kinds_log.write}


def kind_of(value, plugin):
    """What a value is, said without our reader: numbers in series of scalars, then by message and plugin."""
    stored = value.WhichOneof("value")
    if stored == "simple_value":
        return "scalar"
    if stored in ("image", "audio"):
        return stored
    if stored == "histo":
        return "histogram"
    if stored != "tensor":
        return "other"
    strings = value.tensor.dtype == 7
    by_plugin = {("scalars", False): "scalar", ("histograms", False): "histogram", ("images", True): "image",
                 ("audio", True): "audio", ("text", True): "text"}
    return by_plugin.get((plugin, strings), "tensor")


def check_value(got, value, event, first):
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    data_compat = pytest.importorskip("tensorboard.data_compat")
    plugin = {"simple_value": "scalars", "image": "images", "audio": "audio", "histo": "histograms"}.get(
        first.WhichOneof("value"), first.metadata.plugin_data.plugin_name)
    assert (got["tag"], got["plugin"], got["kind"]) == (value.tag, plugin, kind_of(value, plugin))
    assert got["display_name"] == first.metadata.display_name
    assert got["description"] == first.metadata.summary_description
    assert got["content"] == first.metadata.plugin_data.content.hex()
    assert (got["step"], float(got["wall_time"])) == (event.step, event.wall_time)
    assert type(value).FromString(bytes.fromhex(got["data"])) == value
    if got["kind"] == "scalar" and value.HasField("simple_value"):
        assert float(got["number"]) == value.simple_value
    if value.HasField("tensor"):
        assert got["dtype"] == value.tensor.dtype
        assert got["shape"] == [d.size for d in value.tensor.tensor_shape.dim]
        if value.tensor.dtype == 7:
            assert [bytes.fromhex(s) for s in got["strings"]] == list(value.tensor.string_val)
        elif value.tensor.dtype != 14:  # bfloat16, which TensorBoard cannot read
            array = tensor_util.make_ndarray(value.tensor)
            assert bytes.fromhex(got["elements"]) == array.tobytes()
            if got["kind"] == "scalar":
                assert got["number"] == float(array.item())
    if got["kind"] == "histogram":
        rows = tensor_util.make_ndarray(data_compat.migrate_value(value).tensor)
        assert np.array_equal(np.array(got["rows"]).reshape(-1, 3).astype(rows.dtype), rows)
    if value.HasField("image"):
        assert [bytes.fromhex(b) for b in got["blobs"]] == [value.image.encoded_image_string]
        assert (got["width"], got["height"]) == (value.image.width, value.image.height)
    elif value.HasField("audio"):
        assert [bytes.fromhex(b) for b in got["blobs"]] == [value.audio.encoded_audio_string]
    elif got["kind"] == "image":
        strings = list(value.tensor.string_val)
        assert [bytes.fromhex(b) for b in got["blobs"]] == strings[2:]
        assert (got["width"], got["height"]) == (int(strings[0]), int(strings[1]))
    elif got["kind"] == "audio":
        pairs = len(value.tensor.tensor_shape.dim) == 2
        assert [bytes.fromhex(b) for b in got["blobs"]] == list(value.tensor.string_val)[::2 if pairs else 1]
    elif got["kind"] == "text":
        assert [bytes.fromhex(b) for b in got["blobs"]] == list(value.tensor.string_val)


@pytest.mark.parametrize("writer", WRITERS)
def test_every_value(tmp_path, writer):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    WRITERS[writer](tmp_path / "log")
    runs = sorted({p.parent for p in (tmp_path / "log").rglob("*tfevents*")},
                  key=lambda p: str(p.relative_to(tmp_path / "log")).encode())
    found, kinds, first = iter(read_log(tmp_path / "log")), set(), {}
    for run in runs:
        name = str(run.relative_to(tmp_path / "log"))
        for file in sorted(run.glob("*tfevents*")):
            for record in loader.RawEventFileLoader(str(file)).Load():
                event = event_pb2.Event.FromString(record)
                what = event.WhichOneof("what")
                if what != "summary":
                    field = event_pb2.Event.DESCRIPTOR.fields_by_name[what].number if what else 0
                    payload = getattr(event, what) if what else b""
                    payload = payload.encode() if isinstance(payload, str) else payload
                    payload = payload if isinstance(payload, bytes) else payload.SerializeToString()
                    assert next(found) == {"what": field, "step": event.step, "payload": payload.hex()}
                    continue
                for value in event.summary.value:
                    got = next(found)
                    assert got["run"] == name
                    check_value(got, value, event, first.setdefault((name, value.tag), value))
                    kinds.add(got["kind"])
    assert next(found, None) is None
    assert {"scalar", "histogram", "image"} <= kinds
