"""`evaluator --metrics all` against numpy and TensorFlow on the same logits, and in the pages of a real TensorBoard.

Two short trainings of lenet that differ in batch size and learning rate are evaluated; the logits come from model_tool.
Screenshots are kept: BUILD/screenshots/evaluation_<plugin>.png.
"""
import gzip
import json
import os
import pathlib
import subprocess

import pytest

from browser import Page, chromium
from tensorboard_server import TensorBoard

numpy = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
EXAMPLES, CLASSES = 1000, 10
NAMES = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]
RUNS = {"slow": ("0.001", "16"), "fast": ("0.02", "32")}
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")  # Debian's package


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """LOG/<run>/eval for both trainings, with checkpoints at 0, 30 and 60; the slow one's in LOG/../slow."""
    top = tmp_path_factory.mktemp("metrics")
    for run, (rate, batch) in RUNS.items():
        subprocess.run([BUILD / "bin" / "trainer", "--run-option", "single", "--model", "lenet", "--data",
                        "fashion-mnist", "--max-steps", "60", "--save-checkpoint-steps", "30", "--batch-size", batch,
                        "--learning-rate", rate, "--checkpoint-dir", top / run, "--quiet"], check=True)
        subprocess.run([BUILD / "bin" / "evaluator", "--model", "lenet", "--data", "fashion-mnist", "--metrics", "all",
                        "--num-examples", str(EXAMPLES), "--threads", "2", "--once", "--checkpoint-dir", top / run,
                        "--eval-dir", top / "log" / run / "eval"], check=True, capture_output=True)
    return top / "log"


@pytest.fixture(scope="module")
def scored(log, tmp_path_factory):
    """Logits and labels of the fast run's last checkpoint."""
    directory = tmp_path_factory.mktemp("scored")
    tool = BUILD / "tests" / "peers" / "model_tool"
    subprocess.run([tool, "transform", "unit", "fashion-mnist", DATA, "0", str(EXAMPLES), directory / "images"],
                   check=True)
    subprocess.run([tool, "infer", "lenet", log.parent / "fast" / "model.ckpt-60", directory / "images",
                    directory / "logits"], check=True)
    labels = gzip.decompress((DATA / "t10k-labels-idx1-ubyte.gz").read_bytes())[8:8 + EXAMPLES]
    logits = numpy.fromfile(directory / "logits", "<f4").reshape(EXAMPLES, CLASSES)
    return logits, numpy.frombuffer(labels, "uint8").astype(int)


def events_of(log, run):
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = accumulators.EventAccumulator(str(log / run / "eval"), size_guidance={"tensors": 0, "scalars": 0})
    accumulator.Reload()
    return accumulator


def array_of(events, tag):
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    return tensor_util.make_ndarray(events.Tensors(tag)[-1].tensor_proto)


def table_of(events):
    """The rows below the head of the confusion matrix, each a list of cells."""
    lines = str(array_of(events, "confusion_matrix/table").item(), "utf-8").splitlines()
    rows = [[cell.replace("\\", "") for cell in line[2:-2].split(" | ")] for line in lines]
    assert rows[0] == ["label / predicted", *NAMES, "precision", "recall"] and {*rows[1]} == {"---", "---:"}
    return rows[2:]


def number(events, tag):
    return float(array_of(events, tag)) if tag in events.Tags()["tensors"] else events.Scalars(tag)[-1].value


def test_numbers(log, scored):
    logits, labels = scored
    events = events_of(log, "fast")
    predicted = logits.argmax(1)
    matrix = numpy.zeros((CLASSES, CLASSES), int)
    numpy.add.at(matrix, (labels, predicted), 1)
    ledger = json.loads((log / "fast" / "eval" / "evaluations.jsonl").read_text().splitlines()[-1])["metrics"]
    above = (logits > logits[numpy.arange(EXAMPLES), labels][:, None]).sum(1)
    assert ledger["precision"] == (predicted == labels).mean() == number(events, "precision").__round__(6)
    assert ledger["precision_top_5"] == (above < 5).mean()
    hits, rows, columns = matrix.diagonal(), matrix.sum(1), matrix.sum(0)
    for k, name in enumerate(NAMES):
        assert ledger[f"class_recall/{name}"] == hits[k] / rows[k]
        assert ledger.get(f"class_precision/{name}") == (hits[k] / columns[k] if columns[k] else None)
        assert number(events, f"class_recall/{name}") == pytest.approx(hits[k] / rows[k], rel=1e-6)
    assert ledger["recall_mean"] == pytest.approx((hits / rows).mean(), rel=1e-12)
    assert ledger["precision_mean"] == pytest.approx((hits / numpy.maximum(columns, 1)).mean(), rel=1e-12)
    assert ledger["examples_per_second"] > 0 and ledger["lag_seconds"] > 0 and ledger["lag_steps"] == 0
    table = table_of(events)
    assert [[int(cell) for cell in row[1:-2]] for row in table] == matrix.tolist()
    assert [row[0] for row in table] == NAMES
    assert array_of(events, "confusion_matrix")[2].startswith(b"\x89PNG")


def test_tensorflow_counts_the_same(log, scored):
    tf = pytest.importorskip("tensorflow")
    logits, labels = scored
    ledger = json.loads((log / "fast" / "eval" / "evaluations.jsonl").read_text().splitlines()[-1])["metrics"]
    for k, name in ((1, "precision"), (5, "precision_top_5")):
        assert ledger[name] == float(numpy.mean(tf.math.in_top_k(labels, logits, k).numpy()))
    assert [[int(cell) for cell in row[1:-2]] for row in table_of(events_of(log, "fast"))] == \
        tf.math.confusion_matrix(labels, logits.argmax(1), CLASSES).numpy().tolist()
    ties = numpy.array([[0, 0, 0, 0, 0, 0], [3, 3, 3, 3, 3, 1], [3, 3, 3, 3, 1, 1], [numpy.nan, 2, 3, 4, 5, 6],
                        [1, 2, 3, 4, 5, numpy.inf], [1, 2, 3, -numpy.inf, 5, 6]], "f4")  # rows of test_classification.c
    assert tf.math.in_top_k([4, 5, 5, 5, 5, 5], ties, 1).numpy().tolist() == [True, False, False, False, False, False]
    assert tf.math.in_top_k([4, 5, 5, 5, 5, 5], ties, 5).numpy().tolist() == [True, False, True, False, False, False]


def test_curves(log, scored):
    """TensorBoard's own summary of the same softmax: equal counts, but for examples at the very edge of a bucket."""
    pytest.importorskip("tensorflow")  # TensorBoard's summary asks it for types
    summary = pytest.importorskip("tensorboard.plugins.pr_curve.summary")
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    logits, labels = scored
    e = numpy.exp(logits.astype("f8") - logits.max(1, keepdims=True))
    softmax = (e / e.sum(1, keepdims=True)).astype("f4")
    events = events_of(log, "fast")
    for k, name in enumerate(NAMES):
        ours = array_of(events, f"pr_curve/{name}")
        theirs = tensor_util.make_ndarray(summary.pb("x", labels == k, softmax[:, k], 201).value[0].tensor)
        assert ours.shape == theirs.shape == (6, 201)
        assert numpy.abs(ours[:4] - theirs[:4]).max() <= 1
        assert numpy.abs(ours[:4] - theirs[:4]).sum() <= 8


def test_tbparse_reads_all(log):
    """It gives up a whole directory at a text of two dimensions."""
    tbparse = pytest.importorskip("tbparse")
    reader = tbparse.SummaryReader(str(log), extra_columns={"dir_name"})
    texts = reader.text[reader.text.tag == "confusion_matrix/table"]
    assert set(texts.dir_name) == {f"{run}/eval" for run in RUNS} and len(texts) == 6
    assert all(text.startswith("| label / predicted | T-shirt/top |") for text in texts.value)


def test_basic_is_the_default(log, tmp_path):
    subprocess.run([BUILD / "bin" / "evaluator", "--model", "lenet", "--data", "fashion-mnist", "--num-examples", "100",
                    "--once", "--checkpoint-dir", log.parent / "fast", "--eval-dir", tmp_path / "fast" / "eval"],
                   check=True, capture_output=True)
    tags = events_of(tmp_path, "fast").Tags()
    assert set(tags["tensors"]) | set(tags["scalars"]) == {"precision", "best_precision", "loss"}


# ---- in the browser --------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def page(log, tmp_path_factory):
    output = tmp_path_factory.mktemp("page") / "tensorboard.txt"
    with chromium() as browser, TensorBoard(log, output, loader="auto") as tensorboard:
        tensorboard.until_active({"scalars", "images", "text", "pr_curves", "hparams"})
        yield Page(browser, tensorboard.address)


def test_hparams_page(page):
    page.open("hparams")
    page.wait_words("batch_size", "learning_rate", "optimizer", "run_option", "lenet", "fashion-mnist", "16.000",
                    "32.000", "slow/eval", "fast/eval", "precision")
    page.keep("evaluation_hparams")


def test_pages(page):
    page.open("pr_curves")
    page.wait_words("tag: pr_curve/Trouser", "fast/eval is at")
    page.keep("evaluation_pr_curves")
    page.open("text")
    page.wait_words("tag: confusion_matrix/table", "Ankle boot", "recall")
    page.keep("evaluation_text")
    page.open("images")
    page.wait_words("confusion_matrix")
    page.keep("evaluation_images")
