"""Inception v3 without its logits against TensorFlow's own operators, on images of 75x75, from a V1 checkpoint as slim's:
its variables, its features, its gradients, and dataset encode with them.

The graph is written here, in slim's names. In it a block is a list of branches, and a branch a list
of convolutions "NAME HEIGHTxWIDTH CHANNELS", with s2 for stride 2 without padding, or "mean", or "max".
"""
import json
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
v1 = tf.compat.v1

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
SIDE, BATCH, FEATURES = 75, 3, 2048
EPSILON = 0.001

STEM = ["Conv2d_1a_3x3 3x3 32 s2", "Conv2d_2a_3x3 3x3 32 valid", "Conv2d_2b_3x3 3x3 64", "max", "Conv2d_3b_1x1 1x1 80",
        "Conv2d_4a_3x3 3x3 192 valid", "max"]


def block_5(first, second, last):
    return [["Conv2d_0a_1x1 1x1 64"], [f"{first} 1x1 48", f"{second} 5x5 64"],
            ["Conv2d_0a_1x1 1x1 64", "Conv2d_0b_3x3 3x3 96", "Conv2d_0c_3x3 3x3 96"], ["mean", f"Conv2d_0b_1x1 1x1 {last}"]]


def block_6(n):
    return [["Conv2d_0a_1x1 1x1 192"], [f"Conv2d_0a_1x1 1x1 {n}", f"Conv2d_0b_1x7 1x7 {n}", "Conv2d_0c_7x1 7x1 192"],
            [f"Conv2d_0a_1x1 1x1 {n}", f"Conv2d_0b_7x1 7x1 {n}", f"Conv2d_0c_1x7 1x7 {n}", f"Conv2d_0d_7x1 7x1 {n}",
             "Conv2d_0e_1x7 1x7 192"], ["mean", "Conv2d_0b_1x1 1x1 192"]]


def block_7(column):  # a list within a branch: both convolutions read the same
    return [["Conv2d_0a_1x1 1x1 320"], ["Conv2d_0a_1x1 1x1 384", ["Conv2d_0b_1x3 1x3 384", f"{column} 3x1 384"]],
            ["Conv2d_0a_1x1 1x1 448", "Conv2d_0b_3x3 3x3 384", ["Conv2d_0c_1x3 1x3 384", "Conv2d_0d_3x1 3x1 384"]],
            ["mean", "Conv2d_0b_1x1 1x1 192"]]


BLOCKS = {
    "5b": block_5("Conv2d_0a_1x1", "Conv2d_0b_5x5", 32), "5c": block_5("Conv2d_0b_1x1", "Conv_1_0c_5x5", 64),
    "5d": block_5("Conv2d_0a_1x1", "Conv2d_0b_5x5", 64),
    "6a": [["Conv2d_1a_1x1 3x3 384 s2"], ["Conv2d_0a_1x1 1x1 64", "Conv2d_0b_3x3 3x3 96", "Conv2d_1a_1x1 3x3 96 s2"], ["max"]],
    "6b": block_6(128), "6c": block_6(160), "6d": block_6(160), "6e": block_6(192),
    "7a": [["Conv2d_0a_1x1 1x1 192", "Conv2d_1a_3x3 3x3 320 s2"],
           ["Conv2d_0a_1x1 1x1 192", "Conv2d_0b_1x7 1x7 192", "Conv2d_0c_7x1 7x1 192", "Conv2d_1a_3x3 3x3 192 s2"], ["max"]],
    "7b": block_7("Conv2d_0b_3x1"), "7c": block_7("Conv2d_0c_3x1"),
}


class Graph:
    """training: batch norms use the batch's statistics, as nothing in the encoder is frozen."""

    def __init__(self, dtype=tf.float32, training=False):
        self.random, self.dtype, self.training = numpy.random.default_rng(4), dtype, training

    def variable(self, name, shape, draw, trainable=True):
        return v1.get_variable(name, shape, self.dtype, lambda *_, **__: tf.cast(draw(shape).astype("float32"), self.dtype),
                               trainable=trainable)

    def layer(self, x, what, scope):
        if isinstance(what, list):
            return tf.concat([self.layer(x, each, scope) for each in what], 3)
        if what == "mean":
            return tf.nn.avg_pool2d(x, 3, 1, "SAME")
        if what == "max":
            return tf.nn.max_pool2d(x, 3, 2, "VALID")
        name, size, channels, *how = what.split()
        height, width = map(int, size.split("x"))
        shape = [height, width, x.shape[3], int(channels)]
        normal = self.random.normal
        with v1.variable_scope(f"InceptionV3/{scope}{name}"):
            kernel = self.variable("weights", shape, lambda s: normal(0, (2 / numpy.prod(s[:3])) ** 0.5, s))
            with v1.variable_scope("BatchNorm"):
                beta = self.variable("beta", shape[3:], lambda s: normal(0.1, 0.1, s))
                moving = [self.variable("moving_mean", shape[3:], lambda s: normal(0, 0.1, s), False),
                          self.variable("moving_variance", shape[3:], lambda s: 0.5 + numpy.abs(normal(0.5, 0.1, s)), False)]
        x = tf.nn.conv2d(x, kernel, 2 if "s2" in how else 1, "VALID" if how else "SAME")
        if self.training:
            moving = tf.nn.moments(x, [0, 1, 2])
        return tf.nn.relu(tf.nn.batch_normalization(x, *moving, beta, None, EPSILON))

    def features(self, x):
        for what in STEM:
            x = self.layer(x, what, "")
        for name, branches in BLOCKS.items():
            ends = []
            for number, branch in enumerate(branches):
                y = x
                for what in branch:
                    y = self.layer(y, what, f"Mixed_{name}/Branch_{number}/")
                ends.append(y)
            x = tf.concat(ends, 3)
        return tf.reduce_mean(x, [1, 2])


def run(program, *arguments):
    run = subprocess.run([BUILD / program, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def tool(*arguments):
    return run("tests/peers/model_tool", *arguments)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The graph, a V1 checkpoint of it, and what it makes of a batch."""
    directory = tmp_path_factory.mktemp("inception")
    random = numpy.random.default_rng(7)
    pixels = random.integers(0, 256, (BATCH, SIDE, SIDE, 3)).astype("uint8")
    images = ((pixels / 255 - 0.5) * 2).astype("float32")
    case = {"directory": directory, "pixels": pixels, "images": images, "prefix": directory / "inception_v3.ckpt"}
    with tf.Graph().as_default(), v1.Session() as session:
        features = Graph().features(tf.constant(images))
        case["variables"] = {v.op.name: tuple(v.shape) for v in v1.global_variables()}
        v1.get_variable("InceptionV3/Logits/Conv2d_1c_1x1/biases", [1001])  # as there is in slim's
        session.run(v1.global_variables_initializer())
        case["features"] = session.run(features)
        v1.train.Saver(v1.global_variables(), write_version=v1.train.SaverDef.V1).save(
            session, str(case["prefix"]), write_meta_graph=False)
    case["model"] = directory / "small.model"
    case["model"].write_text(run("bin/trainer", "describe", "inception_v3", "--format=model").replace(
        "input 299x299x3", f"input {SIDE}x{SIDE}x3"))
    images.tofile(directory / "images")
    return case


def ours(case):
    rows = [line.split() for line in tool("variables", case["model"]).splitlines()]
    return {row[3]: tuple(map(int, row[4:])) for row in rows}


def test_variables(case):
    assert ours(case) == case["variables"] and len(case["variables"]) == 94 * 4


def test_features(case):
    out = case["directory"] / "features"
    tool("infer", case["model"], case["prefix"], case["directory"] / "images", out)
    got, want = numpy.fromfile(out, "float32").reshape(BATCH, FEATURES), case["features"]
    error = numpy.abs(got - want).max() / numpy.abs(want).max()
    print(f"features differ by {error:.1e}")
    assert error <= 1e-4


def theirs(case, labels, dtype):
    """The loss of a training batch, and its gradients by name, computed by TensorFlow."""
    with tf.Graph().as_default(), v1.Session() as session:
        logits = Graph(dtype, training=True).features(tf.constant(case["images"], dtype))
        loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        variables = v1.trainable_variables()
        session.run(v1.global_variables_initializer())
        values, gradients, total = session.run([v1.global_variables(), v1.gradients(loss, variables), loss])
        return (total, dict(zip((v.op.name for v in variables), gradients)),
                dict(zip((v.op.name for v in v1.global_variables()), values)))


def errors(got, want):
    return {name: numpy.abs(got[name] - want[name]).max() / numpy.abs(want[name]).max() for name in want}


def test_gradients(case):
    """Where the encoder is trained, too, which show_and_tell does not: it is frozen there. ReLUs whose input is within
    rounding of 0 decide otherwise in float32, for TensorFlow as for us, and gradients follow; so the formulas are compared
    in float64. How many decide otherwise is chance and depends on the processor: of float32 it is only asked that ours are
    as far from that as TensorFlow's own, within a factor."""
    directory, labels = case["directory"], numpy.arange(BATCH, dtype="int32") * 700
    total, want, values = theirs(case, labels, tf.float64)
    rows = [line.split() for line in tool("variables", case["model"]).splitlines()]
    order = [row[3] for kind in ("weight", "statistic") for row in rows if row[0] == kind]
    numpy.concatenate([values[name].ravel() for name in order]).astype("float64").tofile(directory / "values")
    case["images"].astype("float64").tofile(directory / "images64")
    labels.tofile(directory / "labels")
    numpy.ones(BATCH, "float32").tofile(directory / "weights")

    def gradients(path, dtype):
        vector, at, found = numpy.fromfile(path, dtype), 0, {}
        for name in order:
            if name in want:
                found[name] = vector[at:at + want[name].size].reshape(want[name].shape)
                at += want[name].size
        return found

    loss = float(run("tests/peers/double_gradient", case["model"], directory / "values", directory / "images64",
                     directory / "labels", directory / "double"))
    in_double = errors(gradients(directory / "double", "float64"), want)
    tool("train", case["model"], case["prefix"], directory / "images", directory / "labels", directory / "weights", 0,
         directory / "single")
    ours = errors(gradients(directory / "single", "float32"), want)
    tensorflow = errors(theirs(case, labels, tf.float32)[1], want)
    print(f"gradients of {len(want)} variables: in float64 they differ by {max(in_double.values()):.1e}; in float32 from these by "
          f"{max(ours.values()):.1e}, TensorFlow's by {max(tensorflow.values()):.1e}")
    assert len(want) == 94 * 2 and loss == pytest.approx(total, rel=1e-12)
    assert max(in_double.values()) <= 1e-9
    assert max(ours.values()) <= max(1e-3, 4 * max(tensorflow.values()))


def test_encode(case):
    """dataset encode with the checkpoint as it is published, one file of V1 with more in it than the model has."""
    Image = pytest.importorskip("PIL.Image")
    load_file = pytest.importorskip("safetensors.numpy").load_file
    data = case["directory"] / "captions"
    for part in "train2014", "val2014":
        (data / part).mkdir(parents=True)
        for i, pixels in enumerate(case["pixels"]):
            Image.fromarray(pixels).save(data / part / f"{i}.png")
        (data / "annotations").mkdir(exist_ok=True)
        (data / "annotations" / f"captions_{part}.json").write_text(json.dumps({
            "images": [{"id": i, "file_name": f"{i}.png"} for i in range(BATCH)],
            "annotations": [{"id": i, "image_id": i, "caption": "a cat"} for i in range(BATCH)]}))
    how = ["--model", case["model"], "--checkpoint", case["prefix"]]
    run("bin/dataset", "encode", data, *how)
    for part in "train2014", "val2014":
        table = load_file(data / "features" / f"{part}.safetensors")
        assert list(table["image_id"]) == list(range(BATCH))
        assert numpy.abs(table["features"] - case["features"]).max() <= 1e-4 * numpy.abs(case["features"]).max()

    # as im2txt scales and cuts: here 94 and 75 in the place of 346 and 299
    scaled = v1.image.resize_images(tf.image.convert_image_dtype(case["pixels"], tf.float32), [94, 94])
    inputs = ((v1.image.resize_image_with_crop_or_pad(scaled, SIDE, SIDE) - 0.5) * 2).numpy()
    inputs.tofile(case["directory"] / "resized")
    tool("infer", case["model"], case["prefix"], case["directory"] / "resized", case["directory"] / "wanted")
    wanted = numpy.fromfile(case["directory"] / "wanted", "float32").reshape(BATCH, FEATURES)
    run("bin/dataset", "encode", data, *how, "--resize", 94, "--force")
    got = load_file(data / "features/val2014.safetensors")["features"]
    error = numpy.abs(got - wanted).max() / numpy.abs(wanted).max()
    print(f"features of resized images differ by {error:.1e}")
    assert error <= 1e-5 and numpy.abs(got - case["features"]).max() > 1e-2 * numpy.abs(wanted).max()
