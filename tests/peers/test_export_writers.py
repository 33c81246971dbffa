"""Event files of other writers - TensorFlow 2, TensorFlow 1's FileWriter, PyTorch, tensorboardX - through `inspect` and
`export`, against TensorBoard's EventAccumulator with all points. Equal means: to the last bit.
"""
import csv
import io
import json
import math
import os
import pathlib
import struct
import subprocess

import pytest

np = pytest.importorskip("numpy")
event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
from tensorboard.util import tensor_util  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
EVERYTHING = {kind: 0 for kind in ("compressedHistograms", "images", "audio", "scalars", "histograms", "tensors")}


def run(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def bits(x):
    return "nan" if math.isnan(x) else struct.pack("<d", x)


def rows_of(histogram):
    """An old histogram as TensorBoard's migration makes it, in doubles."""
    full = [i for i, count in enumerate(histogram.bucket) if count > 0]
    if not full:
        return []
    inner = list(histogram.bucket_limit[full[0]:full[-1]])
    return [list(row) for row in zip([histogram.min, *inner], [*inner, histogram.max],
                                     histogram.bucket[full[0]:full[-1] + 1])]


class Theirs:
    """A run as EventAccumulator holds it: points, histograms, and how many values each tag has."""

    def __init__(self, path, purge=False):
        loaded = event_accumulator.EventAccumulator(str(path), size_guidance=EVERYTHING,
                                                    purge_orphaned_data=purge).Reload()
        tags = loaded.Tags()
        self.points, self.histograms, self.counts = {}, {}, {}
        for tag in tags["scalars"]:
            self.points[tag] = [(e.step, bits(e.wall_time), bits(e.value)) for e in loaded.Scalars(tag)]
        for tag in tags["histograms"]:
            self.histograms[tag] = [(e.step, e.wall_time, rows_of(e.histogram_value)) for e in loaded.Histograms(tag)]
        for kind, read in ("images", loaded.Images), ("audio", loaded.Audio):
            for tag in tags[kind]:
                self.counts[tag] = len(read(tag))
        for tag in tags["tensors"]:
            events, plugin = loaded.Tensors(tag), loaded.SummaryMetadata(tag).plugin_data.plugin_name
            if plugin == "scalars":
                self.points[tag] = [(e.step, bits(e.wall_time),
                                     bits(float(tensor_util.make_ndarray(e.tensor_proto).item()))) for e in events]
            elif plugin == "histograms":
                self.histograms[tag] = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto).tolist())
                                        for e in events]
            else:
                self.counts[tag] = len(events)
        self.counts |= {tag: len(points) for tag, points in {**self.points, **self.histograms}.items()}


def points(path, *options):
    """tag -> points in reading order, by our export as csv; also through jsonl, which must say the same."""
    found = {}
    for row in csv.DictReader(io.StringIO(run("export", path, "--order=file", *options))):
        found.setdefault(row["tag"], []).append((int(row["step"]), bits(float(row["wall_time"])),
                                                 bits(float(row["value"]))))
    lines = [json.loads(line) for line in run("export", path, "--order=file", "--format=jsonl", *options).splitlines()]
    again = {}
    for p in lines:
        again.setdefault(p["tag"], []).append((p["step"], bits(float(p["wall_time"])), bits(float(p["value"]))))
    assert again == found
    return found


def histograms(path):
    found = {}
    for r in csv.DictReader(io.StringIO(run("export", path, "--format=histograms", "--order=file"))):
        found.setdefault((r["tag"], int(r["step"]), float(r["wall_time"])), []).append(
            [float(r["left"]), float(r["right"]), float(r["count"])])
    return found


def same(path, least):
    """Points, histograms and inspect's figures of a run directory; at least so many points."""
    theirs, ours = Theirs(path), points(path)
    assert ours == theirs.points
    assert sum(map(len, ours.values())) >= least
    assert histograms(path) == {(tag, step, wall): rows for tag, events in theirs.histograms.items()
                                for step, wall, rows in events if rows}
    series = {s["tag"]: s for s in json.loads(run("inspect", "--json", path))["runs"][0]["series"]}
    for tag, count in theirs.counts.items():
        s = series[tag]
        assert s["points"] + s["skipped"] == count, tag
        if tag in theirs.points:
            steps = [p[0] for p in theirs.points[tag]]
            assert (s["points"], s["first_step"], s["last_step"], s["min_step"], s["max_step"], s["num_steps"]) == (
                len(steps), steps[0], steps[-1], min(steps), max(steps), len(set(steps)))
            assert s["outoforder_steps"] == [[a, b] for a, b in zip(steps, steps[1:]) if b < a]
    return theirs, ours


def test_tensorflow_2(tmp_path):
    tf = pytest.importorskip("tensorflow")
    writer = tf.summary.create_file_writer(str(tmp_path))
    metadata = tf.compat.v1.SummaryMetadata(plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"))
    types = ["float64", "int32", "int64", "float16", "int8", "uint8", "int16", "uint16", "bool"]
    with writer.as_default():
        for step in [0, 1, 2, 7, 5, 6, 9, 9]:  # back, and twice the same
            tf.summary.scalar("loss", 1 / (step + 3), step=step)
            tf.summary.scalar("odd", [math.nan, math.inf, -math.inf, -0.0][step % 4], step=step)
            for name in types:
                number = step * 31.7 % 2 if name == "bool" else step * 3.3
                tf.summary.write(f"typed/{name}", tf.cast(number, name), step=step, metadata=metadata)
            tf.summary.write("typed/one element", tf.constant([step / 7], tf.float64), step=step, metadata=metadata)
            tf.summary.histogram("weights", np.random.default_rng(step).normal(size=100), step=step)
            tf.summary.image("picture", tf.zeros([2, 4, 4, 3]), step=step)
            tf.summary.text("note", f"*{step}*", step=step)
            tf.summary.audio("tone", tf.zeros([1, 100, 1]), 8000, step=step)
        tf.summary.histogram("same", [2.0, 2.0], step=2**40)
        tf.summary.histogram("none", [], step=3)
        tf.summary.scalar("large", 16777217, step=2**62)
    writer.close()
    theirs, _ = same(tmp_path, 90)
    assert set(theirs.points) == {"loss", "odd", "large", "typed/one element", *(f"typed/{name}" for name in types)}
    assert set(theirs.histograms) == {"weights", "same", "none"}
    assert {tag for tag in theirs.counts} >= {"picture", "note", "tone"}


def test_tensorflow_1_and_restarts(tmp_path):
    tf = pytest.importorskip("tensorflow").compat.v1
    steps = [range(0, 50, 5), range(30, 80, 5), range(20, 40, 5)]
    for i, some in enumerate(steps):
        with tf.Graph().as_default():  # a FileWriter wants no eager execution
            writer = tf.summary.FileWriter(str(tmp_path), filename_suffix=f".{i}")
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.START), some[0])
            for step in some:
                value = tf.Summary.Value
                writer.add_summary(tf.Summary(value=[
                    value(tag="loss", simple_value=math.sin(step + i)),
                    value(tag="accuracy", simple_value=step / 100)]), step)
                histogram = tf.HistogramProto(min=-2, max=3, num=6, sum=1, sum_squares=2,
                                              bucket_limit=[-1, 0, 1, 2, 1e308], bucket=[0, step + 1, 0, 3, 0])
                writer.add_summary(tf.Summary(value=[value(tag="weights", histo=histogram)]), step)
                image = tf.Summary.Image(height=1, width=1, colorspace=1, encoded_image_string=b"\x89PNG")
                writer.add_summary(tf.Summary(value=[value(tag="picture", image=image)]), step)
            writer.add_session_log(tf.SessionLog(status=tf.SessionLog.CHECKPOINT, checkpoint_path="x"), some[-1])
            writer.close()
    theirs, ours = same(tmp_path, 48)
    assert len(ours["loss"]) == sum(map(len, steps))
    purged = Theirs(tmp_path, purge=True)
    assert points(tmp_path, "--view=session") == purged.points
    assert [p[0] for p in purged.points["loss"]] == [0, 5, 10, 15, 20, 25, 30, 35]
    # The default loader's rule, series by series, as the formats' manual says it.
    kept = []
    for point in ours["loss"]:
        kept = [p for p in kept if p[0] < point[0]] + [point]
    assert points(tmp_path, "--view=tensorboard")["loss"] == kept
    assert len(theirs.histograms["weights"]) == len(ours["loss"])


@pytest.mark.parametrize("how", [{}, {"new_style": True}, {"new_style": True, "double_precision": True}])
def test_pytorch(tmp_path, how):
    tensorboard = pytest.importorskip("torch.utils.tensorboard")
    torch = pytest.importorskip("torch")
    for start in 0, 60:  # the second goes on from step 60 of a hundred
        with tensorboard.SummaryWriter(str(tmp_path), purge_step=start or None, filename_suffix=f".{start}") as writer:
            for step in range(start, 100):
                writer.add_scalar("loss", math.sin(step + start), step, walltime=1700000000 + step / 7, **how)
            writer.add_scalar("odd", [math.nan, math.inf, -math.inf, 1e-45][start % 4], -5, **how)
            writer.add_histogram("weights", torch.linspace(-1, 1, 500), 1)
            writer.add_histogram("ones", torch.ones(3), 1, bins="auto")
            writer.add_text("note", "a *b*", 1)
            writer.add_image("picture", torch.zeros(3, 4, 4), 1)
            writer.add_pr_curve("curve", torch.ones(4), torch.rand(4), 1)
    theirs, _ = same(tmp_path, 142)
    assert len(theirs.points["loss"]) == 140 and set(theirs.histograms) == {"weights", "ones"}


def test_tensorboardx(tmp_path):
    tensorboardx = pytest.importorskip("tensorboardX")
    with tensorboardx.SummaryWriter(str(tmp_path)) as writer:
        for step in (0, 3, 1, 2, 2, 10):
            writer.add_scalar("größe/loss", 1 / (step + 1), step)
            writer.add_scalar("shown", step, step, display_name="Name", summary_description="*text*")
        writer.add_histogram("weights", np.linspace(-3, 5, 200), 1)
        writer.add_histogram("empty outside", np.array([0.0, 0.0, 1e-9]), 2)
        writer.add_text("note", "hello", 1)
        writer.add_image("picture", np.zeros((3, 4, 4), np.uint8), 1)
    theirs, _ = same(tmp_path, 12)
    assert set(theirs.points) == {"größe/loss", "shown"} and len(theirs.histograms) == 2


def test_several_files_and_directories(tmp_path):
    """A tree of runs: each is what EventAccumulator makes of that directory alone."""
    tf = pytest.importorskip("tensorflow")
    for name in "a", "a/b", "c":
        for part in range(2):
            writer = tf.summary.create_file_writer(str(tmp_path / name), filename_suffix=f".{part}")
            with writer.as_default():
                for step in range(part * 5, part * 5 + 8):
                    tf.summary.scalar("loss", step * len(name) + part, step=step)
            writer.close()
    rows = list(csv.DictReader(io.StringIO(run("export", tmp_path))))
    for name in "a", "a/b", "c":
        want = sorted((s, i, v) for i, (s, _, v) in enumerate(Theirs(tmp_path / name).points["loss"]))
        ours = [(int(r["step"]), bits(float(r["value"]))) for r in rows if r["run"] == name]
        assert ours == [(s, v) for s, _, v in want]
    assert [r["run"] for r in json.loads(run("inspect", "--json", tmp_path))["runs"]] == ["a", "a/b", "c"]
