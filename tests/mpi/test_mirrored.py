"""Workers that are threads of one process, without mpirun: what as many ranks would have done, and one copy of the data."""
import json
import os
import pathlib
import subprocess

import ranks
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 12, "--log-every", 1, "--json"]
SUMMARY = ("state", "workers", "global_step", "max_steps", "steps", "loss", "precision")  # the same, however it was trained


def points(directory):
    """Every point of the curves that does not depend on speed, as written for TensorBoard."""
    run = subprocess.run([ranks.BUILD / "bin" / "eventlog", "export", "--format=jsonl", directory / "log"],
                         capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in run.stdout.splitlines()]
    return [(row["tag"], row["step"], row["value"]) for row in rows if row["tag"] in ("loss", "precision", "learning_rate")]


def test_three_threads_are_three_ranks(tmp_path):
    """Weights, curves and the summary; stopped after four steps, and resumed with the other kind of weights, too, and with
    gradients that are limited."""
    found = {}
    for key, count, options in [("mpi", 3, ["--run-option", "mpi"]),
                                ("copied", 0, ["--run-option", "mirrored", "--threads", 3]),
                                ("shared", 0, ["--run-option", "mirrored", "--threads", 3, "--weights", "shared"])]:
        directory = tmp_path / key
        copied = ["--run-option", "mirrored", "--threads", 3]
        for steps, words in [(4, options), (6, [*options, "--clip-norm", 0.3]),
                             (7, copied if key == "shared" else options)]:
            summary, said = ranks.train(count, *LENET, *words, "--max-steps", steps, "--checkpoint-dir", directory,
                                        "--log-dir", directory / "log")
        found[key] = (ranks.variables(directory / "model.ckpt-7"), points(directory),
                      [summary[name] for name in SUMMARY])
        assert summary["workers"] == 3 and ranks.training_json(directory)["state"] == "finished"
        if key == "copied":  # 8 variables with momentum's slots, for two more threads
            assert summary["world_size"] == 1 and summary["transport"] == "threads" and summary["bytes_per_step"] == 0
            assert summary["variables_copied"] == 32
            assert "mirrored, 3 threads, copied weights; global batch 36 (3 x 12)" in said
            assert "copied 32 variables and slots of the first thread to the others" in said
            assert "% of the time for the others" in said
    assert len(found["mpi"][1]) == 21
    assert found["copied"] == found["mpi"] == found["shared"]


def test_threads_share_micro_shards(tmp_path):
    bits = []
    for key, options in [("single", ["--batch-size", 24]),
                         ("threads", ["--run-option", "mirrored", "--threads", 4, "--batch-size", 6])]:
        _, said = ranks.train(0, *LENET, *options, "--micro-shards", 8, "--max-steps", 3, "--checkpoint-dir", tmp_path / key)
        assert "8 micro-shards" in said
        bits.append(ranks.variables(tmp_path / key / "model.ckpt-3"))
    assert bits[0] == bits[1]


def test_data_and_threads_are_counted(tmp_path):
    """One data set in memory, whose images are 45 MiB; one thread for each worker after the first, one for the input, and at
    times one that saves."""
    def used(threads):
        process = ranks.start(0, "--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--run-option", "mirrored",
                              "--threads", threads, "--max-steps", 10**9, "--checkpoint-dir", tmp_path / str(threads),
                              "--save-checkpoint-steps", 5)
        ranks.wait_for(process, lambda: ranks.training_json(tmp_path / str(threads)).get("global_step", 0) >= 5, "step 5")
        ranks.wait_for(process, lambda: len(os.listdir(f"/proc/{process.pid}/task")) == threads + 1, f"{threads + 1} threads")
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        process.communicate(timeout=DEADLINE)
        assert process.returncode == 128 + 15
        return int(status.split("VmRSS:")[1].split()[0])

    assert used(4) - used(1) < 45 * 1024


def test_wrong_use_is_refused():
    mirrored = ["--model", "lenet", "--data", "fashion-mnist", "--run-option", "mirrored"]
    for count, options, sentence in [(0, [], "needs --threads N"),
                                     (2, ["--threads", 2], "2 ranks were started; use mpi or ps, or start it without"),
                                     (0, ["--threads", 7, "--batch-size", 10000], "a step of 7 workers would take 70000")]:
        _, said = ranks.train(count, *mirrored, *options, status=2)
        assert sentence in said and len(said.splitlines()) == 1, said
