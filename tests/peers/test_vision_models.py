"""ResNet-50 and Inception v3 against PyTorch and TensorFlow, at a size that takes seconds: logits, losses, gradients and
moving statistics of a batch, and 20 steps of training, all from a checkpoint that TensorFlow wrote.

Gradients are compared as wholes: the norm of the difference against that of the gradient.
"""
import copy
import os
import pathlib
import subprocess

import pytest

from evaluators import ledger

numpy = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
torch = pytest.importorskip("torch")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SIDE, CLASSES, BATCH, STEPS, RATE = 48, 10, 4, 20, 0.0001
LAYERS = (3, 4, 6, 3)
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # torchvision's, of ImageNet


def run(program, *arguments):
    run = subprocess.run([BUILD / program, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def tool(*arguments):
    return run("tests/peers/model_tool", *arguments)


def variables_of(model):
    """name -> (kind, offset, decay, shape), as our network has them."""
    rows = (line.split() for line in tool("variables", model).splitlines())
    return {row[3]: (row[0], int(row[1]), float(row[2]), tuple(map(int, row[4:]))) for row in rows}


def small_model(name, path, side, classes):
    """The built-in model as a file, for smaller images."""
    text = run("bin/trainer", "describe", name, "--format=model")
    text = text.replace("input 224x224x3", f"input {side}x{side}x3").replace("classes 1000", f"classes {classes}")
    path.write_text(text.replace("outputs=1000", f"outputs={classes}"))


def distance(ours, theirs):
    """The norm of the difference, relative to theirs."""
    return float(numpy.linalg.norm(ours - theirs) / max(numpy.linalg.norm(theirs), 1e-12))


def write_checkpoint(prefix, tensors):
    names = sorted(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names),
                      tensors=[tf.constant(tensors[name]) for name in names])


class Unit(torch.nn.Module):
    def __init__(self, inputs, width, stride, v1, first):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.conv1, self.bn1 = conv(inputs, width, 1, stride if v1 else 1, bias=False), norm(width)
        self.conv2, self.bn2 = conv(width, width, 3, 1 if v1 else stride, 1, bias=False), norm(width)
        self.conv3, self.bn3 = conv(width, 4 * width, 1, bias=False), norm(4 * width)
        self.downsample = torch.nn.Sequential(
            conv(inputs, 4 * width, 1, stride, bias=False), norm(4 * width)) if first else torch.nn.Identity()

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(y)))))
        return torch.relu(y + self.downsample(x))


class ResNet50(torch.nn.Module):
    """In the names of torchvision. pool: "same", as TensorFlow pads, or "torch"."""

    def __init__(self, v1, pool, classes):
        super().__init__()
        self.pool = pool
        self.conv1, self.bn1 = torch.nn.Conv2d(3, 64, 7, 2, 3, bias=False), torch.nn.BatchNorm2d(64)
        inputs = 64
        for stage, units in enumerate(LAYERS):
            layers = []
            for number in range(units):
                stride = 2 if stage and not number else 1
                layers.append(Unit(inputs, 64 << stage, stride, v1, not number))
                inputs = 256 << stage
            setattr(self, f"layer{stage + 1}", torch.nn.Sequential(*layers))
        self.fc = torch.nn.Linear(2048, classes)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        if self.pool == "same":
            x = torch.nn.functional.max_pool2d(torch.nn.functional.pad(x, (0, 1, 0, 1)), 3, 2)
        else:
            x = torch.nn.functional.max_pool2d(x, 3, 2, 1)
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


def to_ours(value):
    """PyTorch's order of a kernel's dimensions, changed to ours."""
    value = value.detach().numpy()
    return numpy.ascontiguousarray(value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T if value.ndim == 2 else value)


class Case:
    """A net with random weights, its checkpoint, and batches."""

    def __init__(self, name, directory):
        self.name, self.directory = name, directory
        self.model = directory / f"{name}.model"
        small_model(name, self.model, SIDE, CLASSES)
        torch.manual_seed(3)
        torch.set_num_threads(1)
        self.net = ResNet50(name == "resnet50", "torch" if name == "resnet50_torchvision" else "same", CLASSES)
        random = numpy.random.default_rng(5)
        with torch.no_grad():
            for key, value in self.net.state_dict().items():
                if key.endswith("num_batches_tracked"):
                    continue
                if value.ndim == 1:  # away from 0 and 1
                    value += torch.from_numpy(random.normal(0, 0.1, value.shape).astype("float32"))
                if key.endswith("bn3.weight"):  # a residual net whose branches are as strong as its shortcuts multiplies
                    value *= 0.2               # rounding by a hundred, in PyTorch as here
                if key.endswith("running_var"):
                    value.abs_().add_(0.5)
        self.tensors = {key: to_ours(value) for key, value in self.net.state_dict().items()
                        if not key.endswith("num_batches_tracked")}
        self.labels = random.integers(0, CLASSES, STEPS * BATCH).astype("int32")
        self.prefix = directory / "model.ckpt-7"
        write_checkpoint(self.prefix, self.tensors)
        self.images = self.draw_images(random)
        self.images[:BATCH].tofile(directory / "images")
        self.labels[:BATCH].tofile(directory / "labels")
        numpy.ones(BATCH, "float32").tofile(directory / "weights")
        self.images.tofile(directory / "all-images")
        self.labels.tofile(directory / "all-labels")

    def draw_images(self, random):
        """The first batch is one in which rounding decides nothing: in single and double precision, PyTorch's gradients
        are the same."""
        for _ in range(20):
            self.images = random.normal(size=(STEPS * BATCH, SIDE, SIDE, 3)).astype("float32")
            gradients = []
            for kind in torch.float32, torch.float64:
                net = copy.deepcopy(self.net).to(kind).train()
                images, labels = self.batch(0)
                torch.nn.functional.cross_entropy(net(images.to(kind)), labels).backward()
                gradients.append([parameter.grad.to(torch.float64) for parameter in net.parameters()])
            if max(float((a - b).norm() / b.norm()) for a, b in zip(*gradients)) < 1e-4:
                return self.images
        raise AssertionError("rounding decides in every batch")

    def batch(self, step):
        part = slice(step * BATCH, (step + 1) * BATCH)
        return (torch.from_numpy(self.images[part].transpose(0, 3, 1, 2).copy()),
                torch.from_numpy(self.labels[part].astype("int64")))


@pytest.fixture(scope="module", params=["resnet50", "resnet50_torchvision"])
def case(request, tmp_path_factory):
    return Case(request.param, tmp_path_factory.mktemp(request.param))


def test_variables(case):
    ours = {name: row[3] for name, row in variables_of(case.name).items()}
    theirs = {name: value.shape for name, value in case.tensors.items()}
    assert ours == {**theirs, "fc.weight": (2048, 1000), "fc.bias": (1000,)}


def test_logits(case):
    out = case.directory / "logits"
    tool("infer", case.model, case.prefix, case.directory / "images", out)
    case.net.eval()
    with torch.no_grad():
        want = case.net(case.batch(0)[0]).numpy()
    error = numpy.abs(numpy.fromfile(out, "float32").reshape(want.shape) - want).max() / numpy.abs(want).max()
    print(f"{case.name}: logits differ by {error:.1e}")
    assert error <= 1e-4


def loss_of(net, case, step):
    images, labels = case.batch(step)
    return torch.nn.functional.cross_entropy(net(images.to(net.fc.weight.dtype)), labels)


def test_evaluator(case):
    """PyTorch's own file, in its order of dimensions, is scored as PyTorch scores it; the same with nothing but the shapes
    to tell the order, and beside it in our order."""
    if case.name != "resnet50_torchvision":
        return
    save_file = pytest.importorskip("safetensors.torch").save_file
    ours = pytest.importorskip("safetensors.numpy").save_file
    data, files = case.directory / "idx", case.directory / "files"
    data.mkdir(), files.mkdir()
    pixels = numpy.random.default_rng(6).integers(0, 256, (BATCH, SIDE, SIDE, 3), dtype="uint8")
    for name, array in (("samples", pixels), ("labels", case.labels[:BATCH].astype("uint8"))):
        (data / f"test-{name}").write_bytes(
            bytes([0, 0, 8, array.ndim]) + numpy.array(array.shape, ">u4").tobytes() + array.tobytes())
    state = case.net.state_dict()
    save_file(state, files / "model-1.safetensors", {"format": "pt"})
    save_file(state, files / "model-2.safetensors")
    ours(case.tensors, files / "model-3.safetensors")
    run("bin/evaluator", "--checkpoint-dir", files, "--eval-dir", case.directory / "eval", "--model", case.model, "--data", "idx",
        "--data-dir", data, "--classes", CLASSES, "--once")
    images = (torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255 - torch.tensor(MEAN)[:, None, None]) \
        / torch.tensor(DEVIATION)[:, None, None]
    case.net.eval()
    with torch.no_grad():
        logits, labels = case.net(images), case.batch(0)[1]
    records = ledger(case.directory)
    assert [record["step"] for record in records] == [1, 2, 3]
    for record in records:
        assert record["metrics"]["cross_entropy"] == pytest.approx(
            float(torch.nn.functional.cross_entropy(logits, labels)), rel=1e-4)
        assert record["metrics"]["precision"] == float((logits.argmax(1) == labels).float().mean())


def test_training_pass(case):
    out, ours = case.directory / "exchange", variables_of(case.model)
    parameters = sum(int(numpy.prod(row[3])) for row in ours.values() if row[0] == "weight")
    printed = tool("train", case.model, case.prefix, *(case.directory / n for n in ("images", "labels", "weights")), 0, out)
    exchange, net = numpy.fromfile(out, "float32"), copy.deepcopy(case.net).train()
    loss = loss_of(net, case, 0)
    loss.backward()
    named, after, errors = dict(net.named_parameters()), net.state_dict(), {}
    for name, (kind, offset, _, shape) in ours.items():
        start = offset + (parameters if kind == "statistic" else 0)
        got = exchange[start:start + int(numpy.prod(shape))].reshape(shape) / BATCH
        # PyTorch's momentum of 0.1
        want = named[name].grad if kind == "weight" else (after[name] - 0.9 * torch.from_numpy(case.tensors[name])) / 0.1
        errors[name] = distance(got, to_ours(want))
    worst = max(errors, key=errors.get)
    print(f"{case.name}: {worst} differs by {errors[worst]:.1e}")
    assert float(printed.split()[0]) / BATCH == pytest.approx(float(loss.detach()), rel=1e-4)
    assert errors[worst] <= 1e-3, worst


def test_steps(case):
    """20 steps of momentum with weight decay. Steps multiply rounding: in single precision, PyTorch's own losses differ from
    those in double precision by more than 1e-4. So ours must be as near to the latter as that, or half as near again."""
    if case.name != "resnet50_torchvision":
        return  # the same layers; a pass of each is tested above
    losses = list(map(float, tool("steps", case.model, case.prefix, case.directory / "all-images",
                                  case.directory / "all-labels", BATCH, RATE, 0.9, case.directory / "after").split()))
    decay = {name: row[2] for name, row in variables_of(case.model).items()}
    curves = []
    for kind in torch.float32, torch.float64:
        net = copy.deepcopy(case.net).to(kind).train()
        optimizer = torch.optim.SGD([{"params": [value], "weight_decay": decay[name]}
                                     for name, value in net.named_parameters()], RATE, 0.9)
        curves.append([])
        for step in range(STEPS):
            optimizer.zero_grad()
            loss = loss_of(net, case, step)
            loss.backward()
            optimizer.step()
            curves[-1].append(float(loss.detach()))
    single, exact = map(numpy.array, curves)
    ours, theirs = (float(numpy.abs(curve / exact - 1).max()) for curve in (losses, single))
    print(f"{case.name}: losses {exact[0]:.4f} to {exact[-1]:.4f}; ours differ by {ours:.1e}, PyTorch's by {theirs:.1e}")
    assert len(losses) == STEPS and ours <= max(1e-4, 1.5 * theirs)
