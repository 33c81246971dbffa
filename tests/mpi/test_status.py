"""trainer status: trainings that run, ended, died, are silent or on another host, one and many, as table and as JSON."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import time

import pytest

import ranks
from waiting import DEADLINE, wait_for

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8]


def status(*words, code=0, columns=None):
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    environment.pop("COLUMNS", None)
    if columns:
        environment["COLUMNS"] = str(columns)
    run = subprocess.run([ranks.TRAINER, "status", *map(str, words)], capture_output=True, text=True, env=environment)
    assert run.returncode == code, run.stdout + run.stderr
    return run.stdout if not code == 2 else run.stderr


def one(directory, code=0):
    document = json.loads(status("--json", directory, code=code))
    assert document["type"] == "trainer-status" and document["version"] == 1 and document["total"]["runs"] == 1
    run, = document["runs"]
    assert document["total"][run["state"]] == 1
    return run


def says(directory, state="running", age=0.0, **members):
    """training.json as a trainer would have left it."""
    directory.mkdir(parents=True, exist_ok=True)
    now = time.time()
    (directory / "training.json").write_text(json.dumps({
        "state": state, "host": socket.gethostname(), "pid": os.getpid(), "global_step": 250, "max_steps": 1000,
        "run_option": "mpi", "world_size": 4, "started": now - 7200, "updated": now - age, "stepped": now - age,
        "steps_per_second": 0.5, "images_per_second": 64.0, **members}))
    return directory


def test_a_training(tmp_path):
    """Running, then died, then resumed and stopped, then finished: each time it says so."""
    process = ranks.start(2, *LENET, "--run-option", "mpi", "--max-steps", 10**9, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 20)
    ranks.wait_for(process, lambda: ranks.training_json(tmp_path).get("global_step", 0) >= 20, "step 20")
    run = one(tmp_path)
    assert run["state"] == "running" and run["alive"] is True and run["pid"] in ranks.rank_processes(process).values()
    assert run["max_steps"] == 10**9 and run["checkpoint_step"] >= 20 and run["world_size"] == 2
    assert run["steps_per_second"] > 0 and run["seconds_left"] > 1e3 and run["step_age"] >= 0
    assert run["images_per_second"] == pytest.approx(16 * run["steps_per_second"])
    pids = [process.pid, *ranks.working_in(tmp_path)]  # those who would write its last state, too
    for pid in pids:  # so that none sees that another is gone
        os.kill(pid, signal.SIGSTOP)
    for pid in reversed(pids):  # the launcher last: the kernel lets stopped orphans go on
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    wait_for(lambda: not any(map(ranks.alive, pids)), "the end of all that were killed")
    run = one(tmp_path, code=1)
    assert run["state"] == "died" and run["alive"] is False and run["seconds_left"] is None
    assert f"process {run['pid']} on {run['host']} is gone" in status(tmp_path, code=1)
    resumed = ranks.start(0, *LENET, "--max-steps", 10**9, "--checkpoint-dir", tmp_path)
    ranks.wait_for(resumed, lambda: ranks.training_json(tmp_path)["pid"] == resumed.pid, "the resumed training")
    resumed.terminate()
    resumed.communicate(timeout=DEADLINE)
    run = one(tmp_path)
    assert run["state"] == "stopped" and run["signal"] == "SIGTERM" and run["reason"]
    ranks.train(0, *LENET, "--max-steps", run["global_step"], "--checkpoint-dir", tmp_path)
    assert one(tmp_path)["state"] == "finished"


@pytest.mark.parametrize("members,state,code", [
    ({"age": 3600}, "silent", 1), ({"process_start": 1}, "died", 1), ({"boot": "another"}, "died", 1),
    ({"pid": 2**22 + 7}, "died", 1), ({"host": "elsewhere"}, "running", 0),
    ({"host": "elsewhere", "age": 3600}, "silent", 1), ({"state": "failed", "reason": "?"}, "failed", 1),
    ({"state": "stopped", "host": "elsewhere", "age": 1e6}, "stopped", 0), ({"state": "finished"}, "finished", 0)])
def test_processes(members, state, code, tmp_path):
    run = one(says(tmp_path, **members), code)
    assert run["state"] == state
    assert run["alive"] is (None if "host" in members else code == 0 or "age" in members or state == "failed")


def test_as_others_write_it(tmp_path):
    """A training.json of another program, with the least that can be in it."""
    (tmp_path / "training.json").write_text('{"state": "finished", "more": [1]}')
    run = one(tmp_path)
    assert run["state"] == "finished" and run["alive"] is None and run["steps_per_second"] is None
    (tmp_path / "training.json").write_text('{"state": "resting"}')
    assert "training.json" in status(tmp_path, code=2)
    (tmp_path / "training.json").write_text("")
    assert "training.json" in status(tmp_path, code=2)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_many(columns, tmp_path):
    """Those below a directory in natural order, in a table that fits; what matters most is there at any width."""
    for i in (10, 2, 1):
        says(tmp_path / f"runs/r{i}/a-rather-long-name-of-a-checkpoint-directory")
    says(tmp_path / "runs/.hidden")
    says(tmp_path / "runs/dead/ckpt", pid=2**22 + 7)
    table = status(tmp_path / "runs", code=1, columns=columns).splitlines()
    assert len(table) == 5 and all(len(line) <= columns for line in table)
    assert [line.split()[0] for line in table] == ["state", "died", "running", "running", "running"]
    assert all(re.match(r"running +250 +1000 +2[45] min ", line) for line in table[2:])
    if columns == 200:
        assert table[0].split() == ["state", "step", "of", "to", "go", "steps/s", "samples/s", "last", "step", "saved",
                                    "directory", "why"]
        assert [line.split()[-1].split("/")[-2] for line in table[2:]] == ["r1", "r2", "r10"]
        assert "is gone" in table[1]
    document = json.loads(status("--json", tmp_path / "runs", code=1))
    assert document["total"] == {"runs": 4, "running": 3, "finished": 0, "stopped": 0, "failed": 0, "died": 1,
                                 "silent": 0}


def test_usage(tmp_path):
    assert "no training; looked for training.json" in status(tmp_path, code=2)
    assert "No such file or directory" in status(tmp_path / "nowhere", code=2)
    assert "which checkpoint directory?" in status(code=2)
    for words, wanted in ((["stauts"], "did you mean status?"), (["help", "stauts"], "did you mean status?"),
                          (["status", "--jsn", "."], "did you mean --json?"), (["somewhere"], "unknown command")):
        run = subprocess.run([ranks.TRAINER, *words], capture_output=True, text=True)
        assert run.returncode == 2 and wanted in run.stderr and not run.stdout
    for words in (["help"], ["help", "status"], ["-h"], ["status", "--help"], ["-V"], ["status", "-V"]):
        run = subprocess.run([ranks.TRAINER, *words], capture_output=True, text=True)
        assert run.returncode == 0 and run.stdout.startswith(("usage: trainer", "trainer ")) and not run.stderr


def test_one_thread_computes(tmp_path):
    """OpenBLAS starts none for the other cores, unless told to; ps, pgrep and killall find the trainer."""
    for given in (None, "7"):
        environment = {name: value for name, value in ranks.ENVIRONMENT.items() if name != "OPENBLAS_NUM_THREADS"}
        if given:
            environment["OPENBLAS_NUM_THREADS"] = given
        checkpoints = tmp_path / f"ckpt{given}"
        process = subprocess.Popen(ranks.command(0, *LENET, "--max-steps", 10**9, "--checkpoint-dir", checkpoints, "--quiet"),
                                   env=environment)
        ranks.started.append(process)
        ranks.wait_for(process, lambda: ranks.training_json(checkpoints), "the training")
        names = [(task / "comm").read_text().strip() for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()]
        process.kill()
        assert set(names) == {"trainer"}
        assert given or len(names) == 2, names  # the other one prepares batches


def test_what_a_training_says_of_its_data(tmp_path):
    """Without --checkpoint-dir that nothing is saved; with it, where its data are and how they are read, for the evaluator."""
    words = ["--run-option", "single", "--model", "lenet", "--data", "fashion-mnist", "--batch-size", 4, "--max-steps", 1]
    saved, line = ["--checkpoint-dir", tmp_path / "ckpt"], "nothing will be saved; --checkpoint-dir saves what is trained"
    assert ranks.train(0, *words)[1].count(line) == 1
    assert line not in ranks.train(0, *words, "--quiet")[1]
    assert line not in ranks.train(0, *words, *saved)[1]
    assert not {"data_dir", "data_options"} & ranks.training_json(tmp_path / "ckpt").keys()
    (tmp_path / "da ta").symlink_to("/usr/share/datasets/fashion-mnist")
    ranks.train(0, *words, *saved, "--data-dir", os.path.relpath(tmp_path / "da ta"), "--bad-samples", "skip", "--resume", "never")
    state = ranks.training_json(tmp_path / "ckpt")
    assert state["data_dir"] == os.path.realpath(tmp_path / "da ta") and state["data_options"] == "--bad-samples skip"
    run = subprocess.run([ranks.BUILD / "bin/evaluator", *saved, "--eval-dir", tmp_path / "eval", "--once", "--num-examples", "20"],
                         capture_output=True, text=True)
    assert f"using --model lenet --data fashion-mnist --data-dir {state['data_dir']} --bad-samples skip, as" in run.stderr
    assert run.returncode == 0, run.stderr
