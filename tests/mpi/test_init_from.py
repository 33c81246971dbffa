"""A training that begins with the variables of another one's checkpoint, and leaves some untrained: --init-from, --scope,
--freeze."""
import json
import pathlib
import tempfile

import pytest

import ranks
from checkpoint_files import as_json, checkpoint, version_1, write_safetensors

numpy = pytest.importorskip("numpy")
DATA = "/usr/share/datasets/fashion-mnist"
SHAPES = {"conv1/weights": (5, 5, 1, 10), "conv1/biases": (10,), "conv2/weights": (5, 5, 10, 20), "conv2/biases": (20,),
          "fc3/weights": (320, 50), "fc3/biases": (50,), "fc4/weights": (50, 10), "fc4/biases": (10,)}


@pytest.fixture(autouse=True)
def data():
    if not pathlib.Path(DATA).is_dir():
        pytest.skip("Debian's dataset-fashion-mnist is not installed")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A checkpoint of step 3."""
    place = tmp_path_factory.mktemp("trained")
    train(place, 3, "--seed", 5)
    return place / "model.ckpt-3"


def train(place, steps, *options, count=0, status=0):
    """What was said."""
    return ranks.train(count, "--model", "lenet", "--data", "fashion-mnist", "--data-dir", DATA, "--batch-size", 8, "--max-steps",
                       steps, "--checkpoint-dir", place, "--save-checkpoint-steps", steps, *options, status=status)[1]


def values(prefix, place):
    """{name: array} of the weights."""
    checkpoint("convert", "--to", "npy", prefix, place)
    return {name: numpy.load(place / f"{name.replace('/', '.')}.npy") for name in SHAPES}


def differing(a, b, place):
    place = pathlib.Path(tempfile.mkdtemp(dir=place))
    a, b = (values(prefix, place / f"{n}") for n, prefix in enumerate((a, b)))
    return {name for name in SHAPES if not numpy.array_equal(a[name], b[name])}


def test_everything(trained, tmp_path):
    said = train(tmp_path / "new", 1, "--init-from", trained.parent)
    assert f"began with 8 of 8 variables (21840 values) of {trained}\n" in said and "not taken" not in said
    assert differing(trained, tmp_path / "new/model.ckpt-0", tmp_path) == set()
    said = train(tmp_path / "new", 2, "--init-from", trained)
    assert f"--init-from {trained} is for a new training, and not used" in said and "resuming from" in said


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_the_order_of_pytorch(trained, tmp_path, metadata):
    """(out, in, height, width), (out, in), names with dots; one tensor of another shape, and one that nobody knows."""
    tensors = {"extra": ("F32", [1], bytes(4))}
    for name, value in values(trained, tmp_path / "values").items():
        if name == "fc3/weights":  # its inputs are 4 x 4 pixels of 20 channels, which PyTorch flattens channel by channel
            value = value.reshape(16, 20, 50).transpose(1, 0, 2).reshape(320, 50)
        value = value.transpose(3, 2, 0, 1) if value.ndim == 4 else value.T if value.ndim == 2 else value
        value = value[:5] if name.startswith("fc4") else value
        tensors[name.replace("/", ".")] = ("F32", list(value.shape), numpy.ascontiguousarray(value).tobytes())
    file = write_safetensors(tmp_path / "torch.safetensors", tensors, metadata)
    said = train(tmp_path / "new", 1, "--init-from", file)
    assert f"began with 6 of 8 variables (21330 values) of {file}, in PyTorch's order\n" in said
    assert "not taken: fc4/weights has shape [5,50], wanted [10,50]\n" in said
    assert "not taken: fc4/biases has shape [5], wanted [10]\n" in said
    assert "not used, of the checkpoint: extra, fc4.weights, fc4.biases\n" in said
    assert differing(trained, tmp_path / "new/model.ckpt-0", tmp_path) == {"fc4/weights", "fc4/biases"}
    told = train(tmp_path / "other", 1, "--init-from", file, "--scope", "fc3,fc4", status=2)
    assert "2 of 4 variables of --scope do not fit: fc4/weights has shape [5,50], wanted [10,50]; fc4/biases" in told


def test_parts(trained, tmp_path):
    """Safetensors in two parts, by their index or the directory."""
    place, tensors = tmp_path / "hub", values(trained, tmp_path / "values")
    parts = {name: f"model-0000{1 + name.startswith('fc')}-of-00002.safetensors" for name in tensors}
    for part in set(parts.values()):
        write_safetensors(place / part, {name: ("F32", list(value.shape), value.tobytes()) for name, value in tensors.items()
                                         if parts[name] == part})
    index = place / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 4 * 21840}, "weight_map": parts}))
    for path in place, index:
        said = train(tmp_path / path.name, 1, "--init-from", path)
        assert f"began with 8 of 8 variables (21840 values) of {index}\n" in said
        assert differing(trained, tmp_path / path.name / "model.ckpt-0", tmp_path) == set()
    (place / parts["fc4/biases"]).unlink()
    assert f"its part {parts['fc4/biases']} is missing" in train(tmp_path / "no", 1, "--init-from", index, status=2)


def test_scope(trained, tmp_path):
    said = train(tmp_path / "new", 1, "--init-from", trained, "--scope", "conv1,fc3")
    assert "began with 4 of 8 variables" in said and "not taken: conv2/weights is in no --scope" in said
    assert differing(trained, tmp_path / "new/model.ckpt-0", tmp_path) >= {"conv2/weights", "fc4/weights"}
    assert not differing(trained, tmp_path / "new/model.ckpt-0", tmp_path) & {"conv1/weights", "conv1/biases", "fc3/weights"}
    told = train(tmp_path / "other", 1, "--init-from", trained, "--scope", "conv1=conv2", status=2)
    assert "2 of 2 variables of --scope do not fit: conv1/weights has shape [5,5,10,20], wanted [5,5,1,10]" in told
    told = train(tmp_path / "other", 1, "--init-from", trained, "--scope", "conv9", status=2)
    assert "--scope: the model has no variables under 'conv9'" in told
    told = train(tmp_path / "other", 1, "--scope", "conv1", status=2)
    assert "--scope needs --init-from" in told


def test_what_is_no_checkpoint(trained, tmp_path):
    (tmp_path / "text").write_text("hello\n")
    assert "text: not a checkpoint, but " in train(tmp_path / "new", 1, "--init-from", tmp_path / "text", status=2)
    assert "no-such" in train(tmp_path / "new", 1, "--init-from", tmp_path / "no-such", status=2)


@pytest.mark.parametrize("count,strategy", [(0, "single"), (2, "mpi"), (3, "ps")])
def test_freeze(trained, tmp_path, count, strategy):
    """Frozen variables keep every bit, also where slots of an earlier training would move them on."""
    how = ["--run-option", strategy]
    said = train(tmp_path / "new", 3, "--init-from", trained, "--freeze", "conv1,conv2,fc3/biases", *how, count=count)
    assert "trains 16510 of 21840 weights: not those under conv1,conv2,fc3/biases\n" in said
    assert differing(trained, tmp_path / "new/model.ckpt-3", tmp_path) == {"fc3/weights", "fc4/weights", "fc4/biases"}
    train(tmp_path / "new", 5, "--freeze", "fc4", *how, count=count)
    assert differing(tmp_path / "new/model.ckpt-3", tmp_path / "new/model.ckpt-5", tmp_path) == set(SHAPES) - {
        "fc4/weights", "fc4/biases"}


def test_freeze_nothing_or_all(tmp_path):
    assert "--freeze: lenet has no variables under 'conv9'" in train(tmp_path, 1, "--freeze", "conv9", status=2)
    assert "--freeze conv1,conv2,fc3,fc4: nothing is left to train" in train(
        tmp_path, 1, "--freeze", "conv1,conv2,fc3,fc4", status=2)


def test_v1(tmp_path):
    """None of its variables is the model's: it is read, and that is said."""
    (tmp_path / "old-700").write_bytes(version_1())
    told = train(tmp_path / "new", 1, "--init-from", tmp_path / "old-700", status=2)
    assert "old-700: 8 of 8 variables do not fit: conv1/weights is missing; conv1/biases has shape [2], wanted [10]; " in told
    assert as_json("inspect", tmp_path / "old-700")["step"] == 700
