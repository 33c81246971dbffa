"""Directories with a model.safetensors, or its parts and their index, as Hugging Face's Trainer writes them, scored by a
model file."""
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


PARTS = {"logits.weight": "model-00001-of-00002.safetensors", "logits.bias": "model-00002-of-00002.safetensors"}
INDEX = "model.safetensors.index.json"


def save(directory, step, weights, parts=False):
    """As the Trainer does: the weights, then what it needs to go on, the state last."""
    place = directory / f"checkpoint-{step}"
    tensors = {"logits.weight": tensor("F32", weights, [2, 4]), "logits.bias": tensor("F32", [4, -4], [2])}
    for name, part in PARTS.items() if parts else ():
        write_safetensors(place / part, {name: tensors[name]}, {"format": "pt"})
    if parts:
        (place / INDEX).write_text(json.dumps({"metadata": {"total_size": 40}, "weight_map": PARTS}))
    else:
        write_safetensors(place / "model.safetensors", tensors, {"format": "pt"})
    (place / "optimizer.pt").write_bytes(b"\x80\x02" + bytes(200))
    (place / "trainer_state.json").write_text(json.dumps({"global_step": step}))


def seen(directory, evaluation="eval"):
    return [(r["step"], r["checkpoint"], r["status"], r.get("metrics", {}).get("precision")) for r in ledger(directory, evaluation)]


WANTED = [(5, "checkpoint-5", "done", 0.5), (20, "checkpoint-20", "done", 1.0), (100, "checkpoint-100", "done", 1.0)]


@pytest.mark.parametrize("parts", [False, True], ids=["file", "parts"])
@pytest.mark.parametrize("how", [["--ready", "marker:trainer_state.json"], ["--pin", "--ready", "quiet:0.2"]])
def test_in_order_and_once(tmp_path, options, how, parts):
    for step, weights in ((5, WRONG), (20, RIGHT), (100, RIGHT)):
        save(tmp_path / "ckpt", step, weights, parts)
    (tmp_path / "ckpt/runs-7").mkdir()
    words = ["--pattern", "checkpoint-{step}/", *how]
    for _ in range(2):  # again: nothing is new
        with Evaluator(tmp_path, *words, "--once", how=options) as evaluator:
            evaluator.ends(0)
        assert seen(tmp_path) == WANTED


@pytest.mark.parametrize("parts", [False, True], ids=["file", "parts"])
def test_without_a_pattern(tmp_path, options, parts):
    """Found like files NAME-STEP.safetensors, each once it is quiet."""
    for step, weights in ((5, WRONG), (20, RIGHT)):
        save(tmp_path / "ckpt", step, weights, parts)
    (tmp_path / "ckpt/checkpoint-7").mkdir()  # no weights yet
    with Evaluator(tmp_path, "--poll-interval", 0.1, how=options) as evaluator:
        wait_for(lambda: steps(ledger(tmp_path)) == [5, 20], "the first two")
        save(tmp_path / "ckpt", 100, RIGHT, parts)
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


@pytest.mark.parametrize("how", ["missing", "cut"])
def test_parts_that_are_not_whole(tmp_path, options, how):
    """Waited for, said, and scored when all are there."""
    save(tmp_path / "ckpt", 5, RIGHT, parts=True)
    part = tmp_path / "ckpt/checkpoint-5" / PARTS["logits.bias"]
    whole = part.read_bytes()
    part.write_bytes(whole[:-1]) if how == "cut" else part.unlink()
    words = ["--pattern", "checkpoint-{step}/", "--ready", "marker:trainer_state.json", "--quiet-time", 0.3, "--poll-interval", 0.1]
    with Evaluator(tmp_path, *words, how=options) as evaluator:
        evaluator.says("checkpoint-5: failed")
        evaluator.says(f"its part {part.name} is missing" if how == "missing" else part.name)
        part.write_bytes(whole)
        wait_for(lambda: seen(tmp_path)[-1:] == [(5, "checkpoint-5", "done", 1.0)], "the whole one")
        evaluator.process.terminate()
        evaluator.ends(0)


def test_parts_deleted_one_by_one(tmp_path, options):
    """What is left of a scored checkpoint is not scored, and has not failed."""
    save(tmp_path / "ckpt", 5, RIGHT, parts=True)
    place = tmp_path / "ckpt/checkpoint-5"
    words = ["--pattern", "checkpoint-{step}/", "--ready", "quiet:0.2", "--quiet-time", 0.2, "--poll-interval", 0.05]
    with Evaluator(tmp_path, *words, how=options) as evaluator:
        wait_for(lambda: steps(ledger(tmp_path)) == [5], "the first")
        for name in (PARTS["logits.bias"], "optimizer.pt", INDEX):
            (place / name).unlink()
            save(tmp_path / "ckpt", len(list((tmp_path / "ckpt").iterdir())) + 10, RIGHT)
            wait_for(lambda: len(ledger(tmp_path)) == len(list((tmp_path / "ckpt").iterdir())), "the next, which was seen later")
        evaluator.process.terminate()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [5, 11, 12, 13] and {row[2] for row in seen(tmp_path)} == {"done"}


def test_half_deleted_at_a_start(tmp_path, options):
    """Scored before, it has not failed for what it lacks now."""
    save(tmp_path / "ckpt", 5, RIGHT, parts=True)
    words = ["--pattern", "checkpoint-{step}/", "--ready", "quiet:0.2", "--quiet-time", 0.2, "--once"]
    for _ in range(2):
        with Evaluator(tmp_path, *words, how=options) as evaluator:
            evaluator.ends(0)
        (tmp_path / "ckpt/checkpoint-5" / PARTS["logits.bias"]).unlink(missing_ok=True)
    assert seen(tmp_path) == [(5, "checkpoint-5", "done", 1.0)]


@pytest.mark.parametrize("pattern", [[], ["--pattern", "part-{step}.safetensors"]])
def test_parts_are_no_checkpoints(tmp_path, options, pattern):
    """Whatever their names: the index beside them says what they are."""
    save(tmp_path / "other", 5, RIGHT, parts=True)
    (tmp_path / "ckpt").mkdir()
    names = {name: f"part-{i}.safetensors" for i, name in enumerate(PARTS)}
    for name, part in PARTS.items():
        (tmp_path / "other/checkpoint-5" / part).rename(tmp_path / "ckpt" / names[name])
    save(tmp_path / "other", 7, RIGHT)
    (tmp_path / "other/checkpoint-7/model.safetensors").rename(tmp_path / "ckpt/part-7.safetensors")
    (tmp_path / "ckpt" / INDEX).write_text(json.dumps({"weight_map": names}))
    with Evaluator(tmp_path, *pattern, "--once", how=options) as evaluator:
        evaluator.ends(0)
    assert seen(tmp_path) == [(7, "part-7.safetensors", "done", 1.0)]


def test_tree(tmp_path, options):
    """A training is the directory above its checkpoints."""
    save(tmp_path / "tree/mine", 5, RIGHT)
    save(tmp_path / "tree/theirs", 7, WRONG, parts=True)
    with Several(tmp_path, "--watch-tree", tmp_path / "tree", "--once", how=options) as evaluator:
        evaluator.ends(0)
    assert [evaluator.steps(name) for name in ("mine", "theirs")] == [[5], [7]]
