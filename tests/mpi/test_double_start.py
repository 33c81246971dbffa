"""Two trainers on one checkpoint directory: the second is refused while the first lives, and only then."""
import json
import os
import re
import signal
import time

import pytest

import ranks

DATA = "/usr/share/datasets/fashion-mnist"
LENET = ["--model", "lenet", "--data", "fashion-mnist", "--data-dir", DATA, "--batch-size", 8]


def refusal(count, *options):
    _, said = ranks.train(count, *options, status=2)
    lines = [line for line in said.splitlines() if line.startswith("trainer: ")]
    assert len(lines) == 1, said
    return lines[0]


@pytest.mark.parametrize("count", [0, 2])
def test_second_start(count, tmp_path):
    options = [*LENET, "--checkpoint-dir", tmp_path, *(["--run-option", "mpi"] if count else [])]
    with open(tmp_path / "said", "w") as said:
        first = ranks.start(count, *options, "--max-steps", 10**9, "--save-checkpoint-steps", 10, said=said)
    ranks.wait_for(first, lambda: ranks.training_json(tmp_path).get("global_step", 0) >= 10, "the first steps")
    host, pid = os.uname().nodename, ranks.training_json(tmp_path)["pid"]
    who = f"rank 0 on host {host}: " if count else ""
    for also in ([], ["--take-over"]):
        assert refusal(count, *options, "--max-steps", 20, *also) == (
            f"trainer: {who}--checkpoint-dir: {tmp_path}: a trainer is already working here, process {pid} on host {host}")
    (tmp_path / "training.json").unlink()  # the first one may have renewed it before the second looks
    assert re.search("already working here|has locked the directory", refusal(count, *options, "--max-steps", 20))
    for process in ranks.rank_processes(first).values() if count else [first.pid]:
        os.kill(process, signal.SIGKILL)
    first.communicate()
    assert "no checkpoint of step" not in (tmp_path / "said").read_text()
    _, said = ranks.train(count, *options, "--max-steps", 1)  # a dead one does not count
    assert "nothing is left to train" in said


def test_other_hosts(tmp_path):
    options = [*LENET, "--checkpoint-dir", tmp_path, "--max-steps", 1]

    def put(age):
        (tmp_path / "training.json").write_text(json.dumps(
            {"state": "running", "host": "another.host", "pid": 17, "updated": time.time() - age}))

    put(0)
    assert refusal(0, *options) == (
        f"trainer: --checkpoint-dir: {tmp_path}: a trainer is already working here, process 17 on host another.host; if "
        "it is gone, --take-over takes its place")
    put(0)
    ranks.train(0, *options, "--take-over")
    put(1000)
    ranks.train(0, *options)
    assert ranks.training_json(tmp_path)["state"] == "finished"
