"""EVAL/best/ and --patience: what is kept, also where the evaluator is killed at random moments, and a training that is
asked to end.
"""
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess

import pytest

from evaluators import BUILD, Evaluator, ledger, write
from waiting import DEADLINE, wait_for


def best_of(records, metric="precision", minimum=False):
    """What must be in best/ by the ledger: the earliest of the best."""
    best = None
    for record in records:
        if record["status"] != "done":
            continue
        value = record["metrics"][metric]
        if best is None or (value < best["metrics"][metric] if minimum else value > best["metrics"][metric]):
            best = record
    return best


def named(directory):
    """The checkpoint that best/checkpoint names, or None; its files must be there and verify."""
    state = directory / "eval" / "best" / "checkpoint"
    if not state.exists():
        return None
    name = state.read_text().split('"')[1]
    subprocess.run([BUILD / "bin" / "checkpoint", "verify", state.parent / name], check=True, capture_output=True)
    return name


def write_pinned(directory):
    """Thirty checkpoints, each of which is deleted once it is pinned."""
    for step in range(1, 31):
        write(directory, "--first", step, "--last", step, "--step", 1, "--keep", 1)
        wait_for(lambda: list((directory / "eval/pinned").glob(f"*/model.ckpt-{step}.index")) or
                 any(record["step"] == step for record in ledger(directory)), f"step {step} to be pinned")
    assert len(list((directory / "ckpt").glob("*.index"))) == 1


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_best_is_kept(tmp_path):
    """Best by the lowest loss; originals are deleted long before their evaluation, and best/ has its own."""
    with Evaluator(tmp_path, "--keep-best", "--best-metric", "loss", "--best-mode", "min", "--until-step", 30,
                   examples=2000) as e:
        e.says("waiting for it")
        write_pinned(tmp_path)
        e.ends(0)
    best = best_of(ledger(tmp_path), "loss", minimum=True)
    assert named(tmp_path) == best["checkpoint"]
    assert {path.name for path in (tmp_path / "eval" / "best").iterdir()} == {
        ".evaluator", "checkpoint", f"{best['checkpoint']}.index", f"{best['checkpoint']}.data-00000-of-00001"}


def test_killed_with_best(tmp_path):
    """kill -9 thirty times: best/ is never half, and after the last start it is the ledger's."""
    write(tmp_path, "--first", 1, "--last", 60, "--step", 1)
    draw = random.Random(7)
    for _ in range(30):
        with Evaluator(tmp_path, "--keep-best", "--best-metric", "loss", "--best-mode", "min", "--once",
                       examples=50) as e:
            try:
                e.process.wait(draw.uniform(0.02, 0.2))
            except subprocess.TimeoutExpired:
                e.process.send_signal(signal.SIGKILL)
            e.process.wait()
        named(tmp_path)
    with Evaluator(tmp_path, "--keep-best", "--best-metric", "loss", "--best-mode", "min", "--once", examples=50) as e:
        e.ends(0)
    assert len(ledger(tmp_path)) == 60
    best = best_of(ledger(tmp_path), "loss", minimum=True)
    assert named(tmp_path) == best["checkpoint"]
    for end in ("index", "data-00000-of-00001"):
        file = f"{best['checkpoint']}.{end}"
        assert digest(tmp_path / "eval" / "best" / file) == digest(tmp_path / "ckpt" / file)
    assert not list((tmp_path / "eval" / "best").glob(".tmp*"))


@pytest.mark.parametrize("linked", [False, True])
def test_files_of_others(tmp_path, linked):
    """What somebody put into best/ is not deleted, also behind a link: the evaluator names it and ends."""
    best = tmp_path / "eval/best"
    (tmp_path / "models/mydir").mkdir(parents=True)
    (tmp_path / "models/final-model.pt").write_text("mine")
    (tmp_path / "eval").mkdir()
    best.symlink_to("../models") if linked else (tmp_path / "models").rename(best)
    write(tmp_path, "--last", 200)
    with Evaluator(tmp_path, "--keep-best", "--once") as e:
        e.ends(2)
    assert f"{best}/final-model.pt: was not made by --keep-best; move it elsewhere" in e.said()
    assert (best / "mydir").is_dir() and (best / "final-model.pt").read_text() == "mine" and not ledger(tmp_path)
    (best / "final-model.pt").unlink()
    (best / "mydir").rmdir()
    for _ in range(2):  # what it has made itself is no obstacle
        with Evaluator(tmp_path, "--keep-best", "--once") as e:
            e.ends(0)
        assert named(tmp_path) == best_of(ledger(tmp_path))["checkpoint"]


def several_best(records, count, metric="loss"):
    """The names of the best by the lowest values, of equal ones the earlier."""
    return [r["checkpoint"] for r in sorted(records, key=lambda r: r["metrics"][metric])[:count]]


def all_named(directory):
    """What best/checkpoint names, the best one first; the files of each must be there and verify."""
    state = directory / "eval" / "best" / "checkpoint"
    if not state.exists():
        return []
    names = [line.split('"')[1] for line in state.read_text().splitlines()]
    for name in names:
        subprocess.run([BUILD / "bin" / "checkpoint", "verify", state.parent / name], check=True, capture_output=True)
    assert names[0] == names[-1], "the newest is the last of all"
    return names[:0:-1]


def test_three_are_kept(tmp_path):
    """Deleted long before their evaluation; then only two are wanted, and then one."""
    options = ["--best-metric", "loss", "--best-mode", "min"]
    with Evaluator(tmp_path, "--keep-best", 3, *options, "--until-step", 30, examples=2000) as e:
        e.says("waiting for it")
        write_pinned(tmp_path)
        e.ends(0)
    best = several_best(ledger(tmp_path), 3)
    assert all_named(tmp_path) == best and len(list((tmp_path / "eval/best").glob("[!.]*"))) == 7
    for count, option in ((2, "--keep-best=2"), (1, "--keep-best")):
        with Evaluator(tmp_path, option, *options, "--once", examples=2000) as e:
            e.ends(0)
        assert all_named(tmp_path) == best[:count]
        assert len(list((tmp_path / "eval/best").glob("[!.]*"))) == 1 + 2 * count


def test_killed_with_three_best(tmp_path):
    """kill -9 thirty times: best/ is never half, and after the last start it is the ledger's."""
    options = ["--keep-best", 3, "--best-metric", "loss", "--best-mode", "min", "--once"]
    write(tmp_path, "--first", 1, "--last", 60, "--step", 1)
    draw = random.Random(8)
    for _ in range(30):
        with Evaluator(tmp_path, *options, examples=50) as e:
            try:
                e.process.wait(draw.uniform(0.02, 0.2))
            except subprocess.TimeoutExpired:
                e.process.send_signal(signal.SIGKILL)
            e.process.wait()
        all_named(tmp_path)
    with Evaluator(tmp_path, *options, examples=50) as e:
        e.ends(0)
    assert len(ledger(tmp_path)) == 60 and all_named(tmp_path) == several_best(ledger(tmp_path), 3)
    for name in all_named(tmp_path):
        for end in ("index", "data-00000-of-00001"):
            assert digest(tmp_path / "eval/best" / f"{name}.{end}") == digest(tmp_path / "ckpt" / f"{name}.{end}")
    assert not list((tmp_path / "eval" / "best").glob(".tmp*"))


def test_patience_by_the_ledger(tmp_path):
    """Three without a better one; a restart in between does not begin to count anew, and says it only once."""
    options = ["--patience", 3, "--best-delta", 1, "--once"]
    stop = tmp_path / "ckpt" / "stop.json"
    write(tmp_path, "--first", 1, "--last", 3, "--step", 1)
    with Evaluator(tmp_path, *options) as e:
        e.ends(0)
    assert not stop.exists() and "stop.json" not in e.said()
    write(tmp_path, "--first", 4, "--last", 5, "--step", 1)
    with Evaluator(tmp_path, *options) as e:
        e.ends(0)
    said = json.loads(stop.read_text())
    assert said["metric"] == "precision" and said["best_step"] == 1 and said["best_checkpoint"] == "model.ckpt-1"
    assert said["step"] == 4 and "3 evaluations" in said["reason"] and e.said().count("stop.json") == 1
    before = stop.stat()
    with Evaluator(tmp_path, *options) as e:
        e.ends(0)
    assert stop.stat().st_ino == before.st_ino and "stop.json" not in e.said()
    stop.unlink()  # as long as there is no better one, the next start asks again
    with Evaluator(tmp_path, *options) as e:
        e.ends(0)
    assert stop.exists()


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is not installed")
def test_patience_ends_a_training(tmp_path):
    """Three ranks that would train for ever, an evaluator that loses its patience: both end in order."""
    trainer = subprocess.Popen(
        ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", "3", BUILD / "bin" / "trainer", "--run-option",
         "mpi", "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4", "--max-steps", str(10**9),
         "--save-checkpoint-steps", "20", "--keep", "0", "--checkpoint-dir", tmp_path / "ckpt", "--quiet"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
             "OPENBLAS_NUM_THREADS": "1"})
    try:
        with Evaluator(tmp_path, "--patience", 3, "--best-delta", 1, "--keep-best", examples=50) as e:
            _, said = trainer.communicate(timeout=DEADLINE)
            assert trainer.returncode == 0, said
            e.ends(0)
    finally:
        if trainer.poll() is None:
            os.killpg(trainer.pid, signal.SIGKILL)
            trainer.communicate()
    state = json.loads((tmp_path / "ckpt" / "training.json").read_text())
    assert state["state"] == "finished" and "precision did not get higher by more than 1" in state["reason"]
    records = ledger(tmp_path)
    assert records[-1]["step"] == state["global_step"]  # what was saved last was evaluated, too
    assert named(tmp_path) == records[0]["checkpoint"]
