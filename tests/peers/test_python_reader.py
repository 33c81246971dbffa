"""evalboard.read() and its like beside EventAccumulator, tbparse and tensorboard-reducer: equal bit for bit, for logs of
several writers."""
import io

import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing import event_accumulator  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

import evalboard  # noqa: E402

EVERYTHING = {kind: 0 for kind in ("scalars", "images", "audio", "histograms", "compressedHistograms", "tensors")}


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Four runs of the writers of PyTorch, tensorboardX, TensorFlow and evalboard."""
    torch_writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter
    x_writer = pytest.importorskip("tensorboardX").SummaryWriter
    tf = pytest.importorskip("tensorflow")
    logdir = tmp_path_factory.mktemp("log")
    random = np.random.default_rng(3)
    for seed, writer in enumerate((torch_writer, x_writer, evalboard.SummaryWriter)):
        with writer(str(logdir / f"seed-{seed}")) as w:
            for step in range(200):
                w.add_scalar("loss", random.standard_normal(), step)
                w.add_scalar("train/acc", random.random(), 2 * step)
            for step in range(3):
                w.add_histogram("weights", random.standard_normal(500), step)
                w.add_image("picture", random.random((3, 8, 9)), step)
                w.add_text("note", f"step {step} ü", step)
            w.add_pr_curve("pr", random.integers(0, 2, 50), random.random(50), 5)
        if seed != 1:
            with writer(str(logdir / "sound")) as w:
                w.add_audio("tone", random.random(300) * 2 - 1, seed, 8000)
    with tf.summary.create_file_writer(str(logdir / "tf")).as_default():
        for step in range(50):
            tf.summary.scalar("loss", random.standard_normal(), step)
        tf.summary.histogram("weights", random.standard_normal(500), 3)
        tf.summary.image("picture", random.random((2, 8, 9, 3)), 3)
        tf.summary.text("note", ["a", "b"], 3)
        tf.summary.audio("tone", (random.random((2, 100, 1)) * 2 - 1).astype("f"), 8000, 3)
        tf.summary.write("array", tf.constant(random.random((2, 3))), 3, tf.compat.v1.SummaryMetadata(
            plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="mine")))
    return logdir


@pytest.fixture(scope="module")
def accumulators(log):
    return {run: event_accumulator.EventAccumulator(str(log / run), size_guidance=EVERYTHING).Reload()
            for run in ("seed-0", "seed-1", "seed-2", "sound", "tf")}


def test_scalars(log, accumulators):
    ours, count = evalboard.read(log), 0
    for run, accumulator in accumulators.items():
        series = {tag: [(e.step, e.wall_time, e.value) for e in accumulator.Scalars(tag)]
                  for tag in accumulator.Tags()["scalars"]}
        for tag in accumulator.Tags()["tensors"]:
            if accumulator.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                series[tag] = [(e.step, e.wall_time, float(tensor_util.make_ndarray(e.tensor_proto)))
                               for e in accumulator.Tensors(tag)]
        for tag, points in series.items():
            assert ours[run, tag].points.tolist() == points
            count += len(points)
    assert count == sum(map(len, ours.values())) == 3 * 400 + 50
    assert ours.runs == sorted(accumulators) and ours.damaged == 0


def test_other_kinds(log, accumulators):
    histograms, images, sounds, texts, tensors = (function(log) for function in (
        evalboard.read_histograms, evalboard.read_images, evalboard.read_audio, evalboard.read_texts, evalboard.read_tensors))
    seen = set()
    for run, accumulator in accumulators.items():
        for tag in accumulator.Tags()["histograms"]:
            for ours, theirs in zip(histograms[run, tag], accumulator.Histograms(tag), strict=True):
                value = theirs.histogram_value
                assert (ours.step, ours.wall_time) == (theirs.step, theirs.wall_time)
                # TensorBoard's form: from the smallest to the largest value, without the empty bucket on the left.
                assert ours.counts.tolist() == value.bucket[1:]
                assert ours.edges.tolist() == [value.min, *value.bucket_limit[1:-1], value.max]
            seen.add("histograms")
        for tag in accumulator.Tags()["images"]:
            for ours, theirs in zip(images[run, tag], accumulator.Images(tag), strict=True):
                assert (ours.step, ours.wall_time, ours.files, ours.width, ours.height) == (
                    theirs.step, theirs.wall_time, [theirs.encoded_image_string], theirs.width, theirs.height)
                assert ours.pixels().shape == (8, 9, 3)
            seen.add("images")
        for tag in accumulator.Tags()["audio"]:
            for ours, theirs in zip(sounds[run, tag], accumulator.Audio(tag), strict=True):
                assert (ours.step, ours.wall_time, ours.files) == (theirs.step, theirs.wall_time, [theirs.encoded_audio_string])
                assert ours.samples()[0].shape == (theirs.length_frames, 1) and ours.samples()[1] == theirs.sample_rate
            seen.add("audio")
        for tag in accumulator.Tags()["tensors"]:
            plugin = accumulator.SummaryMetadata(tag).plugin_data.plugin_name
            arrays = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto)) for e in accumulator.Tensors(tag)]
            if plugin == "text":
                assert [(t.step, t.wall_time, [s.encode() for s in t.texts]) for t in texts[run, tag]] == [
                    (step, wall, [array] if isinstance(array, bytes) else array.reshape(-1).tolist()) for step, wall, array in arrays]
            elif plugin == "images":
                assert [i.files for i in images[run, tag]] == [array.tolist()[2:] for _, _, array in arrays]
            elif plugin == "audio":
                assert [a.files for a in sounds[run, tag]] == [array[:, 0].tolist() for _, _, array in arrays]
            elif plugin == "histograms":
                for ours, (_, _, array) in zip(histograms[run, tag], arrays, strict=True):
                    assert ours.counts.tobytes() == array[:, 2].tobytes() and ours.edges[1:].tolist() == array[:, 1].tolist()
            elif plugin != "scalars":
                for ours, (step, wall, array) in zip(tensors[run, tag], arrays, strict=True):
                    assert (ours.step, ours.wall_time) == (step, wall) and ours.value.tobytes() == array.tobytes()
            seen.add("tensors of " + plugin)
    assert seen == {"histograms", "images", "audio"} | {"tensors of " + p for p in (
        "scalars", "text", "images", "audio", "histograms", "pr_curves", "mine")}


def test_beside_tbparse(log):
    tbparse = pytest.importorskip("tbparse")
    theirs = tbparse.SummaryReader(str(log), event_types={"scalars"}, extra_columns={"dir_name", "wall_time"}).scalars
    theirs = theirs.sort_values(["dir_name", "tag", "step"], kind="stable")
    ours = evalboard.read(log, runs="seed-*").to_pandas()
    assert ours["run"].tolist() == theirs["dir_name"].tolist() and ours["tag"].tolist() == theirs["tag"].tolist()
    for column in ("step", "value", "wall_time"):
        assert ours[column].tolist() == theirs[column].tolist()


def test_beside_reducer(log, tmp_path):
    reducer = pytest.importorskip("tensorboard_reducer")
    theirs = reducer.reduce_events(reducer.load_tb_events([str(log / f"seed-{i}") for i in range(3)], verbose=False),
                                   ("mean", "std", "min", "max", "median"), verbose=False)
    ours = evalboard.read(log).reduce("mean", "std", "min", "max", "median", runs="seed-*")
    for name, tags in theirs.items():
        assert set(tags) == set(ours[name].tags)
        for tag, series in tags.items():
            assert ours[name][name, tag].steps.tolist() == series.index.tolist()
            np.testing.assert_array_max_ulp(ours[name][name, tag].values, series.to_numpy(), maxulp=2)
    evalboard.write_reduced(ours, tmp_path)
    again = evalboard.read(tmp_path)
    assert again.runs == sorted(ours)
    assert again["mean", "loss"].values.tolist() == ours["mean"]["loss"].values.astype(np.float32).tolist()


def test_pixels(log):
    pillow = pytest.importorskip("PIL.Image")
    image = evalboard.read_images(log)["tf", "picture"][0]
    assert len(image.files) == 2 and np.asarray(pillow.open(io.BytesIO(image.files[1]))).tolist() == image.pixels(1).tolist()


def test_arrow(log):
    """An Arrow library takes the log as it is, with what pandas gets."""
    nanoarrow = pytest.importorskip("nanoarrow")
    points, frame = evalboard.read(log), evalboard.read(log).to_pandas()
    rows = [row for chunk in nanoarrow.ArrayStream(points).iter_chunks() for row in chunk.to_pylist()]
    assert [tuple(row.values()) for row in rows] == list(frame.itertuples(index=False, name=None)) and len(rows) == 1250
