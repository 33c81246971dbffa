"""eventlog on terminals of several widths: no line is wider, no progress line scrolls."""
import json
import os
import re
import shutil
import subprocess
import unicodedata

import pytest

from terminal import ENVIRONMENT, EVENTLOG, on_terminal

RUN = "an_experiment_with_all_of_its_hyperparameters_in_its_name_lr=0.001_batch=128_seed="
TAG = "evaluation/of/every/checkpoint/precision_at_a_recall_of_95_percent"


def width(line):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line)


def write(directory, points):
    subprocess.run([EVENTLOG, "write", "-d", directory, "-"], input="\n".join(map(json.dumps, points)), text=True, check=True)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """24 runs with long names; LOG is sound, BAD has incomplete last records."""
    top = tmp_path_factory.mktemp("terminal")
    write(top / "log", [{"run": f"{RUN}{i}", "tag": tag, "step": 1000 * s, "value": 1 / (s + i + 1), "wall_time": 1.7e9 + s}
                        for i in range(24) for tag in (TAG, "lr") for s in range(5)])
    shutil.copytree(top / "log", top / "bad")
    for file in (top / "bad").rglob("*tfevents*"):
        file.write_bytes(file.read_bytes()[:-1])
    return {"LOG": top / "log", "BAD": top / "bad"}


COMMANDS = ["inspect LOG", "inspect --tree LOG", "inspect LOG --sort points --top 5", "stats LOG --time local", "tags LOG",
            "compare LOG", "compare LOG --sort last --top 5", "plot LOG", "plot LOG --tag lr --x step,relative", "verify LOG",
            "verify --kinds", "tail LOG", "tail LOG --all --time local", "merge --keep-runs LOG -o OUT",
            "rename-tag lr=rate LOG -o OUT", "drop-tag lr LOG -o OUT", "downsample --every 2 LOG -o OUT",
            "split --by run LOG -o OUT", "--help", "export --help", "compare --help"]


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_line_is_too_wide(logs, command, columns, tmp_path):
    text = on_terminal(columns, *(logs.get(w, tmp_path / "o" if w == "OUT" else w) for w in command.split()))
    lines = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "\n").split("\n")
    assert any(lines) and [line for line in lines if width(line) > columns] == []


def test_findings_fit(logs):
    lines = on_terminal(60, "verify", logs["BAD"], status=1).replace("\r", "").split("\n")
    assert sum(len(line) > 0 for line in lines) > 24 and [line for line in lines if width(line) > 60] == []


@pytest.mark.parametrize("command, status", [
    ("statz", 2), ("plot LOG --tag nosuch", 1), ("compare LOG --group a* --band min-max", 2),
    ("repair TORN -o OUT", 0)])
def test_messages_break_between_words(logs, command, status, tmp_path):
    torn = next((logs["BAD"]).rglob("*tfevents*"))
    names = logs | {"OUT": tmp_path / "o", "TORN": torn}
    words = [names.get(word, word) for word in command.split()]
    pipe = subprocess.run([EVENTLOG, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT)
    (tmp_path / "o").unlink(missing_ok=True)
    lines = re.sub(r"[^\n]*\x1b\[K", "", on_terminal(60, *words, status=status)).splitlines()  # without progress
    assert len(pipe.stdout.splitlines()) == 1 and len(lines) > 1 and max(map(len, lines)) <= 60
    whole = {word for word in pipe.stdout.split() if len(word) < 50}  # what is wider than a line has to be broken
    assert not whole - {word for line in lines for word in line.split()}


def test_tail_cuts_names_on_terminals_alone(logs):
    words = ["tail", logs["LOG"], "--tag", TAG, "--run", "*=7", "-n", "1"]
    assert on_terminal(60, *words) == "an_exp…eed=7  evalua…ercent  4000  0.083333336  1700000004.0\r\n"
    pipe = subprocess.run([EVENTLOG, *words], capture_output=True, text=True, check=True, env=ENVIRONMENT | {"COLUMNS": "60"})
    assert pipe.stdout == f"{RUN}7\t{TAG}\t4000\t0.083333336\t1700000004.0\n"


def test_progress_is_of_all_runs(tmp_path):
    write(tmp_path / "log", [{"run": run, "tag": "a", "step": s, "value": 1}
                             for run, count in (("r1", 1), ("r2", 70000)) for s in range(count)])
    core = min(os.sched_getaffinity(0))  # on one, so that r2 is read after r1
    text = on_terminal(80, "--cpu-list", core, EVENTLOG, "stats", tmp_path / "log", "--format=csv", program="taskset")
    assert re.search(r"\r\x1b\[Keventlog stats: 9\d% of [\d.]+ MiB in 2 runs(, [\d.]+ \w+ to go)?: r2\r\x1b\[K", text)
