"""A PyTorch model that flattens an image of several channels, (channels, height, width), before its first dense layer: the
evaluator scores its safetensors file as PyTorch scores the model, and the trainer begins with it."""
import os
import pathlib
import subprocess

import pytest

from evaluators import ledger

numpy = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")
save_file = pytest.importorskip("safetensors.torch").save_file

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
HEIGHT, WIDTH, CHANNELS, CLASSES, COUNT = 9, 14, 3, 5, 40
SETTINGS = f"input {HEIGHT}x{WIDTH}x{CHANNELS}\nclasses {CLASSES}\ntransform unit\n"
CONVOLUTION = "convolution conv/weight channels=7 size=3 padding=same\nbias conv/bias relu\nmax_pool size=2\n"
DENSE = "dense fc{n}/weight outputs={outputs}\nbias fc{n}/bias{relu}\n"
LAST = f"dense fc2/weight outputs={CLASSES}\nbias fc2/bias\ncross_entropy\n"
AFTER_FLATTENING = DENSE.format(n=1, outputs=11, relu=" relu") + "dropout keep=0.5\n" + LAST


class Net(torch.nn.Module):
    def __init__(self, convolutional):
        super().__init__()
        self.conv = torch.nn.Conv2d(CHANNELS, 7, 3, padding=1) if convolutional else None
        self.fc1 = torch.nn.Linear(7 * 4 * 7 if convolutional else HEIGHT * WIDTH * CHANNELS, 11)
        self.fc2 = torch.nn.Linear(11, CLASSES)

    def forward(self, x):
        if self.conv:
            x = torch.nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """The directory of an idx data set, and its images (count, channels, height, width) and labels."""
    directory, random = tmp_path_factory.mktemp("idx"), numpy.random.default_rng(4)
    pixels = random.integers(0, 256, (COUNT, HEIGHT, WIDTH, CHANNELS), dtype="uint8")
    labels = random.integers(0, CLASSES, COUNT, dtype="uint8")
    for name, array in (("samples", pixels), ("labels", labels)):
        for part in "train", "test":
            (directory / f"{part}-{name}").write_bytes(
                bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">u4").tobytes() + array.tobytes())
    return directory, torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255, torch.from_numpy(labels.astype("int64"))


def run(program, *words):
    done = subprocess.run([BUILD / "bin" / program, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("convolutional", [True, False])
def test_scores(tmp_path, data, convolutional):
    directory, images, labels = data
    torch.manual_seed(2)
    net, files, model = Net(convolutional), tmp_path / "ckpt", tmp_path / "net.model"
    files.mkdir()
    with torch.no_grad():
        net.fc1.weight *= 6  # so that the order of the inputs decides
        logits = net(images)
    save_file(net.state_dict(), files / "net-1.safetensors", {"format": "pt"})
    save_file(net.state_dict(), files / "net-2.safetensors")  # the shapes alone tell the order
    model.write_text(SETTINGS + (CONVOLUTION if convolutional else "") + AFTER_FLATTENING)
    run("evaluator", "--checkpoint-dir", files, "--eval-dir", tmp_path / "eval", "--model", model, "--data", "idx",
        "--data-dir", directory, "--classes", CLASSES, "--once")
    records = ledger(tmp_path)
    assert [record["step"] for record in records] == [1, 2]
    for record in records:
        want = float(torch.nn.functional.cross_entropy(logits, labels))
        assert record["metrics"]["cross_entropy"] == pytest.approx(want, rel=1e-5)
        assert record["metrics"]["precision"] == pytest.approx(float((logits.argmax(1) == labels).float().mean()))
