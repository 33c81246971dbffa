"""A part of `make rank-faults` (tests/campaign/rank_campaign.py): a rank of each strategy is killed, stopped or cut off at a
moment that is given here; the failure is named, the last checkpoint intact, nothing left behind, and the next start ends with
the bits of an undisturbed training. And that the campaign itself can fail."""
import concurrent.futures
import os
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))

import rank_faults  # noqa: E402  where it is, is known now
from injected import Broken  # noqa: E402
from rank_campaign import Campaign  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for hosts need root")
# Strategy, hosts, and the fault.
FAULTS = [
    ("single", 1, rank_faults.Fault("kill", 0, "fsync", 0.6)),
    ("mirrored copied", 1, rank_faults.Fault("stop", 0, "cblas_sgemm", 0.5)),
    ("mpi shared", 1, rank_faults.Fault("stop", 1, "cblas_sgemm", 0.6)),
    ("mpi messages", 2, rank_faults.Fault("kill", 3, "MPI_Isend", 0.5)),
    ("mpi two-level", 2, rank_faults.Fault("stop", 2, "cblas_sgemm", 0.7)),
    ("ring", 1, rank_faults.Fault("stop", 1, "MPI_Isend", 0.55)),
    ("ring", 2, rank_faults.Fault("cut", 1, "MPI_Isend", 0.65)),
    ("ps", 1, rank_faults.Fault("kill", 0, "rename", 0.5)),
    ("ps 2 servers", 1, rank_faults.Fault("stop", 3, "MPI_Isend", 0.5)),
    ("ps async", 2, rank_faults.Fault("kill", 1, "MPI_Irecv", 0.5)),
    # One that asks for the rows of its host: who waits for it there knows more than the other host.
    ("hybrid", 2, rank_faults.Fault("stop", 0, "MPI_Irecv", 0.1416)),
]


def test_each_strategy(tmp_path):
    """All at once, as most of the time is waiting; the deadline is beyond what a busy machine takes."""
    campaign = Campaign(tmp_path, deadline=30)

    def one(number):
        name, hosts, fault = FAULTS[number]
        return campaign.fault(rank_faults.STRATEGIES[name], hosts, fault, f"{number}")

    with concurrent.futures.ThreadPoolExecutor(len(FAULTS)) as pool:
        broken = {FAULTS[number]: text for number, text in enumerate(pool.map(one, range(len(FAULTS)))) if text}
    assert not broken, broken
    happened = {key: len(seconds) for key, seconds in campaign.happened.items()}
    assert happened == {(name, hosts, fault.kind): 1 for name, hosts, fault in FAULTS}, campaign.missed


def nothing_holds(*_):
    raise Broken("torn")


def test_what_breaks_is_told(tmp_path, capsys, monkeypatch):
    """With its seed, and what was there stays; the same seed is the same fault."""
    campaign = Campaign(tmp_path)
    calls = campaign.bench.calls("single")
    drawn = [rank_faults.draw(random.Random(14), campaign.strategy(14), calls) for _ in range(2)]
    assert drawn[0] == drawn[1] and campaign.strategy(14).name == "single"
    monkeypatch.setattr(rank_faults, "checkpoints_hold", nothing_holds)
    campaign.run([14], 1)
    campaign.table()
    told = capsys.readouterr().out
    assert campaign.broken == [14] and (campaign.top / "14/said").exists()
    assert f"BROKEN seed 14: single on 1 host: {drawn[0][1]}\ntorn\n" in told and "make rank-faults SEED=14" in told
    assert "0 faults held, 0 did not happen, 1 broke something: seeds 14" in told


HURRIED = ("mpirun noticed that process rank 2 with PID 0 on node b exited on signal 9 (Killed).\n"
           "trainer: rank {} on host {}: mpirun ends the ranks; this one waited 2.3 s at step 2 for rank 1 on host a, for x")


@pytest.mark.parametrize("said,holds", [
    ("trainer: rank 0 on host a: waited 9 s at step 5 for rank 2 on host a, for tensors x .. y; ending all ranks", True),
    ("trainer: rank 0 on host a: waited 9 s at step 5 for rank 1 on host a, for tensors x .. y; ending all ranks", False),
    ("trainer: rank 0 on host a: waited 9 s for ranks 1, 2 on host a to end MPI; ending all ranks", False),
    ("trainer: rank 0 on host a: waited 9 s for rank 2 on host a to end MPI; ending all ranks\n"
     "trainer: rank 1 on host a: mpirun ends the ranks, since rank 0 on host a ended; this one waited 2.3 s at step 2 for "
     "rank 0 on host a, for tensors conv1/weights", True),
    ("trainer: rank 0 on host a: waited 9 s for rank 2 on host a to end MPI; ending all ranks\n"
     "trainer: rank 2 on host a: mpirun ends the ranks; this one waited 2.3 s at step 2 for rank 1 on host a, for x", False),
    ("mpirun noticed that process rank 2 with PID 0 on node a exited on signal 9 (Killed).", True),
    ("prterun noticed that process rank 2 with PID 0 on node a exited on\nsignal 9 (Killed).", True),  # Open MPI 5
    ("step: 7, loss: 2", False)])
def test_blame(said, holds):
    """Of rank 2 that was stopped."""
    fault = rank_faults.Fault("stop", 2, "rename", 0.5)
    try:
        rank_faults.blames(rank_faults.STRATEGIES["mpi shared"], 1, fault, said)
    except Broken:
        assert not holds
    else:
        assert holds


def test_blame_from_afar():
    """Of rank 2 that was killed on host b: whom a rank of host a waited for when mpirun ended it, is no blame."""
    fault = rank_faults.Fault("kill", 2, "rename", 0.5)
    rank_faults.blames(rank_faults.STRATEGIES["ring"], 2, fault, HURRIED.format(0, "a"))
    with pytest.raises(Broken, match="another than rank 2 is named"):
        rank_faults.blames(rank_faults.STRATEGIES["ring"], 2, fault, HURRIED.format(3, "b"))
