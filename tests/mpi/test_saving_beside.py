"""Checkpoints are written beside the training: it goes on while the disk does not answer, and ends only when all is saved."""
import os
import re
import signal

import pytest

import ranks
from interposed import HELD_SYNC, interposed
from waiting import DEADLINE, wait_for

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--seed", 3, "--batch-size", 8, "--log-every", 1]
NEVER = 10**9


class Held:
    """A training in the sync of its checkpoint of step 10, from which the disk does not come back until let_go()."""

    def __init__(self, tmp_path, count, *options, every=10):
        self.directory, self.log, self.hold, begun = (tmp_path / name for name in ("ckpt", "said", "hold", "begun"))
        self.hold.touch()
        library = interposed(tmp_path, "held_sync", HELD_SYNC)["LD_PRELOAD"]
        with open(self.log, "w") as said:
            self.process = ranks.start(count, *LENET, *options, "--save-checkpoint-steps", every, "--checkpoint-dir",
                                       self.directory, said=said, LD_PRELOAD=library, HOLD_NAME="model.ckpt-10.data",
                                       HOLD_WHILE=str(self.hold), HOLD_SAYS=str(begun))
        ranks.wait_for(self.process, begun.exists, "the save of step 10")

    def step(self):
        return max(map(int, re.findall(r"^step: (\d+),", self.log.read_text(errors="replace"), re.M)), default=0)

    def let_go(self):
        self.hold.unlink()
        self.process.communicate(timeout=DEADLINE)

    def newest(self):
        return int(re.search(r'^model_checkpoint_path: "model\.ckpt-(\d+)"$', ranks.state_file(self.directory), re.M)[1])


@pytest.mark.parametrize("count,options,end", [
    (0, [], signal.SIGTERM), (0, [], "stop.json"), (3, ["--run-option", "mpi"], signal.SIGTERM),
    (3, ["--run-option", "ps"], "mpirun"), (0, [], signal.SIGKILL)],
    ids=["signal", "stop-file", "mpi", "mpirun-gone", "kill"])
def test_ends_when_all_is_saved(count, options, end, tmp_path):
    """The last step is saved after the one that the disk holds; and so is what a rank that is killed had."""
    held = Held(tmp_path, count, *options, "--max-steps", NEVER, every=10)
    pids = list(ranks.rank_processes(held.process).values()) if count else [held.process.pid]
    if end == signal.SIGKILL:
        held.process.kill()
        step = held.step()
        held.let_go()
        wait_for(lambda: ranks.training_json(held.directory)["state"] != "running", "the last state")
        state = ranks.training_json(held.directory)
        assert (state["state"], state["reason"]) == ("failed", "the trainer died")
        assert held.newest() == state["global_step"] >= max(step, 10)
        _, said = ranks.train(0, *LENET, "--max-steps", 3, "--checkpoint-dir", held.directory)
        assert re.search(rf"^resuming from .*/model\.ckpt-{held.newest()}$", said, re.M)
        assert not list(held.directory.glob("*.tempstate0"))
        return
    if end == "stop.json":
        (held.directory / "stop.json").write_text('{"reason": "a test"}')
    elif end == "mpirun":
        held.process.kill()
        wait_for(lambda: held.process.poll() is not None, "mpirun to be gone")
    else:
        os.kill(pids[-1], end)
    assert held.newest() == 0 and ranks.training_json(held.directory)["state"] == "running"
    held.let_go()
    wait_for(lambda: ranks.training_json(held.directory)["state"] != "running", "the last state")
    state = ranks.training_json(held.directory)
    assert state["state"] == ("finished" if end == "stop.json" else "stopped"), held.log.read_text()
    assert held.newest() == state["global_step"] >= 10
    names = re.findall(r'^all_model_checkpoint_paths: "model\.ckpt-(\d+)"$', ranks.state_file(held.directory), re.M)
    assert names[:2] == ["0", "10"] and names[-1] == str(state["global_step"])
    assert ranks.variables(held.directory / "model.ckpt-10")["global_step"]


def test_goes_on_and_waits_for_the_next(tmp_path):
    """Up to the next one that is due: none is left out, and each is whole and of its step."""
    held = Held(tmp_path, 0, "--max-steps", 31)
    ranks.wait_for(held.process, lambda: held.step() == 20, "step 20")
    assert held.newest() == 0 and ranks.training_json(held.directory)["state"] == "running"
    assert "Saving checkpoints for 20" not in held.log.read_text()
    held.let_go()
    assert held.process.returncode == 0
    assert re.findall(r"^Saving checkpoints for (\d+) into .*/model\.ckpt\.$", held.log.read_text(), re.M) == [
        "0", "10", "20", "30", "31"]
    names = re.findall(r'^all_model_checkpoint_paths: "model\.ckpt-(\d+)"$', ranks.state_file(held.directory), re.M)
    assert names == ["0", "10", "20", "30", "31"]
    ranks.train(0, *LENET, "--max-steps", 10, "--quiet", "--checkpoint-dir", tmp_path / "straight")
    assert (ranks.variables(held.directory / "model.ckpt-10") ==
            ranks.variables(tmp_path / "straight" / "model.ckpt-10"))
