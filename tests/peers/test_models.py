"""The models, layers that none of them has, the optimizers and the input transforms against TensorFlow, number by number.

TensorFlow draws the weights and saves them with its own saver; model_tool loads that checkpoint, so names, shapes,
padding, layouts and formulas are all held to TensorFlow's at once.
"""
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
tf = pytest.importorskip("tensorflow")
import seed_models  # noqa: E402  (needs TensorFlow)

v1 = tf.compat.v1
TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")) / "tests" / "peers" / "model_tool"
NEAR = 3e-7  # of a layer's largest value
SCALE = {"cifar10_cnn": 100}  # of the pixels, else 1; at 1 the tutorial's LRN would divide by 1.00
KEEP = 50  # units of lenet's fc3, which dropout is applied to
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def tool(*arguments):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT)
    assert run.returncode == 0, run.stderr
    return run.stdout


def variables_of(model):
    """name -> (kind, offset, decay, shape), as our network has them."""
    rows = (line.split() for line in tool("variables", model).splitlines())
    return {row[3]: (row[0], int(row[1]), float(row[2]), tuple(map(int, row[4:]))) for row in rows}


def part(vector, variable, parameters):
    kind, offset, _, shape = variable
    start = offset + (parameters if kind == "statistic" else 0)
    return vector[start:start + int(numpy.prod(shape))].reshape(shape)


def distance(ours, theirs):
    """Largest difference relative to the largest value."""
    return float(numpy.abs(ours - theirs).max() / max(numpy.abs(theirs).max(), 1e-12))


class Peer:
    """One model in TensorFlow with random weights, a batch, and the checkpoint that TensorFlow wrote of it."""

    def __init__(self, name, directory, count=4):
        self.model = seed_models.MODELS[name]
        self.prefix = directory / "model.ckpt-7"
        self.directory = directory
        random = numpy.random.default_rng(5)
        each = [self.model.labels] if self.model.labels else []
        self.labels = random.integers(0, self.model.classes, [count, *each]).astype("int32")
        self.weights = random.integers(0, 3, self.labels.shape).astype("float32") / 2 if each else numpy.ones(count, "float32")
        self.graph = tf.Graph()
        with self.graph.as_default():
            v1.set_random_seed(11)
            self.input = v1.placeholder(tf.int32 if self.model.words else tf.float32, [None, *self.model.image])
            self.target = v1.placeholder(tf.int32, [None, *each])
            self.weight = v1.placeholder(tf.float32, [None, *each])
            self.mask = v1.placeholder_with_default(tf.ones([1, KEEP]) * 0.5, [None, KEEP])
            with v1.variable_scope("", reuse=v1.AUTO_REUSE):
                self.logits = self.model.build(self.input, False)
                for collection in "statistics", "nearest":
                    self.graph.clear_collection(collection)
                trained = self.model.build(self.input, True, self.mask)
            self.statistics = v1.get_collection("statistics")
            self.trainable = v1.trainable_variables()
            self.cross_entropy = tf.reduce_sum(self.weight * tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels=self.target, logits=trained))
            self.gradients = list(map(tf.convert_to_tensor, v1.gradients(self.cross_entropy, self.trainable)))
            self.correct = tf.reduce_sum(tf.cast(tf.logical_and(
                tf.equal(tf.argmax(trained, -1, tf.int32), self.target), self.weight > 0), tf.int32))
            self.decay_loss = tf.add_n([self.model.decay(v.op.name) * tf.nn.l2_loss(v) for v in self.trainable])
            nearest = tf.reduce_min(v1.get_collection("nearest"))
            v1.train.get_or_create_global_step()
            self.session = v1.Session(graph=self.graph, config=v1.ConfigProto(
                intra_op_parallelism_threads=1, inter_op_parallelism_threads=1))
            self.session.run(v1.global_variables_initializer())
            # Away from 0 and 1, where mistakes in biases, scales and statistics would not show.
            for variable in self.trainable:
                if len(variable.shape) == 1:
                    value = self.session.run(variable) + random.normal(size=variable.shape) * 0.1
                    variable.load(value.astype("float32"), self.session)
            feed = {self.input: self.draw_images(random, count, nearest)}
            values = self.session.run([value for _, value in self.statistics], feed)
            for (variable, _), value in zip(self.statistics, values):
                variable.load(value * random.uniform(0.9, 1.1, value.shape).astype("float32"), self.session)
            v1.train.Saver().save(self.session, str(self.prefix), write_meta_graph=False)
        self.images.tofile(directory / "images")
        self.labels.tofile(directory / "labels")
        self.weights.tofile(directory / "weights")

    def draw_images(self, random, count, nearest):
        """A batch with no value so near to the bend of a ReLU, and no two so near in a max pool, that rounding decides
        where the gradient goes: one such value of a residual unit changes the gradients below it by a hundredth."""
        for _ in range(300):
            shape = (count, *self.model.image)
            if self.model.words:  # few, so that some come again
                self.images = (random.integers(0, 7, shape) * (self.model.words // 7)).astype("int32")
            else:
                self.images = (random.normal(size=shape) * SCALE.get(self.model.name, 1)).astype("float32")
            if self.session.run(nearest, {self.input: self.images}) > NEAR:
                return self.images
        raise AssertionError("every batch has such a value")

    def run(self, fetch, mask=None):
        feed = {self.input: self.images, self.target: self.labels, self.weight: self.weights}
        if mask is not None:
            feed[self.mask] = mask
        return self.session.run(fetch, feed)


@pytest.fixture(scope="module", params=seed_models.MODELS)
def peer(request, tmp_path_factory):
    peer = Peer(request.param, tmp_path_factory.mktemp(request.param))
    yield peer
    peer.session.close()


def test_variables(peer):
    ours = variables_of(peer.model.name)
    theirs = {v.op.name: ("weight", tuple(v.shape.as_list())) for v in peer.trainable}
    theirs.update({v.op.name: ("statistic", tuple(v.shape.as_list())) for v, _ in peer.statistics})
    assert {name: (row[0], row[3]) for name, row in ours.items()} == theirs
    for kind, count in (("weight", peer.model.parameters), ("statistic", peer.model.statistics)):
        assert sum(int(numpy.prod(row[3])) for row in ours.values() if row[0] == kind) == count
    for name, row in ours.items():
        assert row[2] == pytest.approx(peer.model.decay(name) if row[0] == "weight" else 0), name


def test_logits(peer):
    out = peer.directory / "logits"
    tool("infer", peer.model.name, peer.prefix, peer.directory / "images", out)
    error = distance(numpy.fromfile(out, "float32"), peer.run(peer.logits).reshape(-1))
    print(f"{peer.model.name}: logits differ by {error:.1e}")
    assert error <= 1e-4


def dropout_mask(peer, ours):
    """Which units of fc3 the tool kept, sample by sample: a unit that gave nothing on has no gradient in fc4. (Units
    that ReLU stopped look dropped; it makes no difference to what the network computes.)"""
    rows = []
    for i in range(len(peer.labels)):
        peer.images[i:i + 1].tofile(peer.directory / "image")
        peer.labels[i:i + 1].tofile(peer.directory / "label")
        peer.weights[i:i + 1].tofile(peer.directory / "weight")
        tool("train", peer.model.name, peer.prefix, peer.directory / "image", peer.directory / "label",
             peer.directory / "weight", i, peer.directory / "one")
        gradient = part(numpy.fromfile(peer.directory / "one", "float32"), ours["fc4/weights"], peer.model.parameters)
        rows.append(numpy.any(gradient != 0, axis=1))
    mask = numpy.array(rows, "float32")
    with peer.graph.as_default():
        alive = peer.session.run("Relu_2:0", {peer.input: peer.images}) > 0
    kept = mask[alive].mean()
    assert not mask[~alive].any() and 0.35 < kept < 0.65 and len({row.tobytes() for row in mask}) == len(mask)
    return mask


def test_training_pass(peer):
    ours, out = variables_of(peer.model.name), peer.directory / "exchange"
    mask = dropout_mask(peer, ours) if peer.model.name == "lenet" else None
    printed = tool("train", peer.model.name, peer.prefix, *(peer.directory / n for n in ("images", "labels", "weights")), 0, out)
    cross_entropy, correct, decay_loss = map(float, printed.split())
    want = peer.run({"loss": peer.cross_entropy, "correct": peer.correct, "decay": peer.decay_loss,
                     "gradients": peer.gradients, "statistics": [value for _, value in peer.statistics]}, mask)
    assert cross_entropy == pytest.approx(want["loss"], rel=1e-5)
    assert correct == want["correct"]
    assert decay_loss == pytest.approx(want["decay"], rel=1e-5)
    exchange = numpy.fromfile(out, "float32")
    assert len(exchange) == peer.model.parameters + peer.model.statistics
    errors = {}
    for variable, value in zip(peer.trainable, want["gradients"]):
        errors[variable.op.name] = distance(part(exchange, ours[variable.op.name], peer.model.parameters), value)
    for (variable, _), value in zip(peer.statistics, want["statistics"]):
        got = part(exchange, ours[variable.op.name], peer.model.parameters) / len(peer.labels)
        errors[variable.op.name] = distance(got, value)
    worst = max(errors, key=errors.get)
    print(f"{peer.model.name}: {worst} differs by {errors[worst]:.1e}")
    assert errors[worst] <= 2e-4, worst


OPTIMIZERS = {
    "sgd": lambda: v1.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: v1.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.1),
    "adagrad": lambda: v1.train.AdagradOptimizer(0.1),
}
STEPS, SAMPLES = 6, 24


@pytest.mark.parametrize("kind, clip", [*((kind, 0) for kind in OPTIMIZERS), ("momentum", 1.5)])
def test_optimizer(peer, kind, clip, tmp_path):
    """Six updates by random sums: weights, slots, moving averages of variables, zero-debiased moving statistics."""
    from tensorflow.python.training import moving_averages

    ours, model = variables_of(peer.model.name), peer.model
    average = 0.9999 if model.name == "cifar10_cnn" else 0
    random = numpy.random.default_rng(3)
    sums = random.normal(size=(STEPS, model.parameters + model.statistics)).astype("float32")
    sums.tofile(tmp_path / "sums")
    counts = list(map(int, tool("optimize", model.name, peer.prefix, kind, 0.1, 0.9, average, clip, SAMPLES,
                                tmp_path / "sums", tmp_path / "out").split()))
    arrays = numpy.split(numpy.fromfile(tmp_path / "out", "float32"), numpy.cumsum(counts)[:-1])
    assert counts[0] == model.parameters and counts[1] == model.statistics
    got = dict(zip(("weights", "statistics", "slot1", "slot2", "averages"), arrays))

    names = {name: row for name, row in ours.items() if row[0] == "weight"}
    with tf.Graph().as_default(), v1.Session() as session:
        reader = tf.train.load_checkpoint(str(peer.prefix))
        variables = {name: v1.get_variable(name, initializer=reader.get_tensor(name)) for name in names}
        feeds = {name: v1.placeholder(tf.float32, variables[name].shape) for name in names}
        step = v1.train.get_or_create_global_step()
        optimizer = OPTIMIZERS[kind]()
        gradients = [feeds[name] / SAMPLES + model.decay(name) * variable for name, variable in variables.items()]
        if clip:
            gradients, _ = tf.clip_by_global_norm(gradients, clip)
        update = optimizer.apply_gradients(zip(gradients, variables.values()), step)
        shadows = v1.train.ExponentialMovingAverage(average or 0.5, num_updates=step)
        with v1.control_dependencies([update]):
            update = shadows.apply(list(variables.values()))
        moving = {name: v1.get_variable(name, initializer=reader.get_tensor(name), trainable=False)
                  for name, row in ours.items() if row[0] == "statistic"}
        values = {name: v1.placeholder(tf.float32, variable.shape) for name, variable in moving.items()}
        follow = [moving_averages.assign_moving_average(variable, values[name] / SAMPLES, 0.9, zero_debias=model.debias)
                  for name, variable in moving.items()]
        session.run(v1.global_variables_initializer())
        for row in sums:
            feed = {feeds[name]: part(row, ours[name], model.parameters) for name in names}
            feed.update({values[name]: part(row, ours[name], model.parameters) for name in moving})
            session.run([update, follow], feed)
        want = {"weights": variables}
        for number, slot in enumerate(optimizer.get_slot_names(), 1):
            want[f"slot{number}"] = {name: optimizer.get_slot(v, slot) for name, v in variables.items()}
        if average:
            want["averages"] = {name: shadows.average(v) for name, v in variables.items()}
        want = session.run({**want, "statistics": moving})
    # TensorFlow has adam's betas in float32, and 1 - 0.999 is 1.3e-5 of itself too small there.
    limit = 2e-5 if kind == "adam" else 2e-6
    for array, by_name in want.items():
        for name, value in by_name.items():
            _, offset, _, shape = ours[name]
            mine = got[array][offset:offset + value.size].reshape(shape)
            assert distance(mine, value) <= limit, (array, name)


@pytest.mark.parametrize("name, height, transform", [
    ("cifar-resnet-eval", 32, lambda image: image),
    ("cifar-tutorial-eval", 24, lambda image: tf.image.resize_with_crop_or_pad(image, 24, 24)),
])
def test_evaluation_transform(name, height, transform, tmp_path):
    planar = numpy.random.default_rng(8).integers(0, 256, (6, 3073), "uint8")
    planar[:, 0] %= 10
    planar[5, 1:] = 9  # a constant image
    planar.tofile(tmp_path / "test_batch.bin")
    tool("transform", name, "cifar10", tmp_path, 1, 5, tmp_path / "out")
    images = planar[1:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    want = numpy.stack([tf.image.per_image_standardization(transform(tf.cast(i, tf.float32))) for i in images])
    got = numpy.fromfile(tmp_path / "out", "float32").reshape(-1, height, height, 3)
    assert numpy.abs(got - want).max() < 2e-6
