"""Jobs on the hosts of a list (bridged_hosts.py): which rank runs on which host, with which strategy, at a limited rate;
and what is refused before anything starts."""
import json
import os
import re
import shlex
import subprocess

import pytest

import bridged_hosts
import ranks
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for hosts need root")


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    made = bridged_hosts.Hosts(tmp_path_factory.mktemp("hosts"), "abc", rate="200mbit")
    yield made
    made.close()


def finish(process):
    """What it printed and said; it must succeed."""
    printed, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    return printed, said


def places(said):
    """{host: what runs there}, of the line that says it."""
    line = re.search(r"^\d hosts: (.*)$", said, re.M)
    assert line, said
    return dict(place.split(": ") for place in line[1].split("; "))


@needs_root
def test_where(hosts, tmp_path):
    """Ranks are where the list has them, whichever host the line is typed on, with equal weights for all strategies."""
    listed = tmp_path / "hosts.txt"
    listed.write_text("b:0,1   # rank 0 is here\n\nc\n")
    runs = {"mpi": (["--run-option", "mpi"], {"b": "workers 0-1", "c": "worker 2"}),
            "ps": (["--run-option", "ps"], {"b": "workers 0-1, server 3", "c": "worker 2, server 4"}),
            "one": (["--run-option", "ps", "--servers", 1], {"b": "workers 0-1, server 3", "c": "worker 2"})}
    trained = {}
    for name, (options, _) in runs.items():
        trained[name] = hosts.begin("a", ranks.TRAINER, "--resource-info", listed, *options, *LENET, "--max-steps", 3, "--json",
                                    "--checkpoint-dir", tmp_path / name)
    for name, (_, wanted) in runs.items():
        printed, said = finish(trained[name])
        assert places(said) == wanted, name
        assert json.loads(printed)["global_step"] == 3
        assert ranks.training_json(tmp_path / name)["host"] == "b"
        assert ranks.variables(tmp_path / name / "model.ckpt-3") == ranks.variables(tmp_path / "mpi" / "model.ckpt-3"), name


@needs_root
def test_servers_on_each_host(hosts, tmp_path):
    """With mpirun as it is, which numbers the ranks by host: its ranks 1 and 4 are the servers."""
    run = hosts.begin("a", "mpirun", "--host", "a:2,b:3", "--bind-to", "none", "-n", 5, ranks.TRAINER, *LENET, "--run-option", "ps",
                      "--servers-per-host", 1, "--local-aggregation", "off", "--max-steps", 2, "--checkpoint-dir", tmp_path / "ps")
    few = hosts.begin("a", "mpirun", "--host", "a:2,b:1", "--bind-to", "none", "-n", 3, ranks.TRAINER, *LENET, "--run-option",
                      "ps", "--servers-per-host", 1)
    assert places(finish(run)[1]) == {"a": "worker 0, server 3", "b": "workers 1-2, server 4"}
    ranks.train(3, *LENET, "--run-option", "mpi", "--max-steps", 2, "--quiet", "--checkpoint-dir", tmp_path / "mpi")
    assert ranks.variables(tmp_path / "ps" / "model.ckpt-2") == ranks.variables(tmp_path / "mpi" / "model.ckpt-2")
    _, said = few.communicate(timeout=DEADLINE)
    assert few.returncode == 2
    assert said.count("trainer: --servers-per-host 1 leaves no worker on host b, which has 1 rank; start at least 2") == 1, said


@needs_root
def test_compare(hosts, tmp_path):
    """Each cell is on as many of the first hosts as it needs, with a server on each; threads are on the first."""
    listed, out = tmp_path / "hosts.txt", tmp_path / "cmp"
    listed.write_text("a:0,1\nb\n")
    words = [ranks.TRAINER, "compare", "--strategies", "mpi,ps,mirrored", "--rounds", 1, "--resource-info", listed, "--output", out,
             *LENET[:4], "--global-batch", 16, "--reproducible", "--max-steps", 3, "--evaluate", "never"]
    _, said = finish(hosts.begin("a", *words))
    assert "left out, because it is impossible: mirrored with 3 workers" in said and "(8 of 8)" in said
    rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert {row["cell"]: row["ranks"] for row in rows} == {
        "mpi-1": 1, "mpi-2": 2, "mpi-3": 3, "ps-1": 2, "ps-2": 3, "ps-3": 5, "mirrored-1": 1, "mirrored-2": 2}
    assert len({row["weights"] for row in rows}) == 1
    for cell, wanted in (("mpi-3", {"a": "workers 0-1", "b": "worker 2"}),
                         ("ps-3", {"a": "workers 0-1, server 3", "b": "worker 2, server 4"})):
        assert places((out / "round-1" / cell / "log.txt").read_text()) == wanted
    printed, _ = finish(hosts.begin("a", *words, "--dry-run"))
    assert "--host a,a,b,a,b " in printed and printed.count("--servers-per-host 1") == 3
    refused = hosts.begin("a", *words, "--ranks", 4)
    assert "mpi-4: 4 workers are too many for hosts with 3 devices" in refused.communicate(timeout=DEADLINE)[1]
    assert refused.returncode == 2


def launch(*options, **variables):
    return subprocess.run([ranks.TRAINER, *map(str, [*LENET, *options])], capture_output=True, text=True, timeout=DEADLINE,
                          env={**ranks.ENVIRONMENT, **variables})


def test_dry_run(tmp_path):
    """The line is for a shell, and takes all options but those that made it."""
    listed = tmp_path / "hosts.txt"
    listed.write_text("a:0-1\nb\n")
    run = launch("--resource-info", listed, "--run-option", "ps", "--dry-run", "--checkpoint-dir", "it's here", "--seed=3")
    words = shlex.split(run.stdout)
    assert run.returncode == 0 and run.stdout.count("\n") == 1 and not run.stderr
    assert words[:5] == ["mpirun", "--map-by", "seq", "--host", "a,a,b,a,b"]
    assert words[words.index("-n"):] == ["-n", "5", str(ranks.TRAINER), *map(str, LENET), "--run-option", "ps",
                                         "--checkpoint-dir", "it's here", "--seed=3", "--servers-per-host", "1"]
    again = launch(f"--resource-info={listed}", "--run-option=ps", "--dry-run", "--servers-per-host=2")
    assert shlex.split(again.stdout)[4] == "a,a,b,a,b,a,b" and again.stdout.endswith(" --servers-per-host=2\n")


@pytest.mark.parametrize("version, wanted", [
    ("mpirun (Open MPI) 4.1.4", "mpirun --map-by seq --host a,a,b --bind-to none --wdir {} --mca oob_tcp_keepalive_time 5 --mca "),
    ("mpirun (Open MPI) 6.0.0rc2", "mpirun --map-by seq --host a,a,b --bind-to none --wdir {} --prtemca prte_keepalive_time 5 "),
    ("mpirun (Open MPI) 5.0.7", "mpirun --map-by seq --host a,a,b --bind-to none --wdir {} --prtemca oob_tcp_keepalive_time 5 "),
    ("HYDRA build details:\n    Version:  4.2.1", "mpirun -hosts a,a,b -bind-to none -wdir {} -n 3 "),
])
def test_line_for_the_mpirun_that_runs(version, wanted, tmp_path):
    """It is asked which one it is, for a training and for the cells of a comparison."""
    listed, mpirun = tmp_path / "hosts.txt", tmp_path / "mpirun"
    listed.write_text("a:0-1\nb\n")
    mpirun.write_text(f"#!/bin/sh\n[ \"$*\" = --version ] && echo '{version}'\n")
    mpirun.chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    begin = wanted.format(os.getcwd())
    run = launch("--resource-info", listed, "--run-option", "mpi", "--dry-run", **path)
    assert run.returncode == 0 and run.stdout.startswith(begin), run
    cells = subprocess.run(
        [ranks.TRAINER, "compare", "--strategies", "mpi", "--ranks", "3", "--rounds", "1", "--resource-info", listed, "--output",
         tmp_path / "cmp", *LENET[:4], "--global-batch", "12", "--max-steps", "3", "--evaluate", "never", "--dry-run"],
        capture_output=True, text=True, timeout=DEADLINE, env={**ranks.ENVIRONMENT, **path})
    assert cells.returncode == 0 and begin in cells.stdout, cells


def test_refused(tmp_path):
    """With status 2 and one line, before anything starts."""
    good, bad = tmp_path / "hosts.txt", tmp_path / "bad.txt"
    good.write_text("localhost:0,1\n")
    bad.write_text("# mine\n\na:0\na:1\n")
    cases = {f"--resource-info: {bad}:4: 'a' is already listed; write all its devices into one line": ([bad], {}),
             f"--resource-info: {tmp_path}/none: cannot open: No such file or directory": ([tmp_path / "none"], {}),
             "--run-option single is for one rank, but 2 were started; use mpi or ps": ([good, "--run-option", "single"], {}),
             "--resource-info: no mpirun in PATH; install that of the MPI that the trainer was built with (Debian: openmpi-bin or "
             "mpich), or add its bin directory to PATH": ([good], {"PATH": str(tmp_path)}),
             "--resource-info starts the ranks itself, but Slurm has started this program and chosen the hosts; leave the option "
             "out": ([good], {"SLURM_JOB_ID": "7"})}
    for sentence, (options, variables) in cases.items():
        run = launch("--run-option", "mpi", "--resource-info", *options, **variables)
        assert (run.returncode, run.stdout, run.stderr) == (2, "", f"trainer: {sentence}\n")
    run = launch("--dry-run")
    assert (run.returncode, run.stderr) == (2, "trainer: --dry-run needs --resource-info\n")
    _, said = ranks.train(2, *LENET, "--run-option", "mpi", "--resource-info", good, status=2)
    assert said.count("trainer: --resource-info starts the ranks itself, but mpirun has started this program") == 1
