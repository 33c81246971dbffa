"""TensorBoard, by either of its loaders, shows every point of an evaluator's history of kills and restarts."""
import signal

import pytest

from evaluators import Evaluator, ledger, write
from tensorboard_server import ALL_POINTS, TensorBoard, python_loader_points


def seen_by_the_default_loader(logs):
    """{run: {tag: [(step, value)]}} from a TensorBoard that reads by its data server."""
    with TensorBoard(logs, logs.parent / "tensorboard", ALL_POINTS) as tensorboard:
        known = tensorboard.until("scalars/tags",
                                  lambda tags: len(tags) == 2 and all("loss" in names for names in tags.values()))
        return {run: {tag: [(step, value) for step, _, value in tensorboard.points(run, tag)] for tag in names}
                for run, names in known.items()}


def seen_by_the_python_loader(logs):
    return {run.name: {tag: [(step, value) for step, _, value in points]
                       for tag, points in python_loader_points(run).items()}
            for run in logs.iterdir() if run.is_dir()}


def test_both_loaders_show_every_point(tmp_path):
    """Five restarts, one kill, a training that went back to an earlier step, a checkpoint repaired afterwards."""
    for last in (300, 600, 900):
        write(tmp_path, "--first", last - 200, "--last", last)
        with Evaluator(tmp_path, "--once", evaluation="logs/eval") as evaluator:
            evaluator.ends(0)
    write(tmp_path, "--first", 1000, "--last", 1500)
    with Evaluator(tmp_path, examples=2000, evaluation="logs/eval") as evaluator:
        evaluator.says("step: 1100,")
        evaluator.process.send_signal(signal.SIGKILL)
    with Evaluator(tmp_path, "--once", evaluation="logs/eval") as evaluator:
        evaluator.ends(0)
    write(tmp_path, "--first", 700, "--last", 1200, "--seed", 5)
    with Evaluator(tmp_path, "--once", evaluation="logs/eval") as evaluator:
        evaluator.ends(0)
    records = ledger(tmp_path, "logs/eval")
    wanted = {}
    for record in records:
        wanted.setdefault("eval" if not record["run"] else f"eval_{record['run']}", set()).add(record["step"])
    assert wanted == {"eval": set(range(100, 1501, 100)), "eval_1": set(range(700, 1201, 100))}
    values = {(f"eval_{r['run']}" if r["run"] else "eval", r["step"]): r["metrics"] for r in records}
    for loader in (seen_by_the_default_loader, seen_by_the_python_loader):
        for run, tags in (shown := loader(tmp_path / "logs")).items():
            for tag in ("precision", "best_precision", "loss"):
                assert {step for step, _ in tags[tag]} == wanted[run], (loader.__name__, run, tag)
                assert all(value == pytest.approx(values[run, step][tag], rel=1e-6) for step, value in tags[tag])
        assert set(shown) == set(wanted)
