"""Checkpoints of other frameworks, written while the evaluator watches: all evaluated, once, in order, and with the
values that the framework itself computes (1e-4 relative).

TensorFlow's Saver and safetensors files go through the built-in lenet; a PyTorch and a Keras training, which are the
examples, through --exec.
"""
import gzip
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time

import pytest

from waiting import DEADLINE

numpy = pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
EVALUATOR = BUILD / "bin" / "evaluator"
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
EXAMPLES = 200
ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "2"}

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no Fashion-MNIST (apt-get install dataset-fashion-mnist)")


def first_examples():
    with gzip.open(DATA / "t10k-images-idx3-ubyte.gz") as file:
        images = numpy.frombuffer(file.read(16 + 784 * EXAMPLES)[16:], numpy.uint8).reshape(-1, 28, 28, 1)
    with gzip.open(DATA / "t10k-labels-idx1-ubyte.gz") as file:
        labels = numpy.frombuffer(file.read(8 + EXAMPLES)[8:], numpy.uint8)
    return images.astype("float32") / 255, labels.astype("int32")


def start(directory, checkpoints, *arguments):
    log = open(directory / f"{checkpoints}.log", "ab")
    with log:
        return subprocess.Popen([EVALUATOR, "--checkpoint-dir", directory / checkpoints,
                                 "--eval-dir", directory / f"eval-{checkpoints}", *map(str, arguments)],
                                stderr=log, env=ENVIRONMENT)


def ends(process, directory, checkpoints):
    assert process.wait(DEADLINE) == 0, (directory / f"{checkpoints}.log").read_text()
    text = (directory / f"eval-{checkpoints}" / "evaluations.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def near(got, wanted):
    assert got == pytest.approx(wanted, rel=1e-4)


def load(path, name):
    """The module `name` of an example."""
    spec = importlib.util.spec_from_file_location(f"{path.name}_{name}", path / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_saver_and_safetensors(tmp_path):
    """One training in TensorFlow's graph mode; each of its steps is saved by the Saver (two kept) and as safetensors."""
    tf = pytest.importorskip("tensorflow")
    safetensors = pytest.importorskip("safetensors.numpy")
    import seed_models
    v1 = tf.compat.v1
    images, labels = first_examples()
    model = seed_models.MODELS["lenet"]
    built_in = ["--model", "lenet", "--data", "fashion-mnist", "--num-examples", EXAMPLES, "--until-step", 12]
    (tmp_path / "saver").mkdir()
    (tmp_path / "safe").mkdir()
    processes = {name: start(tmp_path, name, *built_in) for name in ("saver", "safe")}
    wanted = []
    try:
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(3)
            target = tf.constant(labels)
            logits = model.build(tf.constant(images), False)
            entropy = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits))
            decay = tf.add_n([model.decay(v.op.name) * tf.nn.l2_loss(v) for v in v1.trainable_variables()])
            correct = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1, tf.int32), target), tf.float32))
            train = v1.train.MomentumOptimizer(0.05, 0.9).minimize(entropy + decay, v1.train.get_or_create_global_step())
            saver = v1.train.Saver(max_to_keep=2)
            session.run(v1.global_variables_initializer())
            for step in range(1, 13):
                session.run(train)
                saver.save(session, str(tmp_path / "saver" / "model.ckpt"), global_step=step)
                tensors = {v.op.name: session.run(v) for v in v1.trainable_variables()}
                safetensors.save_file(tensors, str(tmp_path / "safe" / f"model-{step}.safetensors"))
                wanted.append([float(value) for value in session.run([correct, entropy + decay, entropy])])
                time.sleep(0.1)  # a trainer's pace: two are kept
        for name, process in processes.items():
            records = ends(process, tmp_path, name)
            assert [(r["step"], r["status"]) for r in records] == [(step, "done") for step in range(1, 13)], name
            for record, (precision, loss, cross_entropy) in zip(records, wanted):
                near(record["metrics"]["precision"], precision)
                near(record["metrics"]["loss"], loss)
                near(record["metrics"]["cross_entropy"], cross_entropy)
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def example(tmp_path, name, options, *arguments):
    """Runs an example's training beside the evaluator; returns the ledger."""
    folder = ROOT / "examples" / name
    command = f"'{sys.executable}' '{folder}/evaluate.py' {{checkpoint}} --num-examples {EXAMPLES}"
    process = start(tmp_path, "ckpt", "--exec", command, "--best-metric", "accuracy", "--until-step", 30,
                    "--exec-timeout", 100, *arguments)
    try:
        subprocess.run([sys.executable, folder / "train.py", "--checkpoint-dir", tmp_path / "ckpt", "--max-steps", "30",
                        "--save-every", "10", "--batch-size", "32", *options], check=True, env=ENVIRONMENT,
                       stdout=subprocess.DEVNULL, timeout=DEADLINE)
        records = ends(process, tmp_path, "ckpt")
    finally:
        process.kill()
        process.wait()
    assert [(r["step"], r["status"]) for r in records] == [(10, "done"), (20, "done"), (30, "done")]
    assert all("best_accuracy" in r["metrics"] for r in records)
    return records


def test_pytorch_example(tmp_path):
    torch = pytest.importorskip("torch")
    records = example(tmp_path, "pytorch", [], "--pattern", "model_{step}.pt", "--ready", "rename", "--jobs", 2)
    images, labels = first_examples()
    images, labels = torch.from_numpy(images).permute(0, 3, 1, 2), torch.from_numpy(labels).long()
    for record in records:
        network = load(ROOT / "examples" / "pytorch", "network").make_network()
        network.load_state_dict(torch.load(tmp_path / "ckpt" / record["checkpoint"], weights_only=True)["network"])
        with torch.no_grad():
            logits = network.eval()(images).double()
        near(record["metrics"]["loss"], torch.nn.functional.cross_entropy(logits, labels).item())
        near(record["metrics"]["accuracy"], (logits.argmax(1) == labels).double().mean().item())


def test_tensorflow_example(tmp_path):
    """tf.train.Checkpoint by its manager; --pin holds what waits."""
    tf = pytest.importorskip("tensorflow")
    records = example(tmp_path, "tensorflow", [], "--pin")
    images, labels = first_examples()
    for record in records:
        network = load(ROOT / "examples" / "tensorflow", "network").make_network()
        tf.train.Checkpoint(network=network).restore(str(tmp_path / "ckpt" / record["checkpoint"])).expect_partial()
        logits = network(images, training=False).numpy().astype("float64")
        logits -= logits.max(1, keepdims=True)
        entropy = numpy.log(numpy.exp(logits).sum(1)) - logits[numpy.arange(len(labels)), labels]
        near(record["metrics"]["loss"], entropy.mean())
        near(record["metrics"]["accuracy"], (logits.argmax(1) == labels).mean())
