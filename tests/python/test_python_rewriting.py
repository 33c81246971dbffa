"""evalboard.merge(), repair() and downsample(): as the C functions do, with Python's types and exceptions."""
import math

import pytest

import python_package  # noqa: F401

numpy = pytest.importorskip("numpy")

import evalboard  # noqa: E402


def points(log, tag="loss"):
    return [(step, value) for s in log.values() if s.tag == tag for step, value in zip(s.steps.tolist(), s.values.tolist())]


def restarted(tmp_path):
    """Steps 0 to 9, and again from 6 on."""
    for first, last, sign in ((0, 10, 1.0), (6, 12, -1.0)):
        with evalboard.SummaryWriter(tmp_path / "run") as writer:
            for step in range(first, last):
                writer.add_scalar("loss", sign * step, step)
    return tmp_path / "run"


@pytest.mark.parametrize("overlap, wanted", [
    ("last", [(s, float(s)) for s in range(6)] + [(s, -float(s)) for s in range(6, 12)]),
    ("first", [(s, float(s)) for s in range(10)] + [(s, -float(s)) for s in range(10, 12)])])
def test_merge(tmp_path, overlap, wanted):
    """One file, that TensorBoard's own reader reads alike."""
    done = evalboard.merge(restarted(tmp_path), tmp_path / "out", overlap=overlap)
    assert isinstance(done, evalboard.Merged) and done.files == 2 and done.values == 12 and done.restarts == 1
    [made] = (tmp_path / "out").iterdir()
    assert made.stat().st_size == done.bytes
    assert points(evalboard.read(tmp_path / "out")) == wanted
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(tmp_path / "out"), {"scalars": 0}).Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == wanted


def test_merge_of_several(tmp_path):
    for run in ("a", "b"):
        with evalboard.SummaryWriter(tmp_path / run) as writer:
            writer.add_scalar("loss", 1.0, 1)
    paths = [str(tmp_path / "a"), tmp_path / "b"]
    with pytest.raises(evalboard.EventLogArgumentError, match="loss"):
        evalboard.merge(paths, tmp_path / "out")
    assert not (tmp_path / "out").exists() or not list((tmp_path / "out").iterdir())
    assert evalboard.merge(paths, tmp_path / "out", prefix=True).values == 2
    assert evalboard.read(tmp_path / "out").tags == ["a/loss", "b/loss"]
    with pytest.raises(evalboard.EventLogArgumentError):
        evalboard.merge(paths, tmp_path / "out", prefix=True)
    evalboard.merge(paths, tmp_path / "out", prefix=True, force=True)
    evalboard.merge(paths, tmp_path / "joined", join=True)
    with pytest.raises(ValueError, match="overlap='all'"):
        evalboard.merge(paths, tmp_path / "x", overlap="all")
    with pytest.raises(evalboard.EventLogError, match="nothing"):
        evalboard.merge(tmp_path / "nothing", tmp_path / "x")


def damaged(tmp_path):
    with evalboard.SummaryWriter(tmp_path / "run") as writer:
        for step in range(100):
            writer.add_scalar("loss", float(step), step)
    [file] = (tmp_path / "run").iterdir()
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data[:-3])
    return file


def test_repair_into_a_copy(tmp_path):
    file = damaged(tmp_path)
    before = file.read_bytes()
    done = evalboard.repair(file, tmp_path / "fixed")
    assert isinstance(done, evalboard.Repaired) and done.changed and done.size == len(before) and done.places == 1
    assert done.cut > 0 and (tmp_path / "fixed").stat().st_size == done.bytes and file.read_bytes() == before
    with pytest.raises(evalboard.EventLogArgumentError, match="fixed"):
        evalboard.repair(file, tmp_path / "fixed")
    evalboard.repair(file, tmp_path / "fixed", force=True)
    with pytest.raises(evalboard.EventLogOSError) as caught:
        evalboard.repair(tmp_path / "none")
    assert caught.value.errno == 2


def test_repair_in_place(tmp_path):
    """TensorBoard's own reader reads all that is sound, where it stopped before."""
    file = damaged(tmp_path)
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    assert evalboard.repair(file).changed
    assert sorted(f.name for f in file.parent.iterdir()) == sorted([file.name, file.name.replace("tfevents", "tf-events") + ".bak"])
    read = accumulator.EventAccumulator(str(file), {"scalars": 0}).Reload().Scalars("loss")
    assert len(read) == 98 and evalboard.read(file).damaged == 0
    assert not evalboard.repair(file).changed


def test_downsample(tmp_path):
    """At most so many points, the first and the last among them, and a peak."""
    values = numpy.array([math.sin(i / 50) for i in range(1000)])
    values[321] = 30
    keep = evalboard.downsample(values, 50)
    assert keep.dtype == bool and keep.shape == (1000,) and keep.sum() == 50 and keep[0] and keep[-1] and keep[321]
    assert evalboard.downsample([1.0, 2.0], 5).tolist() == [True, True]
    assert evalboard.downsample(values, 50, x=numpy.arange(1000)).tolist() == keep.tolist()
    with pytest.raises(ValueError, match="one dimension"):
        evalboard.downsample(values, 50, x=[1, 2])
    with pytest.raises(evalboard.EventLogArgumentError):
        evalboard.downsample(values, 1)
    with evalboard.SummaryWriter(tmp_path) as writer:
        for step, value in enumerate(values):
            writer.add_scalar("wave", value, step)
            writer.add_scalar("short", 0.0, step // 500)
    log = evalboard.read(tmp_path)
    less = log.downsample(50)
    assert len(less["wave"]) == 50 and less["wave"].values.max() == 30 and less.runs == log.runs and len(log["wave"]) == 1000
    series = log["wave"].downsample(50)
    assert series.steps.tolist() == less["wave"].steps.tolist() and set(series.steps.tolist()) <= set(range(1000))
