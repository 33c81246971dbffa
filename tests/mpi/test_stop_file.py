"""A training that is asked to end by CKPT/stop.json: all ranks end in order, finished, with a last checkpoint."""
import pytest

import ranks
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8]
HOWS = {"single": (0, []), "mirrored-3": (0, ["--run-option", "mirrored", "--threads", "3"]), "mpi-3": (3, ["--run-option", "mpi"]),
        "mpi-3-messages": (3, ["--run-option", "mpi", "--transport", "mpi"]),
        "ps-3": (3, ["--run-option", "ps", "--servers", "1"]),
        "ps-3-async": (3, ["--run-option", "ps", "--servers", "1", "--async"])}


@pytest.mark.parametrize("how", HOWS)
def test_stop_file(how, tmp_path):
    count, options = HOWS[how]
    process = ranks.start(count, *LENET, *options, "--max-steps", 10**9, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 5)
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path).get("global_step", 0) >= 5, "step 5")
    assert ranks.training_json(tmp_path)["model"] == "lenet" and ranks.training_json(tmp_path)["batch_size"] == 8
    (tmp_path / "stop.tmp").write_text('{"reason": "it does not get any better"}')
    (tmp_path / "stop.tmp").rename(tmp_path / "stop.json")
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    assert "stop.json asks the training to end: it does not get any better" in said
    state = ranks.training_json(tmp_path)
    assert state["state"] == "finished" and state["reason"] == "it does not get any better"
    stopped = state["global_step"]
    assert 5 <= stopped < 10**9 and f'"model.ckpt-{stopped}"' in ranks.state_file(tmp_path).splitlines()[0]
    # As long as it is there, one more step is all (of the rank that looks; workers that run free go on until they hear
    # of it); without it the training goes on.
    ranks.train(count, *LENET, *options, "--max-steps", 10**9, "--checkpoint-dir", tmp_path, "--quiet")
    assert stopped < ranks.training_json(tmp_path)["global_step"] and ranks.training_json(tmp_path)["reason"]
    assert "--async" in options or ranks.training_json(tmp_path)["global_step"] == stopped + 1
    stopped = ranks.training_json(tmp_path)["global_step"]
    (tmp_path / "stop.json").unlink()
    ranks.train(count, *LENET, *options, "--max-steps", stopped + 20, "--checkpoint-dir", tmp_path, "--quiet")
    state = ranks.training_json(tmp_path)
    assert state["global_step"] >= stopped + 20 and "reason" not in state
