"""Checkpoints that are written in place: none is scored half written, none twice, and a result of a file that changed
while it was scored is no result."""
import os
import signal
import time

import pytest

from evaluators import Exec, ledger, runs, script, steps
from waiting import wait_for


WHOLE = 4000  # bytes of a whole checkpoint


def careful_scorer(directory, seconds=0):
    """Fails on less than a whole checkpoint, as a loader of weights does; notes each of its runs."""
    return script(directory, f"echo $2 >> '{directory}/runs'; sleep {seconds}\n"
                             'bytes=$(find "$1" -type f | xargs cat | wc -c)\n'
                             f'[ $bytes = {WHOLE} ] || exit 3\necho "bytes $bytes"\n') + " {checkpoint} {step}"


def write_slowly(path, pause, pieces=8):
    """In place, piece by piece, as a trainer with a slow disk."""
    with open(path, "wb", buffering=0) as file:
        for _ in range(pieces):
            file.write(os.urandom(WHOLE // pieces))
            time.sleep(pause)  # the pace of the writer is what is tested


@pytest.mark.parametrize("seconds", [0, 0.4], ids=["quick", "slow"])
@pytest.mark.parametrize("inside", [None, "weights.pt"], ids=["file", "directory"])
def test_rename_rule_and_a_file_written_in_place(tmp_path, seconds, inside):
    """The rule does not fit the writer: waited for all the same, three checkpoints give three results."""
    (tmp_path / "ckpt").mkdir()
    with Exec(tmp_path, careful_scorer(tmp_path, seconds), "--pattern", "model_{step}", "--ready", "rename",
              "--poll-interval", 0.05) as evaluator:
        evaluator.says("watching")
        for step in (50, 100, 150):
            path = tmp_path / "ckpt" / f"model_{step}"
            if inside:
                path.mkdir()
            write_slowly(path / inside if inside else path, 0.15)
        wait_for(lambda: len(ledger(tmp_path)) >= 3 or evaluator.process.poll() is not None, "three results")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [(r["step"], r["status"]) for r in ledger(tmp_path)] == [(50, "done"), (100, "done"), (150, "done")]
    assert runs(tmp_path) == [50, 100, 150]


def gated(directory):
    """A scorer that waits for the file go, then says how large the checkpoint is."""
    return script(directory, f"echo $2 >> '{directory}/runs'; while [ ! -e '{directory}/go' ]; do sleep 0.02; done\n"
                             'echo "bytes $(find "$1" -type f | xargs cat | wc -c)"\n') + " {checkpoint} {step}"


@pytest.mark.parametrize("pin", [[], ["--pin"]], ids=["", "pinned"])
@pytest.mark.parametrize("inside", [None, "weights.pt"], ids=["file", "directory"])
def test_changed_while_its_script_runs(tmp_path, pin, inside):
    """The result is dropped, said, and the new content is evaluated once; a restart evaluates nothing again."""
    path = tmp_path / "ckpt" / "model_5"
    (path if inside else path.parent).mkdir(parents=True)
    file = path / inside if inside else path
    file.write_bytes(b"x" * 100)
    arguments = ["--pattern", "model_{step}", "--ready", "quiet:0.3", "--poll-interval", 0.05, *pin]
    with Exec(tmp_path, gated(tmp_path), *arguments) as evaluator:
        wait_for(lambda: runs(tmp_path) == [5], "the script")
        file.write_bytes(b"y" * 200)
        (tmp_path / "go").touch()
        evaluator.says("model_5: changed while it was evaluated")
        evaluator.says("step: 5,")
        time.sleep(0.6)  # time for what must not happen
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [r["metrics"]["bytes"] for r in ledger(tmp_path)] == [200] and runs(tmp_path) == [5, 5]
    with Exec(tmp_path, gated(tmp_path), "--once", *arguments) as evaluator:
        evaluator.ends(0)
    assert runs(tmp_path) == [5, 5]


def test_changed_while_it_waits(tmp_path):
    """Overwritten while another one is evaluated: the script never sees it as what it was."""
    (tmp_path / "ckpt").mkdir()
    for step in (1, 2):
        (tmp_path / "ckpt" / f"model_{step}").write_bytes(b"x" * step)
    with Exec(tmp_path, gated(tmp_path), "--pattern", "model_{step}", "--ready", "quiet:0.2", "--poll-interval",
              0.05) as evaluator:
        wait_for(lambda: runs(tmp_path) == [1], "the script")
        (tmp_path / "ckpt" / "model_2").write_bytes(b"y" * 20)
        (tmp_path / "go").touch()
        evaluator.says("step: 2,")
        time.sleep(0.5)  # time for what must not happen
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [(r["step"], r["metrics"]["bytes"]) for r in ledger(tmp_path)] == [(1, 1), (2, 20)]
    assert runs(tmp_path) == [1, 2]


def test_a_command_that_writes_to_its_checkpoint(tmp_path):
    """Tried three times, then failed with the reason; not begun again by a restart."""
    (tmp_path / "ckpt").mkdir()
    (tmp_path / "ckpt" / "model_5").write_bytes(b"x")
    command = script(tmp_path, f"echo 5 >> '{tmp_path}/runs'; echo x >> $1; echo loss 1\n") + " {checkpoint}"
    for _ in range(2):
        with Exec(tmp_path, command, "--once", "--pattern", "model_{step}", "--ready", "quiet:0.1") as evaluator:
            evaluator.ends(1)
    record, = ledger(tmp_path)
    assert record["status"] == "failed" and "the command writes to it" in record["reason"]
    assert runs(tmp_path) == [5, 5, 5]


def test_killed_while_it_changes(tmp_path):
    """kill -9 between the change and the second evaluation: only the new content has a result."""
    (tmp_path / "ckpt").mkdir()
    path = tmp_path / "ckpt" / "model_5"
    path.write_bytes(b"x" * 100)
    arguments = ["--pattern", "model_{step}", "--ready", "quiet:0.3", "--poll-interval", 0.05, "--pin"]
    with Exec(tmp_path, gated(tmp_path), *arguments) as evaluator:
        wait_for(lambda: runs(tmp_path) == [5], "the script")
        path.write_bytes(b"y" * 200)  # in place: the pin, a hard link, changes as well
        evaluator.process.kill()
    (tmp_path / "go").touch()
    with Exec(tmp_path, gated(tmp_path), "--once", *arguments) as evaluator:
        evaluator.ends(0)
    assert [r["metrics"]["bytes"] for r in ledger(tmp_path)] == [200]
    assert not list((tmp_path / "eval" / "pinned").iterdir())


def test_every_second_one_with_a_change(tmp_path):
    """One that is evaluated again does not shift which ones --every takes."""
    (tmp_path / "ckpt").mkdir()
    for step in range(1, 5):
        (tmp_path / "ckpt" / f"model_{step}").write_bytes(b"x")
    with Exec(tmp_path, gated(tmp_path), "--every", 2, "--pattern", "model_{step}", "--ready", "quiet:0.2",
              "--poll-interval", 0.05) as evaluator:
        wait_for(lambda: runs(tmp_path) == [1], "the script")
        (tmp_path / "new").write_bytes(b"yy")
        (tmp_path / "new").rename(tmp_path / "ckpt" / "model_1")
        (tmp_path / "go").touch()
        wait_for(lambda: len(ledger(tmp_path)) == 2, "two results")
        time.sleep(0.5)  # time for what must not happen
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert sorted(steps(ledger(tmp_path))) == [1, 3]
