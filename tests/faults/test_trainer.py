"""The trainer killed while it saves, at every single write: `checkpoint` always names a whole checkpoint."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
HELPER = BUILD / "tests" / "faults" / "save_under_kill"
TRAINER = BUILD / "bin" / "trainer"


def helper(*words):
    return subprocess.run([HELPER, *map(str, words)], capture_output=True, text=True, timeout=DEADLINE)


def test_killed_at_every_call_of_a_save(tmp_path):
    for step in (1, 2, 3):
        run = helper(tmp_path, step, 0)
        assert run.returncode == 0, run.stderr
    calls = int(run.stdout)
    assert calls > 10
    step, outcomes = 3, set()
    for call in range(1, calls + 1):
        before = step
        run = helper(tmp_path, 100 + call, call)
        assert run.returncode == -signal.SIGKILL, f"call {call} of {calls}: {run.stderr}"
        named = re.search(r'model_checkpoint_path: "model\.ckpt-(\d+)"', (tmp_path / "checkpoint").read_text())
        run = helper(tmp_path)
        assert run.returncode == 0, f"killed before call {call}: {run.stderr}"
        step = int(run.stdout)
        assert step in (before, 100 + call), f"killed before call {call}: resume finds step {step}"
        assert step == int(named.group(1)), f"killed before call {call}: `checkpoint` names {named.group(1)}"
        outcomes.add(step == before)
    assert outcomes == {True, False}  # early ones leave the old checkpoint, late ones the new
    assert helper(tmp_path, 999, 0).returncode == 0  # what killed ones left lying about does no harm
    assert helper(tmp_path).stdout == "999\n"


def test_killed_trainer_resumes(tmp_path):
    """kill -9 at moments of the real thing, saving all the time; it always goes on from where it was."""
    command = [TRAINER, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4", "--checkpoint-dir", tmp_path,
               "--save-checkpoint-steps", "1", "--keep", "3", "--max-steps", "1000000", "--log-every", "1"]
    last = -1
    for round_number in range(6):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        seen = 0
        for line in process.stderr:  # killed after so many lines, in the middle of the next save or step
            seen += line.startswith("Saving checkpoints")
            if seen > 3 + round_number:
                break
        process.kill()
        process.communicate()
        run = subprocess.run([*command[:-4], "--max-steps", "1", "--log-every", "1"],
                             capture_output=True, text=True, timeout=DEADLINE)
        assert run.returncode == 0, run.stderr
        step = int(re.search(r"resuming from .*model\.ckpt-(\d+)", run.stderr).group(1))
        assert step > last
        last = step


def test_what_a_resume_has_to_say_first(tmp_path):
    """A name with another step than global_step; a state file that means a checkpoint elsewhere."""
    command = [TRAINER, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4", "--checkpoint-dir", tmp_path / "ckpt",
               "--save-checkpoint-steps", "1"]

    def train(steps):
        run = subprocess.run([*command, "--max-steps", str(steps)], capture_output=True, text=True, timeout=DEADLINE)
        assert run.returncode == 0, run.stderr
        return run.stderr

    state = tmp_path / "ckpt" / "checkpoint"
    train(2)
    for kind in "index", "data-00000-of-00001":
        (tmp_path / f"ckpt/model.ckpt-2.{kind}").rename(tmp_path / f"ckpt/model.ckpt-7.{kind}")
    state.write_text(state.read_text().replace("model.ckpt-2", "model.ckpt-7"))
    assert f"{tmp_path}/ckpt/model.ckpt-7: its name says step 7, but its global_step, which is used, is 2\n" in train(3)
    shutil.copytree(tmp_path / "ckpt", tmp_path / "other")
    state.write_text(state.read_text().replace("model.ckpt-3", "../other/model.ckpt-3"))
    said = train(4)
    assert f"{tmp_path}/ckpt/checkpoint: names ../other/model.ckpt-3, which is outside this directory; using model.ckpt-3\n" in said
    said = train(5)
    assert "its name says" not in said and "outside" not in said


def test_saves_at_multiples(tmp_path):
    """Of the steps asked for, wherever a run began; all of them stay."""
    for steps in "7", "18":
        run = subprocess.run([TRAINER, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4", "--max-steps", steps,
                              "--checkpoint-dir", tmp_path, "--save-checkpoint-steps", "5"], capture_output=True,
                             text=True, timeout=DEADLINE)
        assert run.returncode == 0, run.stderr
    assert sorted(int(path.suffixes[-2][6:]) for path in tmp_path.glob("*.index")) == [0, 5, 7, 10, 15, 18]


def test_curves_after_a_resume(tmp_path):
    """Going on from step 6 of 10: each step is once in what the Python loader shows, with the new file's wall time."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_accumulator")
    command = [TRAINER, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", "4", "--log-every", "1",
               "--checkpoint-dir", tmp_path / "ckpt", "--log-dir", tmp_path / "log", "--save-checkpoint-steps", "2",
               "--keep", "0"]
    for words in (["--max-steps", "10"], ["--max-steps", "12", "--resume", "6"]):
        run = subprocess.run([*command, *words], capture_output=True, text=True, timeout=DEADLINE)
        assert run.returncode == 0, run.stderr
    events = accumulator.EventAccumulator(str(tmp_path / "log"), tensor_size_guidance={"scalars": 0}).Reload()
    points = events.Tensors("loss")
    assert [point.step for point in points] == list(range(1, 13))
    files = sorted((tmp_path / "log").iterdir())
    assert len(files) == 2 and [point.wall_time < files[0].stat().st_mtime + 0.001 for point in points].count(True) == 6
