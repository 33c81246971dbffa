"""Libraries that are loaded when they are needed: without them all works that needs none, and the rest says what is missing."""
import subprocess

import pytest

from evaluators import EVALUATOR, ledger, write
from interposed import NO_LIBRARY, interposed


@pytest.mark.parametrize("library, wanted", [("openblas", "matrix products need OpenBLAS: "), ("dnnl", "convolutions need oneDNN: ")])
def test_evaluator(tmp_path, library, wanted):
    environment = interposed(tmp_path, "no_library", NO_LIBRARY, NO_LIBRARY=library)
    shown = subprocess.run([EVALUATOR, "--help"], env=environment, capture_output=True, text=True)
    assert shown.returncode == 0 and shown.stdout.startswith("usage: evaluator") and not shown.stderr
    write(tmp_path, "--model", "lenet", "--first", 100, "--last", 100)
    run = subprocess.run([EVALUATOR, "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir", tmp_path / "eval", "--model", "lenet",
                          "--data", "fashion-mnist", "--once"], env=environment, capture_output=True, text=True)
    assert run.returncode == 2 and wanted + "/nowhere" in run.stderr and ledger(tmp_path) == []
    # A command needs neither.
    counted = subprocess.run([EVALUATOR, "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir", tmp_path / "eval", "--exec",
                              "echo accuracy 0.5", "--once"], env=environment, capture_output=True, text=True)
    assert counted.returncode == 0 and [line["step"] for line in ledger(tmp_path)] == [100], counted.stderr
