"""Ranks on two hosts (two_hosts.py) whose cable is cut, or one of which dies: a run goes on with the same bits, or ends
with a sentence that names rank, step and host, and leaves no process behind."""
import json
import os
import re
import signal
import time

import pytest

import ranks
import two_hosts
from interposed import SLOW_PRODUCTS, interposed
from waiting import DEADLINE, wait_for

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for two hosts need root")
LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8]
NEXT_WORD = ["--model", "next_word", "--data", "text", "--batch-size", 8]
HOWS = {"mpi": ["--run-option", "mpi", "--micro-shards", 4], "ps": ["--run-option", "ps"], "async": ["--run-option", "ps", "--async"],
        "hybrid": ["--run-option", "hybrid"]}
NEVER = 10**9
# Seconds between mpirun's SIGTERM and its SIGKILL, in which a rank must come to say its last sentence, on a busy machine too.
PATIENT = two_hosts.parameters(odls_base_sigkill_timeout=15)


def model_of(how):
    return NEXT_WORD if how == "hybrid" else LENET  # of hybrid's tables, which lenet has not


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """Steps of about 50 ms, nearly all of it sleep, so that many runs at once get on."""
    return {**interposed(tmp_path_factory.mktemp("slow"), "slow_products", SLOW_PRODUCTS), "SLOW_MICROSECONDS": "2000"}


class Run:
    def __init__(self, directory, slow, mpirun, model, *options):
        directory.mkdir()
        self.hosts, self.checkpoints = two_hosts.Hosts(directory), directory / "ckpt"
        self.process = self.hosts.start(
            *model, *options, "--max-steps", NEVER, "--checkpoint-dir", self.checkpoints, "--save-checkpoint-steps", 5,
            "--quiet", mpirun=mpirun, **{name: slow[name] for name in ("LD_PRELOAD", "SLOW_MICROSECONDS")})

    def step(self):
        return ranks.training_json(self.checkpoints).get("global_step", 0)

    def reach(self, step):
        ranks.wait_for(self.process, lambda: self.step() >= step, f"step {step}")


@pytest.fixture
def run(tmp_path, slow):
    runs = []

    def started(name, mpirun, how, *options):
        runs.append(Run(tmp_path / name, slow, mpirun, model_of(how), *HOWS[how], *options))
        return runs[-1]
    yield started
    for one in runs:
        one.hosts.close()


def ends_with_the_same_bits(runs, tmp_path):
    """Asked to end they save what a training has that nobody disturbed."""
    for how, one in runs.items():
        (one.checkpoints / "stop.json").write_text(json.dumps({"reason": "enough"}))
        _, said = one.process.communicate(timeout=DEADLINE)
        assert one.process.returncode == 0, f"{how}: {said}"
        step = one.step()
        if how == "async":  # whose pushes come in another order each time
            continue
        straight = (4, HOWS["mpi"]) if how == "mpi" else (3, ["--run-option", "mpi"])
        ranks.train(straight[0], *model_of(how), *straight[1], "--max-steps", step, "--quiet", "--checkpoint-dir",
                    tmp_path / f"straight-{how}")
        assert (ranks.variables(one.checkpoints / f"model.ckpt-{step}") ==
                ranks.variables(tmp_path / f"straight-{how}" / f"model.ckpt-{step}")), how


def test_short_cuts(run, tmp_path):
    """A second in both directions, then five in one: TCP sends again what was lost. Without the keepalive, which on a busy
    machine might find the longer cut too long."""
    runs = {how: run(how, {}, how) for how in HOWS}
    for one in runs.values():
        one.reach(10)
    for seconds, senders in ((1, "ab"), (5, "b")):
        before = {}
        for how, one in runs.items():
            one.hosts.cut(*senders)
            before[how] = one.step()
        time.sleep(seconds)  # how long the cable is cut is what is tested
        for one in runs.values():
            one.hosts.mend()
        for how, one in runs.items():
            one.reach(before[how] + 20)
    ends_with_the_same_bits(runs, tmp_path)


def test_long_cut(run, tmp_path):
    """A cut that is longer than one run's deadline and shorter than the other's. TCP tries again after 25 and 51 s."""
    patient = run("mpi", {}, "mpi", "--deadline", DEADLINE)
    hasty = run("ps", {}, "ps", "--deadline", 15)
    for one in (patient, hasty):
        one.reach(10)
        one.hosts.cut("a", "b")
    before = patient.step()
    wait_for(lambda: "trainer" not in hasty.hosts.processes("a"), "the ranks to end")
    for one in (patient, hasty):
        one.hosts.mend()
    patient.reach(before + 20)
    ends_with_the_same_bits({"mpi": patient}, tmp_path)
    wait_for(lambda: "trainer" not in hasty.hosts.processes("b"), "the ranks to end")
    hasty.hosts.close()  # else mpirun would take minutes to hear of it from the other host
    _, said = hasty.process.communicate(timeout=DEADLINE)
    assert re.search(r"^trainer: rank [01] on host a: .*waited 15 s at step \d+ for ranks? .*\d on host b\b", said, re.M), said


FAULTS = {
    "cut": ("mpi", lambda hosts: hosts.cut("a", "b")),
    "cut from a": ("ps", lambda hosts: hosts.cut("a")),
    "cut from b": ("async", lambda hosts: hosts.cut("b")),
    "killed": ("mpi", lambda hosts: hosts.kill("b")),
    "dead": ("ps", lambda hosts: (hosts.cut("a", "b"), hosts.kill("b"))),
}


def test_for_good(run):
    """mpirun ends its ranks once it notices, and its daemon on the other host does; the deadline is far away."""
    runs = {name: run(name.replace(" ", "-"), {**two_hosts.KEEPALIVE, **PATIENT}, how, "--deadline", DEADLINE)
            for name, (how, _) in FAULTS.items()}
    for name, one in runs.items():
        one.reach(10)
        FAULTS[name][1](one.hosts)
    for name, one in runs.items():
        _, said = one.process.communicate(timeout=DEADLINE)
        lost = ranks.open_mpi() >= 5 and "lost communication with a remote daemon" in said  # it asks no rank then, and ends with 0
        assert one.process.returncode != 0 or lost, name
        named = re.search(r"^trainer: rank [01] on host a: .*waited .* s at step \d+ for ranks? .*\d on host b\b", said, re.M)
        # Connections that end tell mpirun and MPI at once, and then no rank may have begun to wait.
        ended = re.search(r"on node b$|^trainer: rank [01] on host a: the connection with rank \d on host b failed: ", said, re.M)
        assert named or (name == "killed" and ended) or lost, f"{name}: {said}"
        for host in "ab" if one.hosts.alive("b") else "a":
            wait_for(lambda: not one.hosts.processes(host), lambda: f"{name}: {one.hosts.processes(host)} to end")


@pytest.mark.parametrize("how", ["mpi", "two-level", "ps", "ps alone", "hybrid"])
def test_bytes_are_those_of_the_kernel(how, tmp_path):
    """What each host sent and received by the program's count is what the kernel counts, within headers: 100 bytes a kilobyte,
    and what mpirun and MPI say to each other when they start and end. The busiest link is that of a host."""
    hosts, steps = two_hosts.Hosts(tmp_path), 150
    options = {"ps": HOWS["ps"], "ps alone": [*HOWS["ps"], "--local-aggregation", "off"]}.get(
        how, ["--run-option", "mpi", "--transport", how])
    if how == "hybrid":
        options = HOWS["hybrid"]
    process = hosts.start(*model_of(how), *options, "--max-steps", steps, "--json", mpirun={})
    out, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    kernel = {name: hosts.counted(name) for name in "ab"}
    hosts.close()
    summary, total = json.loads(out), 4 * (21840 + 1)
    links = summary["links"]
    counted = {name: tuple(steps * sum(link[key] for link in links if link["host"] == name) for key in
                           ("sent_to_other_hosts_per_step", "received_from_other_hosts_per_step")) for name in "ab"}
    for name in "ab":
        for ours, theirs in zip(counted[name], kernel[name]):
            assert ours < theirs < 1.1 * ours + 2**20, f"{name}: {counted}, {kernel}"
    assert all(counted["a"][i] == counted["b"][1 - i] for i in (0, 1))
    busiest = summary["busiest_link"]
    assert busiest["host"] in "ab" and "rank" not in busiest
    assert busiest["sent_per_step"] * steps == pytest.approx(counted[busiest["host"]][0])
    if how == "hybrid":  # test_table_traffic.c has its bytes
        return
    # Each of two ranks sends a slice and a sum, each a quarter of the vector, to each of two ranks; or a host half of its
    # sums and half of all; or two workers send their sum to a server, which is on the other host, or each sends all of it.
    wanted = {"mpi": 2 * total, "two-level": total, "ps": total, "ps alone": 2 * total}[how]
    assert busiest["sent_per_step"] == pytest.approx(wanted, rel=0.01)
    assert re.search(r"busiest link: host [ab] \(rank (0, 1|2, 3)\), .* sent and .* received a step", said), said


def test_stopped_rank_is_named(tmp_path):
    """Whichever rank hangs in the two levels of a sum, on the host of mpirun or on the other: a rank beside it knows which.
    So it is with workers that push together, the one that exchanges their sum with the server or the other."""
    runs = {}
    for how, host, number in (("mpi", "a", 0), ("mpi", "b", 3), ("ps", "a", 0), ("ps", "a", 1), ("hybrid", "a", 1)):
        directory = tmp_path / f"{how}-{number}"
        directory.mkdir()
        hosts = two_hosts.Hosts(directory)
        checkpoints = directory / "ckpt"
        process = hosts.start(*model_of(how), "--run-option", how, "--max-steps", NEVER, "--quiet", "--deadline", 10,
                              "--save-checkpoint-steps", 5, "--checkpoint-dir", checkpoints, mpirun={})
        runs[how, host, number] = hosts, process, checkpoints
    for (how, host, number), (hosts, process, checkpoints) in runs.items():
        ranks.wait_for(process, lambda: ranks.training_json(checkpoints).get("global_step", 0) >= 5, "step 5")
        os.kill(hosts.rank(host, number), signal.SIGSTOP)
    for (how, host, number), (hosts, process, _) in runs.items():
        first = next(line for line in process.stderr if line.lstrip("\0").startswith("trainer: "))  # the deadline is that of the trainer
        hosts.close()  # mpirun takes long to end ranks that are stopped
        assert re.search(rf"waited 10 s at step \d+ for rank {number} on host {host}, (for tensors|.*which|to send the)", first), first
        process.communicate(timeout=DEADLINE)
