"""Directories with a model.safetensors, as Hugging Face's Trainer writes them, scored by a model file."""
import json

import pytest

from checkpoint_files import tensor, write_safetensors
from evaluators import Evaluator, Several, ledger, steps
from waiting import wait_for

MODEL = "input 2x2x1\nclasses 2\ndense logits/weight outputs=2\nbias logits/bias\ncross_entropy\n"
# PyTorch's order: an output a row. The first pixel decides; WRONG has class 0 for all images.
RIGHT, WRONG = [-9, 0, 0, 0, 9, 0, 0, 0], [9, 0, 0, 0, -9, 0, 0, 0]
PIXELS, LABELS = [[200, 1, 2, 3], [10, 4, 5, 6], [220, 7, 8, 9], [0, 1, 2, 3]], [1, 0, 1, 0]


@pytest.fixture
def options(tmp_path):
    """Of the evaluator: the model and its data."""
    data = tmp_path / "idx"
    data.mkdir()
    (data / "test-samples").write_bytes(bytes([0, 0, 8, 4]) + b"".join(n.to_bytes(4, "big") for n in (4, 2, 2, 1)) +
                                        bytes(v for image in PIXELS for v in image))
    (data / "test-labels").write_bytes(bytes([0, 0, 8, 1]) + (4).to_bytes(4, "big") + bytes(LABELS))
    (tmp_path / "net.model").write_text(MODEL)
    return ["--model", tmp_path / "net.model", "--data", "idx", "--data-dir", data, "--classes", "2"]


def save(directory, step, weights):
    """As the Trainer does: the weights, then what it needs to go on, the state last."""
    place = directory / f"checkpoint-{step}"
    write_safetensors(place / "model.safetensors", {"logits.weight": tensor("F32", weights, [2, 4]),
                                                    "logits.bias": tensor("F32", [4, -4], [2])}, {"format": "pt"})
    (place / "optimizer.pt").write_bytes(b"\x80\x02" + bytes(200))
    (place / "trainer_state.json").write_text(json.dumps({"global_step": step}))


def seen(directory, evaluation="eval"):
    return [(r["step"], r["checkpoint"], r["status"], r.get("metrics", {}).get("precision")) for r in ledger(directory, evaluation)]


WANTED = [(5, "checkpoint-5", "done", 0.5), (20, "checkpoint-20", "done", 1.0), (100, "checkpoint-100", "done", 1.0)]


@pytest.mark.parametrize("how", [["--ready", "marker:trainer_state.json"], ["--pin", "--ready", "quiet:0.2"]])
def test_in_order_and_once(tmp_path, options, how):
    for step, weights in ((5, WRONG), (20, RIGHT), (100, RIGHT)):
        save(tmp_path / "ckpt", step, weights)
    (tmp_path / "ckpt/runs-7").mkdir()
    words = ["--pattern", "checkpoint-{step}/", *how]
    for _ in range(2):  # again: nothing is new
        with Evaluator(tmp_path, *words, "--once", how=options) as evaluator:
            evaluator.ends(0)
        assert seen(tmp_path) == WANTED


def test_without_a_pattern(tmp_path, options):
    """Found like files NAME-STEP.safetensors, each once it is quiet."""
    for step, weights in ((5, WRONG), (20, RIGHT)):
        save(tmp_path / "ckpt", step, weights)
    (tmp_path / "ckpt/checkpoint-7").mkdir()  # no weights yet
    with Evaluator(tmp_path, "--poll-interval", 0.1, how=options) as evaluator:
        wait_for(lambda: steps(ledger(tmp_path)) == [5, 20], "the first two")
        save(tmp_path / "ckpt", 100, RIGHT)
        wait_for(lambda: steps(ledger(tmp_path)) == [5, 20, 100], "the third")
        evaluator.process.terminate()
        evaluator.ends(0)
    assert seen(tmp_path) == WANTED


def test_damaged(tmp_path, options):
    save(tmp_path / "ckpt", 5, RIGHT)
    file = tmp_path / "ckpt/checkpoint-5/model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with Evaluator(tmp_path, "--pattern", "checkpoint-{step}/", "--ready", "marker:trainer_state.json", "--once",
                   how=options) as evaluator:
        evaluator.ends(1)
    record, = ledger(tmp_path)
    assert record["status"] == "failed" and "checkpoint-5/model.safetensors" in record["reason"]


def test_tree(tmp_path, options):
    """A training is the directory above its checkpoints."""
    save(tmp_path / "tree/mine", 5, RIGHT)
    save(tmp_path / "tree/theirs", 7, WRONG)
    with Several(tmp_path, "--watch-tree", tmp_path / "tree", "--once", how=options) as evaluator:
        evaluator.ends(0)
    assert [evaluator.steps(name) for name in ("mine", "theirs")] == [[5], [7]]
