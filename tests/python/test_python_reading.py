"""evalboard.read(), follow() and reduce() without other packages than NumPy and pandas: a log with a value of every kind,
damage, growth, restarts; and the examples."""
import gc
import subprocess
import sys
import threading
import tracemalloc
import warnings

import pytest

import python_package

np = pytest.importorskip("numpy")

import evalboard  # noqa: E402


def write(directory, tag="loss", steps=range(10), scale=1.0):
    with evalboard.SummaryWriter(directory) as w:
        for step in steps:
            w.add_scalar(tag, step * scale, step)


def test_every_kind(kinds):
    """What the C library writes in TensorBoard's newer forms."""
    assert len(evalboard.read(kinds)) >= 3
    found = {name: getattr(evalboard, f"read_{name}")(kinds) for name in ("histograms", "images", "audio", "texts", "tensors")}
    assert all(found.values())
    for values in found["histograms"].values():
        assert all(len(h.edges) == len(h.counts) + 1 or not len(h.counts) for h in values)
    assert any(texts[0].texts[0] for (run, _), texts in found["texts"].items() if run == "kinds")


def test_filters(tmp_path):
    for run in ("a/train", "a/eval", "b"):
        write(tmp_path / run, "loss")
        write(tmp_path / run, "acc/top1")
    assert list(evalboard.read(tmp_path, tags="acc/*", runs=["a/*"])) == [("a/eval", "acc/top1"), ("a/train", "acc/top1")]
    log = evalboard.read(tmp_path, steps=(3, 5))
    assert log["b", "loss"].steps.tolist() == [3, 4, 5] and log.tags == ["acc/top1", "loss"] and len(log) == 6
    assert evalboard.read(tmp_path, steps=(8, None))["b", "loss"].steps.tolist() == [8, 9]
    with pytest.raises(KeyError, match="3 runs have the tag"):
        log["loss"]
    with pytest.raises(KeyError):
        log["b", "none"]
    with pytest.raises(ValueError, match="view='x'; one of all, tensorboard, session"):
        evalboard.read(tmp_path, view="x")
    assert len(evalboard.read(tmp_path, tags="nothing")) == 0


def test_no_copy(tmp_path):
    """Arrays show the library's memory, which lives as long as they do, and can not be written to."""
    write(tmp_path, steps=range(50000))
    evalboard.read(tmp_path)
    tracemalloc.start()
    values = evalboard.read(tmp_path)["loss"].values
    assert tracemalloc.get_traced_memory()[1] < 200_000
    tracemalloc.stop()
    gc.collect()
    assert values.strides == (24,) and not values.flags.owndata and values.sum() == sum(range(50000))
    with pytest.raises(ValueError):
        values[0] = 1


def test_pandas(tmp_path):
    pytest.importorskip("pandas")
    write(tmp_path / "a")
    write(tmp_path / "b", steps=range(5, 8), scale=2)
    frame = evalboard.read(tmp_path).to_pandas()
    assert list(frame.columns) == ["run", "tag", "step", "wall_time", "value"] and len(frame) == 13
    assert frame[frame["run"] == "b"]["value"].tolist() == [10, 12, 14]
    wide = evalboard.read(tmp_path).to_pandas(wide=True)
    assert wide.loc[("b", 6), "loss"] == 12 and len(wide) == 13
    assert evalboard.read(tmp_path)["a", "loss"].to_pandas().loc[9] == 9
    assert len(evalboard.read(tmp_path, tags="none").to_pandas()) == 0


def test_damage(tmp_path):
    write(tmp_path)
    [path] = tmp_path.glob("events*")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.warns(evalboard.DamageWarning, match="1 damaged"):
        log = evalboard.read(tmp_path)
    assert log.damaged == 1 and len(log["loss"]) == 9
    with pytest.warns(evalboard.DamageWarning, match=path.name):
        assert len(list(evalboard.follow(tmp_path, timeout=0))) == 9
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "events.out.tfevents.1").write_text("no event file")
    with pytest.raises(evalboard.EventLogOSError, match="tfevents.1.*not an event file"):
        evalboard.read(tmp_path / "x" / "events.out.tfevents.1")


def test_follow(tmp_path):
    """Old points, points that are added, and a run that comes later."""
    write(tmp_path / "a", steps=range(3))
    seen, three, five = [], threading.Event(), threading.Event()

    def follow():
        for point in evalboard.follow(tmp_path):
            seen.append((point.run, point.step, point.value))
            if len(seen) == 3:
                three.set()
            if len(seen) == 5:
                break
        five.set()

    thread = threading.Thread(target=follow)
    thread.start()
    assert three.wait(60)
    write(tmp_path / "b", steps=range(2))
    assert five.wait(60)
    thread.join()
    assert seen == [("a", 0, 0), ("a", 1, 1), ("a", 2, 2), ("b", 0, 0), ("b", 1, 1)]
    assert list(evalboard.follow(tmp_path, new_only=True, timeout=0)) == []
    assert len(list(evalboard.follow(tmp_path, runs="b", timeout=0))) == 2


def test_reduce(tmp_path):
    for seed in range(3):
        write(tmp_path / f"s{seed}", scale=seed + 1.0)
    write(tmp_path / "short", steps=range(4), scale=10)
    log = evalboard.read(tmp_path)
    reduced = log.reduce(runs="s[0-9]")
    assert reduced["mean"]["loss"].values.tolist() == [2.0 * i for i in range(10)]
    assert reduced["std"]["loss"].values.tolist() == [float(i) for i in range(10)]
    with pytest.raises(ValueError, match="lax_steps=True"):
        log.reduce("mean")
    assert evalboard.reduce(log, np.ptp, lax_steps=True)["ptp"]["loss"].values.tolist() == [0, 9, 18, 27]
    with pytest.raises(ValueError, match="no operation 'mode'; one of mean"):
        log.reduce("mode", runs="s[0-9]")
    with pytest.raises(ValueError, match="no run matches 'x'"):
        log.reduce(runs="x")
    write(tmp_path / "s0", steps=range(2), scale=100)
    log = evalboard.read(tmp_path, runs="s[0-9]")
    with pytest.raises(ValueError, match="duplicates="):
        log.reduce("mean")
    assert [evalboard.reduce(log, "max", duplicates=d)["max"]["loss"].values[1]
            for d in ("keep-first", "keep-last", "mean")] == [3, 100, 50.5]


def test_reduce_leaves_out_nan(tmp_path):
    """And says how many; of figures with nothing to leave out nothing is said."""
    for seed, values in enumerate(([1, np.nan, np.inf], [3, 2, 2])):
        with evalboard.SummaryWriter(tmp_path / f"s{seed}") as w:
            for step, value in enumerate(values):
                w.add_scalar("loss", value, step)
    log = evalboard.read(tmp_path)
    with pytest.warns(UserWarning, match="left out 1 values that are NaN; with nonfinite='keep'"):
        assert log.reduce("mean", "min")["mean"]["loss"].values.tolist() == [2, 2, np.inf]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        kept = log.reduce("mean", "min", "std", nonfinite="keep")
        assert np.array_equal(kept["mean"]["loss"].values, [2, np.nan, np.inf], equal_nan=True)
        assert np.array_equal(kept["min"]["loss"].values, [1, np.nan, 2], equal_nan=True)
        evalboard.reduce(log, np.ptp)
        evalboard.read(tmp_path, steps=(0, 0)).reduce()
    with pytest.raises(ValueError, match="nonfinite='no'; one of 'drop', 'keep'"):
        log.reduce(nonfinite="no")


def test_examples(tmp_path):
    examples = python_package.ROOT / "examples/python"
    for arguments, wanted in ((["scalars.py"], ""), (["read.py"], ". loss: 1000 points"), (["read.py"], "10 histograms of 768")):
        run = subprocess.run([sys.executable, examples / arguments[0], tmp_path], env=python_package.environment(), check=True,
                             capture_output=True, text=True)
        assert wanted in run.stdout
    run = subprocess.run([sys.executable, examples / "read.py", tmp_path / "none"], env=python_package.environment(),
                         capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr.startswith("read.py: ") and "none" in run.stderr


def test_names():
    """Every name is there, and says what it is."""
    for name in evalboard.__all__:
        assert getattr(evalboard, name).__doc__, name
    assert set(evalboard.__all__) <= set(dir(evalboard))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evalboard.nothing
    methods = {name for name in dir(evalboard.SummaryWriter) if name.startswith("add_")}
    assert len(methods) >= 22 and all(getattr(evalboard.SummaryWriter, name).__doc__ for name in methods)
