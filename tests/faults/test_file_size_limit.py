"""A limit of file sizes (ulimit -f, quotas of batch systems) is survived as a full disk is: SIGXFSZ ends nobody."""
import json
import os
import pathlib
import resource
import subprocess

from evaluators import ledger, steps, write
import waiting

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
RANKS = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}


def limited(bytes_, *words):
    """Standard error goes through a pipe, which the limit does not concern."""
    done = subprocess.run([BUILD / "bin" / words[0], *map(str, words[1:])], capture_output=True, text=True, env=RANKS,
                          timeout=waiting.DEADLINE,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, bytes_)))
    assert done.returncode == 2 and "File too large" in done.stderr, (done.returncode, done.stderr)


def test_trainer(tmp_path):
    options = ("--run-option", "single", "--model", "lenet", "--data", "fashion-mnist", "--batch-size", 1, "--max-steps", 2,
               "--checkpoint-dir", tmp_path / "ckpt")
    limited(50000, "trainer", *options)
    assert json.loads((tmp_path / "ckpt/training.json").read_text())["state"] == "failed"
    assert [p.name for p in (tmp_path / "ckpt").iterdir()] == ["training.json"]
    subprocess.run([BUILD / "bin/trainer", *map(str, options)], check=True, env=RANKS, timeout=waiting.DEADLINE)
    assert json.loads((tmp_path / "ckpt/training.json").read_text())["state"] == "finished"


def test_eventlog(tmp_path):
    lines = "".join(f'{{"tag": "loss", "step": {i}, "value": 1}}\n' for i in range(100))
    subprocess.run([BUILD / "bin/eventlog", "write", "-d", tmp_path / "log", "-"], input=lines, text=True, check=True)
    limited(500, "eventlog", "export", tmp_path / "log", "-o", tmp_path / "x.csv")
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


def test_evaluator(tmp_path):
    """It goes on once there is room."""
    write(tmp_path, "--first", 100, "--last", 500, "--step", 100)
    process = subprocess.Popen([BUILD / "bin/evaluator", "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir", tmp_path / "eval",
                                "--model", "lenet", "--data", "fashion-mnist", "--num-examples", "100"],
                               stderr=subprocess.PIPE, text=True, env=RANKS,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (600, resource.RLIM_INFINITY)))
    try:
        assert any("File too large" in line and "trying again" in line for line in process.stderr)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        assert any("step: 500," in line for line in process.stderr)
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0
    assert steps(ledger(tmp_path)) == list(range(100, 501, 100))
