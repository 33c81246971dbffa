"""make tables: a comparison runs, each published row has ours under it, and what is there is not run again."""
import csv
import os
import pathlib
import subprocess
import sys

import waiting

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()


def tables(output, *words, status=0):
    run = subprocess.run([sys.executable, ROOT / "bench/tables.py", "--build", BUILD, "--output", output, *map(str, words)],
                         capture_output=True, text=True, timeout=waiting.DEADLINE)
    assert run.returncode == status, run.stdout + run.stderr
    return run


def test_published_and_ours(tmp_path):
    words = ["--only", "mnist_lstm", "--scale", "0.2", "--num-examples", "50"]
    run = tables(tmp_path, *words)
    assert "1 of 1: mnist_lstm: an LSTM of 64 units" in run.stderr and "round 1, mpi-3" in run.stderr
    rows = list(csv.DictReader((tmp_path / "tables.csv").open()))
    assert [row["figure"] for row in rows] == [f"test accuracy at step {step}" for step in (50, 100, 150, 200, 250)]
    first, last = rows[0], rows[-1]
    assert first["comparison"] == "mnist_lstm" and first["published"] == "0.43" and first["system"] == "homework"
    assert float(first["ours_against_published"]) == float(first["ours"]) / 0.43
    assert first["note"] == "Fashion-MNIST: give --mnist-dir"
    assert (last["published"], last["ours"], last["note"]) == ("0.81", "", "not run here")
    text = (tmp_path / "tables.txt").read_text().splitlines()
    assert max(map(len, text)) <= 80
    lines = [line.split() for line in text]
    above = lines.index("test accuracy at step 50, homework 3 0.43".split())
    assert lines[above + 1][:3] == ["here:", "mpi", "3"] and lines[above + 1][-1] == "a"
    assert "a: Fashion-MNIST: give --mnist-dir" in text
    again = tables(tmp_path, *words)
    assert again.stdout == run.stdout and "round 1" not in again.stderr


def test_programs_that_are_not_built(tmp_path):
    run = tables(tmp_path / "out", "--only", "resnet50", "--build", tmp_path, status=1)
    assert f"{tmp_path}/bin/trainer is not built; run `make`" in run.stderr
