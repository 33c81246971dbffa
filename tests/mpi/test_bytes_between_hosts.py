"""What each rank and server sends and receives in a step, between hosts: the formulas of data-parallel training, to the byte.

The program counts messages with their tallies, which are told apart here; that the counts are the kernel's within headers is
in test_two_hosts.py."""
import json
import os

import pytest

import bridged_hosts
import ranks
from waiting import DEADLINE

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for hosts need root")
LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--max-steps", 3, "--quiet", "--json"]
WEIGHT = 4                   # bytes: the batch's weight, which travels with the gradients
VALUES = 4 * 21840           # bytes of all gradients
ALL = VALUES + WEIGHT
TALLY, VERDICT = 48, 96      # bytes
EVEN = 256                   # bytes: slices are cut at cache lines, so they differ by so much a bucket


@pytest.fixture
def links(tmp_path):
    """Runs the trainer on hosts; the links of its ranks."""
    def run(names, slots, *options, by="slot"):
        hosts = bridged_hosts.Hosts(tmp_path, names)
        try:
            process = hosts.begin("a", "mpirun", "--mca", "btl_tcp_if_include", "cable", "--host",
                                  ",".join(f"{name}:{slots}" for name in names), "--map-by", by, "--bind-to", "none", "-n",
                                  slots * len(names), ranks.TRAINER, *LENET, *options)
            out, said = process.communicate(timeout=DEADLINE)
        finally:
            hosts.close()
        assert process.returncode == 0, said
        return json.loads(out)["links"]
    return run


def total(links, key):
    return sum(link[key] for link in links)


@pytest.mark.parametrize("how", ["ring", "mpi"])
def test_four_hosts(links, how):
    """2 (n - 1) / n of the vector each way on each rank, in slices of whole cache lines; together exactly."""
    n = 4
    found = links("abcd", 1, "--run-option", how)
    for way in ("sent", "received"):
        assert total(found, f"{way}_per_step") == 2 * (n - 1) * ALL + n * (n - 1) * TALLY
        for link in found:
            assert link[f"{way}_per_step"] == link[f"{way}_{'to' if way == 'sent' else 'from'}_other_hosts_per_step"]
            assert abs(link[f"{way}_per_step"] - 2 * (n - 1) / n * ALL - (n - 1) * TALLY) <= 2 * EVEN


def test_two_levels_on_three_hosts(links):
    """2 (M - 1) / M of the vector leaves and reaches each host, however many ranks it has; with the last bucket the tallies of
    its ranks."""
    hosts, each = 3, 2
    found = links("abc", each, "--run-option", "mpi")
    for way, key in (("sent", "sent_to_other_hosts_per_step"), ("received", "received_from_other_hosts_per_step")):
        assert total(found, key) == 2 * (hosts - 1) * ALL + hosts * (hosts - 1) * each * TALLY
        for host in "abc":
            ours = total([link for link in found if link["host"] == host], key)
            assert abs(ours - 2 * (hosts - 1) / hosts * ALL - (hosts - 1) * each * TALLY) <= 4 * EVEN


def test_two_levels_in_bfloat16(links):
    """Gradients take half the bytes; the batch's weight, which stays float32, all of its own."""
    hosts, each = 3, 2
    found = links("abc", each, "--run-option", "mpi", "--exchange", "bfloat16")
    for key in ("sent_to_other_hosts_per_step", "received_from_other_hosts_per_step"):
        assert total(found, key) == 2 * (hosts - 1) * (VALUES // 2 + WEIGHT) + hosts * (hosts - 1) * each * TALLY


def test_servers_beside_workers(links):
    """A worker sends all gradients and gets all values; a server n times its part, each way. Each server has the weight, and
    answers with a flag. Between hosts it is 4 (n - 1) / n of the vector, both ways together."""
    n = 4
    found = links("abcd", 2, "--run-option", "ps", "--servers", n, by="node")
    workers, servers = found[:n], found[n:]
    for link in workers:
        assert (link["role"], link["sent_per_step"]) == ("worker", VALUES + n * WEIGHT + TALLY)
        assert link["received_per_step"] == VALUES + n * 2 * WEIGHT + VERDICT
    assert [link["role"] for link in servers] == ["server"] * n
    first = servers[0]
    parts = []
    for link in servers:
        verdicts, tallies = (n * VERDICT, n * TALLY) if link is first else (0, 0)
        part = (link["received_per_step"] - tallies) / n - WEIGHT
        assert link["sent_per_step"] == n * (part + 2 * WEIGHT) + verdicts
        parts.append(part)
    assert sum(parts) == VALUES
    assert total(found, "sent_per_step") == total(found, "received_per_step")
    assert total(found, "sent_to_other_hosts_per_step") == 2 * (n - 1) * (VALUES + n * WEIGHT) + n * (n - 1) * WEIGHT + \
        (n - 1) * (TALLY + VERDICT)
