"""trainer plan under mpirun measures messages between the first and the last rank; what it says of bytes is what a training
counts; and what is wrong is said in a sentence."""
import csv
import io
import json
import subprocess

import pytest

import ranks
import waiting

LENET = ["--model", "lenet", "--batch-size", 8]


def plan(count, *options, status=0):
    """(What is printed, what is said.)"""
    run = subprocess.run(ranks.command(count, "plan", *options), capture_output=True, text=True, timeout=waiting.DEADLINE,
                         env={**ranks.ENVIRONMENT, "COLUMNS": "80"})
    assert run.returncode == status, f"status {run.returncode}, not {status}: {run.stderr}"
    return run.stdout, run.stderr


def test_measured_between_ranks():
    out, said = plan(3, *LENET, "--strategies", "mpi,ring", "--ranks", "1,2,64", "--format", "json")
    result = json.loads(out)
    assert said == "" and [(row["strategy"], row["ranks"]) for row in result["rows"]] == [
        (name, n) for name in ("mpi", "ring") for n in (1, 2, 64)]
    assert "rank 2 on host" in result["about"] and "the median of" in result["about"] and "given" not in result["about"]
    seconds = [row["seconds_per_step"] for row in result["rows"]]
    assert all(a < b for a, b in zip(seconds, seconds[1:3])) and seconds[0] == seconds[3] > 0


def test_measured_in_threads():
    out, said = plan(0, *LENET, "--threads", 2, "--ranks", 1, "--strategies", "mpi")
    assert said == "" and "a step alone in 2 threads: " in out
    _, said = plan(0, *LENET, "--threads", 3, "--ranks", 1, status=2)
    assert "--threads 3: a batch of 8 cannot be cut into 3 equal parts" in said


@pytest.mark.parametrize("count, how, strategy, servers, name", [
    (2, ["mpi"], "mpi", [], "lenet"), (4, ["mpi"], "mpi", [], "lenet"), (2, ["ring"], "ring", [], "lenet"),
    (3, ["ring", "--exchange", "bfloat16"], "ring", ["--exchange", "bfloat16"], "lenet"),
    (3, ["ps"], "ps", ["--servers", 1], "lenet"), (3, ["ps"], "ps", ["--servers", 1], "next_word"),
    (3, ["mpi", "--sparse-exchange", "all-gather"], "mpi:sparse-exchange=all-gather", [], "next_word"),
    (3, ["hybrid"], "hybrid", ["--servers", 1], "next_word")])
def test_bytes_are_those_of_a_training(count, how, strategy, servers, name):
    """On one host, whose ranks read each other's memory or send messages; of a table the rows in use."""
    model = ["--model", name, "--batch-size", 8]
    summary, _ = ranks.train(count, *model, "--data", "text" if name == "next_word" else "fashion-mnist", "--max-steps", 20,
                             "--quiet", "--json", "--run-option", *how)
    busiest = summary["busiest_link"]
    out, _ = plan(0, *model, *servers, "--compute", 0.01, "--strategies", strategy, "--ranks", count - ("--servers" in servers),
                  "--ranks-per-host", count, "--bandwidth", 1e9, "--format", "csv")
    row, = csv.DictReader(io.StringIO(out))
    assert float(row["busiest_link_bytes"]) == pytest.approx(max(busiest["sent_per_step"], busiest["received_per_step"]),
                                                             rel=0.005)


def test_beside_what_was_measured(tmp_path):
    results = tmp_path / "results.csv"
    results.write_text("strategy,ranks,steps_per_second\nmpi,2,50\nps:async,4,100\nsingle,1,70\n")
    given = [*LENET, "--compute", 0.01, "--bandwidth", 1e9, "--memory-bandwidth", 1e10]
    lines = plan(0, *given, "--measured", results)[0].splitlines()
    table = lines[lines.index("") + 1:]
    assert len(table) == 3 and max(map(len, lines)) <= 80
    assert table[1].split()[0] == "mpi" and table[1].split()[-3] == "20", table
    assert table[2].split()[0] == "ps:async" and table[2].split()[-3] == "40", table
    rows = json.loads(plan(0, *given, "--measured", results, "--ranks", "1,2", "--strategies", "mpi", "--format", "json")[0])["rows"]
    assert [row["measured_steps_per_second"] for row in rows] == [None, 50]
    assert rows[1]["error"] == pytest.approx(rows[1]["steps_per_second"] / 50 - 1)


def test_hosts_of_a_list(tmp_path):
    """As many workers as the first host has devices, the first two, and all; threads where one host has room."""
    hosts = tmp_path / "hosts"
    hosts.write_text("node-1:0,1  # the first\nnode-2:0-3\n\nnode-3\n")
    given = [*LENET, "--compute", 0.01, "--bandwidth", 1e9, "--memory-bandwidth", 1e10, "--resource-info", hosts]

    def rows(*more):
        found = csv.DictReader(io.StringIO(plan(0, *given, *more, "--format", "csv")[0]))
        return [(row["strategy"], *(int(row[name]) for name in ("ranks", "hosts", "servers"))) for row in found]

    assert rows("--strategies", "mpi,ps,mirrored") == [
        ("mpi", 1, 1, 0), ("mpi", 2, 1, 0), ("mpi", 6, 2, 0), ("mpi", 7, 3, 0),
        ("ps", 1, 1, 1), ("ps", 2, 1, 1), ("ps", 6, 2, 2), ("ps", 7, 3, 3), ("mirrored", 1, 1, 0), ("mirrored", 2, 1, 0)]
    assert rows("--strategies", "mpi,mirrored", "--ranks", "4,5") == [("mpi", 4, 2, 0), ("mpi", 5, 2, 0), ("mirrored", 4, 1, 0)]
    for more, sentence in ((["--ranks", 8], f"{hosts} has devices for 7 workers; 8 are too many"),
                           (["--servers", 2], "--resource-info and --servers"),
                           (["--ranks-per-host", 2], "--resource-info and --ranks-per-host")):
        assert sentence in plan(0, *given, *more, status=2)[1]
    hosts.write_text("node-1\nnode-1\n")
    assert f"{hosts}:2: 'node-1' is already listed" in plan(0, *given, status=2)[1]


@pytest.mark.parametrize("options, sentence", [
    ([], "give either --model or --parameters"),
    (["--model", "lenet", "--parameters", 5], "give either --model or --parameters"),
    (["--model", "lenet"], "how are hosts connected? give --bandwidth"),
    (["--parameters", 5, "--bandwidth", 1e9], "--parameters needs --compute or --fit"),
    (["--model", "lenet", "--bandwidth", 1e9, "--ranks", "2,many"], "--ranks: 'many' is not a number of workers"),
    (["--model", "lenet", "--bandwidth", 1e9, "--strategies", "mpi,rings"], "ring"),
    (["--model", "lenet", "--bandwidth", 1e9, "--resource-info", "/nonexistent"], "/nonexistent"),
    (["--model", "lenet", "--bandwidht", 1e9], "did you mean --bandwidth?"),
    (["--model", "lenet", "--bandwidth", 1e9, "lenet"], "'lenet' is no option"),
    (["--model", "lenet", "--bandwidth", 1e9, "--measured", "/nonexistent"], "/nonexistent"),
    (["--model", "lenet", "--fit", "/dev/null", "--measured", "/dev/null"], "--measured and --fit are both given"),
    (["--model", "lenet", "--fit", "/dev/null"], "/dev/null: no measurements"),
])
def test_refused(options, sentence):
    out, said = plan(0, *options, status=2)
    assert out == "" and sentence in said and said.count("\n") == 1
