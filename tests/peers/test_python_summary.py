"""evalboard.summary beside torch.utils.tensorboard.summary: equal messages. And the signatures of all writers: whatever a
program can pass to PyTorch's and tensorboardX's, ours take."""
import inspect

import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
tensorboardX = pytest.importorskip("tensorboardX")  # noqa: N816
theirs = pytest.importorskip("torch.utils.tensorboard.summary")

import evalboard  # noqa: E402
import evalboard.tensorboardX  # noqa: E402
from evalboard import summary as ours  # noqa: E402

RANDOM = np.random.default_rng(5)
PICTURE = RANDOM.integers(0, 256, (3, 9, 8), dtype=np.uint8)
NUMBERS = (torch.arange(6) * 3 - 4).reshape(2, 3)
CURVE = RANDOM.integers(0, 50, (4, 5)).astype(float)
CALLS = [
    ("scalar", "a", 1.5), ("scalar", "a", torch.tensor([0.1]), None, True), ("scalar", "a", 0.1, None, True, True),
    *[("tensor_proto", "t", NUMBERS.to(getattr(torch, name)))
      for name in ("float32", "float64", "int32", "int64", "complex64", "complex128")],
    ("tensor_proto", "t", torch.tensor([2 ** 62, -2 ** 63, -1, 127, 128, 0])), ("tensor_proto", "t", torch.empty(0)),
    ("histogram", "h", RANDOM.standard_normal(100), "auto", 5), ("histogram_raw", "h", 0, 1, 2, 3, 4, [1, 2], [3, 4]),
    ("image", "i", PICTURE, 1, "CHW"), ("image_boxes", "i", PICTURE, np.array([[1, 1, 5, 5]])),
    ("audio", "a", RANDOM.random(30), 8000), ("text", "a", "b"), ("custom_scalars", {"a": {"b": ["Multiline", ["x"]]}}),
    ("pr_curve", "p", RANDOM.integers(0, 2, 50), RANDOM.random(50), 5),
    ("pr_curve_raw", "p", *CURVE, [0.25, 0.5, 0.75, 1, 0], [1, 0.75, 0.5, 0.25, 0], 5),
    ("mesh", "m", RANDOM.random((1, 4, 3)), None, None, None, "shown", "said"),
]


def pixels(message):
    import io

    from PIL import Image
    return [np.asarray(Image.open(io.BytesIO(v.image.encoded_image_string))).tolist() for v in message.value]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call[0])
def test_same_message(call):
    function, *arguments = call
    made, wanted = getattr(ours, function)(*arguments), getattr(theirs, function)(*arguments)
    if function in ("image", "image_boxes"):
        assert pixels(made) == pixels(wanted)
    else:
        assert made == wanted and made.SerializeToString() == ours.Summary(made.SerializeToString()).SerializeToString()


def test_hparams(tmp_path):
    """In the way in which programs add them to the run of the curves."""
    arguments = {"rate": 0.1, "name": "x", "on": True}, {"accuracy": 0.5}, {"name": ["x", "y"]}
    made, wanted = ours.hparams(*arguments), theirs.hparams(*arguments)
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    for pair in zip(made, wanted, strict=True):
        tags, contents = zip(*[(m.value[0].tag, m.value[0].metadata.plugin_data.content) for m in pair])
        parsed = list(map(HParamsPluginData.FromString, contents))  # a map's entries are in any order
        assert tags[0] == tags[1] and parsed[0] == parsed[1]
    with evalboard.SummaryWriter(tmp_path) as w:
        for part in (*made, *wanted):
            w.file_writer.add_summary(part)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    assert len(EventAccumulator(str(tmp_path)).Reload().summary_metadata) == 3
    with pytest.raises(TypeError, match="metric_dict should be a dictionary"):
        ours.hparams({}, None)


def test_halves():
    assert ours.int_to_half(ours.half_to_int(0.1)) == theirs.int_to_half(theirs.half_to_int(0.1))


# What is of the other's parameters under another name or default, because it has no effect.
DIFFERENT = {("tensorboardX", "SummaryWriter", "__init__"): "comet_config", ("tensorboardX", "SummaryWriter", "add_image_with_boxes"):
             "kwargs", ("tensorboardX", "SummaryWriter", "add_onnx_graph"): "onnx_model_file"}
# Public names that are not there; docs/python.md says why.
ABSENT = {"torch": {"RecordWriter"}, "tensorboardX": {"RecordWriter", "TorchVis"}}


@pytest.mark.parametrize("which", ["torch", "tensorboardX"])
def test_signatures(which):
    mine, other = (evalboard, torch.utils.tensorboard) if which == "torch" else (evalboard.tensorboardX, tensorboardX)
    classes = {n for n, value in vars(other).items() if inspect.isclass(value)}
    assert {n for n in classes if not hasattr(mine, n)} == ABSENT[which]
    for name in classes - ABSENT[which]:
        for method, function in inspect.getmembers(getattr(other, name), inspect.isfunction):
            if method.startswith("_") and method != "__init__":
                continue
            wanted = [(p.name, p.default, p.kind) for p in inspect.signature(function).parameters.values()]
            found = [(p.name, p.default, p.kind) for p in inspect.signature(getattr(getattr(mine, name), method)).parameters.values()]
            left_out = DIFFERENT.get((which, name, method))
            if left_out:
                place = [p[0] for p in wanted].index(left_out)
                wanted, found = wanted[:place], found[:place]
            assert found[:len(wanted)] == wanted, (name, method)
    if which == "torch":
        assert set(theirs.__all__) - set(ours.__all__) == {"compute_curve", "draw_boxes", "make_histogram", "make_image", "make_video"}
        for name in set(theirs.__all__) & set(ours.__all__):
            assert list(inspect.signature(getattr(ours, name)).parameters) == list(
                inspect.signature(getattr(theirs, name)).parameters), name
