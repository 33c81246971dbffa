"""Python's SummaryWriter beside those of PyTorch and tensorboardX: the same calls make the same messages, value by value and
bit for bit, and the same files for the projector."""
import io
import pathlib

import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")
pytest.importorskip("tensorboardX")

from PIL import Image  # noqa: E402
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader  # noqa: E402
from tensorboard.compat.proto import event_pb2  # noqa: E402
from tensorboard.plugins.hparams import plugin_data_pb2  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

import evalboard  # noqa: E402
import evalboard.tensorboardX  # noqa: E402

WALL = 1700000000.25
RANDOM = np.random.default_rng(17)


def events(run):
    return [event_pb2.Event.FromString(data) for path in sorted(run.glob("events*"))
            for data in RawEventFileLoader(str(path)).Load()]


def runs(logdir):
    return sorted({path.parent.relative_to(logdir) for path in logdir.rglob("events*")})


def same_value(ours, theirs):
    """Two Summary.Values: pictures by their pixels, arrays by their elements' bits, everything else by the message."""
    assert ours.tag == theirs.tag and ours.WhichOneof("value") == theirs.WhichOneof("value")
    if theirs.HasField("image"):
        pixels = [np.asarray(Image.open(io.BytesIO(v.image.encoded_image_string))) for v in (ours, theirs)]
        assert pixels[0].tobytes() == pixels[1].tobytes() and pixels[0].shape == pixels[1].shape
        ours.image.ClearField("encoded_image_string"), theirs.image.ClearField("encoded_image_string")
    if theirs.histo.num > 10_000:  # then the last bits of PyTorch's depend on the number of threads of NumPy's BLAS
        assert ours.histo.sum_squares == pytest.approx(theirs.histo.sum_squares, rel=1e-14, abs=0)
        ours.histo.sum_squares = theirs.histo.sum_squares
    if theirs.HasField("tensor"):
        arrays = [tensor_util.make_ndarray(v.tensor) for v in (ours, theirs)]
        assert arrays[0].dtype == arrays[1].dtype and arrays[0].shape == arrays[1].shape
        assert arrays[0].tolist() == arrays[1].tolist() if arrays[0].dtype == object else \
            arrays[0].tobytes() == arrays[1].tobytes()
        assert ours.tensor.dtype == theirs.tensor.dtype and ours.tensor.tensor_shape == theirs.tensor.tensor_shape
        ours.ClearField("tensor"), theirs.ClearField("tensor")
    if theirs.metadata.plugin_data.plugin_name == "hparams":  # a map's entries are in any order
        settings = [plugin_data_pb2.HParamsPluginData.FromString(v.metadata.plugin_data.content) for v in (ours, theirs)]
        assert settings[0] == settings[1]
        ours.ClearField("metadata"), theirs.ClearField("metadata")
    assert ours == theirs


def same_logs(ours, theirs, times=True):
    """The same runs with the same events; returns how many values were compared."""
    assert runs(ours) == runs(theirs)
    count = 0
    for run in runs(theirs):
        pair = [[e for e in events(logdir / run) if not e.file_version] for logdir in (ours, theirs)]
        assert len(pair[0]) == len(pair[1])
        for a, b in zip(*pair):
            assert a.step == b.step and a.WhichOneof("what") == b.WhichOneof("what")
            assert not times or not b.HasField("summary") or a.wall_time == b.wall_time
            assert len(a.summary.value) == len(b.summary.value)
            for x, y in zip(a.summary.value, b.summary.value):
                same_value(x, y)
                count += 1
            a.ClearField("summary"), b.ClearField("summary"), a.ClearField("wall_time"), b.ClearField("wall_time")
            assert a == b
    return count


def scalars(w):
    for step, value in enumerate([0.1, 1, True, np.float32(1 / 3), np.float64(2 / 3), np.int64(7), np.array(0.5), np.array([[4]]),
                                  torch.tensor(0.25), torch.tensor([1.5], requires_grad=True),
                                  float("nan"), float("-inf"), 3e38, 1e-45, -0.0]):
        w.add_scalar("loss/train", value, step, WALL + step)
    if "tensorboardX" not in type(w).__module__:
        w.add_scalar("half", torch.tensor(1.7, dtype=torch.bfloat16), 1, WALL)
    w.add_scalar("no step", 1.5, walltime=WALL)
    w.add_scalar("steps", 1.5, np.int32(3), WALL)
    w.add_scalar("steps", 1.5, torch.tensor(4), WALL)
    w.add_scalar("steps", 1.5, 5.7, WALL)
    w.add_scalar("steps", 1.5, -1, WALL)
    w.add_scalar("Ü/ñ", 1.5, 2 ** 62, WALL)
    w.add_scalars("group/of", {"sin": 0.5, "cos": torch.tensor(0.75)}, 9, WALL)


def pictures(w):
    floats = RANDOM.random((3, 11, 7)).astype(np.float32)
    bytes_ = RANDOM.integers(0, 256, (3, 11, 7), dtype=np.uint8)
    w.add_image("floats", floats, 1, WALL)
    w.add_image("bytes", torch.from_numpy(bytes_), 2, WALL)
    w.add_image("hwc", bytes_.transpose(1, 2, 0), 3, WALL, dataformats="HWC")
    w.add_image("hw", floats[0], 4, WALL, dataformats="HW")
    w.add_image("grey", floats[:1], 5, WALL)
    if "tensorboardX" not in type(w).__module__:  # which wraps around
        w.add_image("beyond", floats * 3 - 1, 5, WALL)
    w.add_image("rgba", RANDOM.integers(0, 256, (4, 5, 6), dtype=np.uint8), 6, WALL)
    w.add_images("batch", RANDOM.random((11, 3, 6, 5)), 7, WALL)
    w.add_images("grey batch", RANDOM.random((3, 6, 5, 1)), 7, WALL, dataformats="NHWC")


def others(w):
    for name, values in (("normal", RANDOM.standard_normal(30000)), ("floats", RANDOM.standard_normal((7, 9)).astype("f")),
                         ("integers", np.arange(-5, 6)), ("one", np.array([0.0])), ("half", torch.ones(3).half()),
                         ("wide", np.array([-1e19, 1e-13, -0.0, 1e19]))):
        w.add_histogram(name, values, 1, walltime=WALL)
    for bins in ("auto", "fd", 12):
        w.add_histogram(f"bins {bins}", np.arange(1000.0), 2, bins=bins, walltime=WALL, max_bins=5)
    w.add_histogram("max_bins", RANDOM.standard_normal(5000), 2, walltime=WALL, max_bins=40)
    w.add_histogram_raw("raw", 0, 4, 5, 10.5, 30.25, [1, 2, 4], [2, 0, 3], 3, WALL)
    w.add_text("note", "a|b\n-|-\nc|ü", 4, WALL)
    labels, predictions = RANDOM.integers(0, 2, 200), RANDOM.random(200)
    w.add_pr_curve("pr", labels, predictions, 6, 50, walltime=WALL)
    w.add_pr_curve("pr weights", labels, predictions, 6, weights=RANDOM.random(200), walltime=WALL)
    counts = RANDOM.integers(0, 50, (4, 5)).astype(float)
    w.add_pr_curve_raw("pr raw", *counts, [0.25, 0.5, 0.75, 1, 0], [1, 0.75, 0.5, 0.25, 0], 7, 5, walltime=WALL)
    if "tensorboardX" in type(w).__module__:  # whose meshes have tags that TensorBoard's own writer does not make
        return
    w.add_mesh("mesh", np.array([[[1, 1, 1], [-1, -1, 1], [1, -1, -1]]], float), np.array([[[255, 0, 0]] * 3]),
               np.array([[[0, 1, 2]]]), {"camera": {"cls": "PerspectiveCamera", "fov": 75}}, 8, WALL)
    w.add_mesh("points", torch.rand(2, 5, 3), global_step=9, walltime=WALL)


def layouts(w):
    w.add_custom_scalars({"A": {"one": ["Multiline", ["loss/train", "x"]]}, "B": {"two": ["Margin", ["v", "l", "u"]]}})
    w.add_custom_scalars_multilinechart(["a", "b"], "c", "t")
    w.add_custom_scalars_marginchart(["a", "b", "c"])


def both(tmp_path, ours, theirs, calls):
    """Runs the same calls, with the same random numbers, on a writer of each kind; compares the logs."""
    global RANDOM
    for name, writer in (("ours", ours), ("theirs", theirs)):
        RANDOM = np.random.default_rng(17)
        torch.manual_seed(17)
        with writer(str(tmp_path / name)) as w:
            calls(w)
    return same_logs(tmp_path / "ours", tmp_path / "theirs", times=calls is not layouts)


@pytest.fixture(params=["torch", "tensorboardX"])
def pair(request):
    if request.param == "torch":
        from torch.utils.tensorboard import SummaryWriter
        return evalboard.SummaryWriter, SummaryWriter
    from tensorboardX import SummaryWriter
    return evalboard.tensorboardX.SummaryWriter, SummaryWriter


@pytest.mark.parametrize("calls, least", [(scalars, 20), (pictures, 8), (others, 15), (layouts, 3)], ids=lambda x: getattr(x, "__name__", ""))
def test_same_values(tmp_path, pair, calls, least):
    assert both(tmp_path, *pair, calls) >= least


def test_torch_alone(tmp_path):
    """What PyTorch's writer has and tensorboardX's has not, or has in another way."""
    from torch.utils.tensorboard import SummaryWriter

    def calls(w):
        w.add_scalar("new", 0.1, 1, WALL, new_style=True)
        w.add_scalar("double", 0.1, 2, WALL, new_style=True, double_precision=True)
        w.add_audio("tone", np.sin(np.arange(500) / 9), 3, 8000, WALL)
        w.add_audio("torch", torch.rand(1, 100) * 2 - 1, 3, walltime=WALL)
        for dtype in ("float32", "float64", "int32", "int64"):
            w.add_tensor(dtype, torch.arange(6).reshape(2, 3).to(getattr(torch, dtype)), 4, WALL)
        w.add_tensor("empty", torch.empty(0), 5, WALL)
        w.add_hparams({"rate": 0.1, "layers": 3, "name": "a", "norm": True, "none": None, "t": torch.tensor([2.0])},
                      {"hparam/accuracy": 0.5}, {"rate": [0.1, 0.2], "name": ["a", "b"]}, "trial", 6)
        w.add_graph(torch.nn.Linear(3, 5), torch.zeros(1, 3))

    global RANDOM
    for name, writer in (("ours", evalboard.SummaryWriter), ("theirs", SummaryWriter)):
        torch.manual_seed(17)
        with writer(str(tmp_path / name)) as w:
            calls(w)
    for logdir in (tmp_path / "ours", tmp_path / "theirs"):
        assert [str(run) for run in runs(logdir)] == [".", "trial"]
    graphs = [[e for e in events(tmp_path / name) if e.HasField("graph_def")] for name in ("ours", "theirs")]
    assert len(graphs[0]) == 1 and graphs[0][0].graph_def == graphs[1][0].graph_def
    count = 0
    for run in runs(tmp_path / "theirs"):
        values = [[(e.step, v) for e in events(tmp_path / name / run) for v in e.summary.value] for name in ("ours", "theirs")]
        assert len(values[0]) == len(values[1])
        for (a, x), (b, y) in zip(*values):
            assert a == b
            same_value(x, y)
            count += 1
    assert count == 4 + 5 + 4


def test_tensors(tmp_path):
    """Every type; of most PyTorch's writer makes messages that TensorBoard cannot read."""
    wanted = {}
    with evalboard.SummaryWriter(str(tmp_path)) as w:
        for name in ("float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
                     "bool", "complex64", "complex128"):
            wanted[name] = (np.arange(6).reshape(2, 3) * 1.5).astype(name)
            w.add_tensor(name, torch.from_numpy(wanted[name]) if hasattr(torch, name) else wanted[name], 1, WALL)
        w.add_tensor("bfloat16", torch.tensor([1.5, -2]).bfloat16())
        w.add_tensor("bfloat16 of NumPy", np.array([1.5, -2], pytest.importorskip("ml_dtypes").bfloat16))  # as JAX has it
    values = {v.tag: v.tensor for e in events(tmp_path) for v in e.summary.value}
    ours = {tag: found[0].value for (_, tag), found in evalboard.read_tensors(tmp_path).items()}
    for name, array in wanted.items():
        for found in (tensor_util.make_ndarray(values[name]), ours[name]):
            assert found.dtype == array.dtype and found.shape == (2, 3) and found.tobytes() == array.tobytes(), name
    assert ours["bfloat16"].tolist() == ours["bfloat16 of NumPy"].tolist() == [1.5, -2]  # which TensorBoard itself cannot read


def test_tensorboardx_alone(tmp_path):
    from tensorboardX import SummaryWriter

    def calls(w):
        w.add_scalar("with words", 0.5, 1, WALL, "shown", "said")
        w.add_scalar("a b:c", 0.5, 2, WALL)
        with w.use_metadata(global_step=7, walltime=WALL):
            w.add_scalar("by default", 0.5)
            w.add_scalar("by default", 0.5, 8)
            w.add_text("by default", "x")
        w.add_images("list", [np.ones((3, 5, 4)), np.zeros((3, 5, 4))], 3, WALL, "CHW")
        w.add_hparams({"rate": 0.1, "norm": True, "name": "a", "call": len, "list": [1]}, {"accuracy": 0.5}, "trial", 6)

    for name, writer in (("ours", evalboard.tensorboardX.SummaryWriter), ("theirs", SummaryWriter)):
        with writer(str(tmp_path / name)) as w:
            calls(w)
    assert same_logs(tmp_path / "ours", tmp_path / "theirs", times=False) == 10
    with evalboard.tensorboardX.SummaryWriter(str(tmp_path / "none"), write_to_disk=False) as w:
        calls(w)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("which", ["torch", "tensorboardX"])
def test_projector(tmp_path, which):
    from google.protobuf import text_format
    from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
    writer = evalboard.SummaryWriter
    other = pytest.importorskip("torch.utils.tensorboard" if which == "torch" else which).SummaryWriter
    images = torch.rand(3, 3, 5, 5)
    for name, make in (("ours", writer), ("theirs", other)):
        with make(str(tmp_path / name)) as w:
            w.add_embedding(torch.tensor([[1.0, 2, 3], [5, 4.25, 1], [3, 7, 7]]), torch.tensor([33.0, 44, 55]), images, 2)
            w.add_embedding(np.eye(3), [("a", "x"), ("b", "ü"), ("c", "z")], None, 3, 'a "b"/c', ["one", "two"])
    folders = [sorted(p.relative_to(tmp_path / name) for p in (tmp_path / name).rglob("*.[tp][sn][vg]"))
               for name in ("ours", "theirs")]
    assert folders[0] == folders[1] and len(folders[0]) == 5
    for path in map(pathlib.Path, folders[0]):
        pair = [(tmp_path / name / path).read_bytes() for name in ("ours", "theirs")]
        if path.suffix == ".tsv":
            assert pair[0] == pair[1], path
        else:
            pixels = [np.asarray(Image.open(io.BytesIO(data))) for data in pair]
            assert pixels[0].tolist()[:5] == pixels[1].tolist()[:5]
    if which == "torch":  # tensorboardX does not quote the name
        config = [text_format.Parse((tmp_path / name / "projector_config.pbtxt").read_text(), ProjectorConfig())
                  for name in ("ours", "theirs")]
        assert config[0] == config[1]


class Logging(torch.utils.data.Dataset):
    """Each item is written by the worker that loads it."""

    def __init__(self, writer):
        self.writer = writer

    def __len__(self):
        return 40

    def __getitem__(self, i):
        self.writer.add_scalar("loss", float(i), i)
        return i


def test_data_loader(tmp_path):
    """Workers of a DataLoader, which nobody closes."""
    with evalboard.SummaryWriter(tmp_path) as w:
        w.add_scalar("loss", 100.0)
        loader = torch.utils.data.DataLoader(Logging(w), batch_size=4, num_workers=2, multiprocessing_context="fork")
        assert sum(batch.sum().item() for batch in loader) == sum(range(40))
        w.add_scalar("loss", 101.0)
    assert sorted(evalboard.read(tmp_path)["loss"].values.tolist()) == [*range(40), 100, 101]
    assert len(list(tmp_path.glob("events*"))) == 3


@pytest.mark.filterwarnings("error")
def test_loss_before_backward(tmp_path):
    """As most training loops write it: a tensor that requires a gradient, without a warning."""
    loss = torch.tensor(0.25, requires_grad=True) * 2
    with evalboard.SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", loss, 1)
        writer.add_scalars("both", {"a": loss}, 1)
    assert evalboard.read(tmp_path)[".", "loss"].values.tolist() == [0.5]
