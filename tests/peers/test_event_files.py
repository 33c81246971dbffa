"""Event files against their other readers and writers: TensorFlow, TensorBoard's two loaders, PyTorch."""
import json
import math
import os
import pathlib
import struct
import subprocess
import sys

import pytest

from tensorboard_server import ALL_POINTS, TensorBoard, python_loader_points

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def sample(kind, directory):
    subprocess.run([SAMPLE, kind, directory], check=True)
    return directory


def points(path, *options):
    """(run, tag) -> [(step, wall time, value)] in reading order, by our own export."""
    out = subprocess.run([TOOL, "export", path, "--format=jsonl", "--order=file", *options], capture_output=True,
                         text=True)
    assert out.returncode == 0, out.stderr
    series = {}
    for line in out.stdout.splitlines():
        p = json.loads(line)
        series.setdefault((p["run"], p["tag"]), []).append((p["step"], float(p["wall_time"]), float(p["value"])))
    return series


def same(a, b):
    """Equal to the last bit, NaN equal to NaN."""
    bits = [[(s, struct.pack("<d", w), "nan" if math.isnan(v) else struct.pack("<d", v)) for s, w, v in x]
            for x in (a, b)]
    return bits[0] == bits[1]


def event_files(directory):
    return sorted(str(p) for p in pathlib.Path(directory).rglob("*tfevents*"))


def written_by_us(tmp_path):
    """The log `many`, and what must be found in it: recomputed here from the numbers the helper writes."""
    sample("many", tmp_path / "log")
    want = {}
    for i in range(20000):
        x = {7: math.nan, 8: math.inf, 9: -math.inf}.get(i % 1000)  # None: sin(i) / 3
        tag = f"größe/π {i % 100} 😀" if i % 100 < 3 else f"layer/{i % 100}"
        step = i // 100 if i < 19900 else 2**63 - 1 - 20000 + i
        want.setdefault(tag, []).append((step, 1700000000 + i / 64, x, i))
    return tmp_path / "log", want


def check_values(got, want):
    assert got.keys() == want.keys()
    for tag, series in want.items():
        assert [(s, w) for s, w, _ in got[tag]] == [(s, w) for s, w, _, _ in series]
        for (_, _, value), (_, _, odd, i) in zip(got[tag], series):
            # sin is not exact in the last bit everywhere, so the value is held to float32 and one unit
            wanted = odd if odd is not None else math.sin(i) / 3
            assert math.isnan(value) if math.isnan(wanted) else value == wanted or abs(value - wanted) < 1e-7


def test_tensorflow_reads_ours(tmp_path):
    tf = pytest.importorskip("tensorflow")
    log, want = written_by_us(tmp_path)
    got, first = {}, True
    for record in tf.data.TFRecordDataset(event_files(log)):
        event = tf.compat.v1.Event.FromString(record.numpy())
        if first:
            assert event.file_version == "brain.Event:2" and event.source_metadata.writer == "evalboard"
            first = False
            continue
        for value in event.summary.value:
            assert value.WhichOneof("value") == "simple_value"
            got.setdefault(value.tag, []).append((event.step, event.wall_time, value.simple_value))
    check_values(got, want)


def test_tensorboard_loader_reads_ours(tmp_path):
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    log, want = written_by_us(tmp_path)
    events = list(loader.LegacyEventFileLoader(event_files(log)[0]).Load())
    assert events[0].file_version == "brain.Event:2"
    got = {}
    for event in events[1:]:
        for value in event.summary.value:
            got.setdefault(value.tag, []).append((event.step, event.wall_time, value.simple_value))
    check_values(got, want)
    check_values(python_loader_points(log), want)


def test_fast_loader_reads_ours(tmp_path):
    log, want = written_by_us(tmp_path)
    with TensorBoard(log, tmp_path / "tensorboard", ALL_POINTS) as tensorboard:
        known = tensorboard.until("scalars/tags", lambda tags: len(tags.get(".", {})) >= len(want))
        assert known["."].keys() == want.keys()
        check_values({tag: tensorboard.points(".", tag) for tag in want}, want)


def test_same_points_through_our_own_export(tmp_path):
    log, want = written_by_us(tmp_path)
    check_values({tag: p for (_, tag), p in points(log).items()}, want)


def test_tensorflow_2_writes(tmp_path):
    tf = pytest.importorskip("tensorflow")
    writer = tf.summary.create_file_writer(str(tmp_path))
    with writer.as_default():
        for step in range(300):
            tf.summary.scalar("loss", 1 / (step + 1), step=step)
            tf.summary.scalar("größe", math.nan if step == 7 else step, step=step)
        tf.summary.histogram("weights", [1.0, 2.0, 3.0], step=1)
        tf.summary.image("picture", tf.zeros([1, 4, 4, 3]), step=1)
        tf.summary.text("note", "hello", step=2)
    writer.close()
    got = {tag: p for (_, tag), p in points(tmp_path).items()}
    want = python_loader_points(tmp_path)
    assert got.keys() == want.keys() == {"loss", "größe"}
    assert all(same(got[tag], want[tag]) for tag in want)
    series = {s["tag"]: s for s in json.loads(subprocess.run(
        [TOOL, "inspect", "--json", tmp_path], capture_output=True, check=True).stdout)["runs"][0]["series"]}
    assert {t: (s["plugin"], s["points"], s["skipped"]) for t, s in series.items()} == {
        "loss": ("scalars", 300, 0), "größe": ("scalars", 300, 0), "weights": ("histograms", 0, 1),
        "picture": ("images", 0, 1), "note": ("text", 0, 1)}
    assert series["loss"]["shown"] == 300 and series["loss"]["stored"] == "tensor DT_FLOAT"


@pytest.mark.parametrize("how", [{}, {"new_style": True}, {"new_style": True, "double_precision": True}])
def test_pytorch_writes(tmp_path, how):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        for step in range(200):
            writer.add_scalar("loss/train", math.sin(step), step, walltime=1700000000 + step / 8, **how)
            writer.add_scalar("odd", [math.nan, math.inf, -math.inf, 0.1][step % 4], step - 100, **how)
        writer.add_histogram("weights", __import__("numpy").arange(10.0), 1)
    got = {tag: p for (_, tag), p in points(tmp_path).items()}
    want = python_loader_points(tmp_path)
    assert got.keys() == want.keys()
    assert all(same(got[tag], want[tag]) for tag in want)


def test_restarts_as_the_fast_loader_holds_them(tmp_path):
    log = sample("restart", tmp_path / "log")
    want = points(log, "--view=tensorboard")
    with TensorBoard(log, tmp_path / "tensorboard", ALL_POINTS) as tensorboard:
        tensorboard.until("scalars/tags", lambda tags: "r" in tags)
        for (run, tag), series in want.items():
            assert same(tensorboard.points(run, tag), series), tag


# It takes runs and files in the file system's order, which on tmpfs is the newest first.
INSPECT = """
import sys
from tensorboard.backend.event_processing import event_file_inspector as inspector
files = inspector.tf.io.gfile
files.listdir = lambda path, listdir=files.listdir: sorted(listdir(path))
inspector.inspect(sys.argv[1], "", "")
"""


@pytest.mark.parametrize("kind", ["golden", "restart", "sample"])
def test_inspect_in_tensorboards_layout(tmp_path, kind):
    """The text of `tensorboard --inspect`, run by run."""
    inspector = pytest.importorskip("tensorboard.backend.event_processing.event_file_inspector")
    log = sample(kind, tmp_path / "log")
    runs = sorted({str(pathlib.Path(f).parent) for f in event_files(log)})
    for run in runs:
        ours = subprocess.run([TOOL, "inspect", "--format=tb", event_files(run)[0] if len(event_files(run)) == 1
                               else run], capture_output=True, text=True).stdout
        theirs = subprocess.run([sys.executable, "-c", INSPECT, run], capture_output=True, text=True)
        theirs_run = theirs.stdout[theirs.stdout.index("These tags"):]
        if theirs_run.count("These tags") > 1:
            continue  # a run above another: theirs prints both
        ours_run = ours[ours.index("These tags"):].replace(event_files(run)[0], run)
        assert ours_run.rstrip() == theirs_run.rstrip()
    assert inspector and runs
