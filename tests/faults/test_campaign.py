"""The fault campaign of tests/campaign: that its faults happen where they are said to, and can be had again; what it
found."""
import errno
import os
import pathlib
import re
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "campaign"))

from campaign import Campaign  # noqa: E402  where it is, is known now
from injected import Broken, Fault, Place  # noqa: E402
from kills import Kills  # noqa: E402


@pytest.fixture(scope="module")
def campaign(tmp_path_factory):
    return Campaign(BUILD, tmp_path_factory.mktemp("campaign"))


@pytest.mark.parametrize("fault, status, said, left", [
    (Fault("kill", 1, 9, match="fsync "), -9, "", ["merged/.eventlog."]),
    (Fault("ENOSPC", 1, errno.ENOSPC, match="write "), 2, "No space left", []),
    (Fault("EIO", 1, errno.EIO, match="fsync "), 2, "Input/output error", []),
    (Fault("short", 1, times=1 << 30, match="write "), 0, "", ["merged/"]),
    (Fault("stop", 1, 19, match="write "), 0, "", ["merged/"]),
    (Fault("gone", 1, directory="out", match="write "), 2, "No such file", []),
], ids=lambda value: value.kind if isinstance(value, Fault) else None)
def test_faults_happen(campaign, tmp_path, fault, status, said, left):
    job, place = campaign.job("eventlog merge"), Place(tmp_path / "place", campaign.injector)
    job.prepare(place)
    place.runs = 0
    outcome = job.run(place, fault)
    assert outcome.status == status and said in outcome.said
    assert outcome.fired.startswith(f"{fault.match}{place.work}/out/merged/.eventlog.")
    there = [name for name in place.names() if name.startswith("out/merged/")]
    assert len(there) == len(left) and all(name.startswith(f"out/{begin}") for name, begin in zip(there, left))


@pytest.mark.parametrize("name, fault", [
    ("evaluator", Fault("short", 1, times=1 << 30, match="eval/.points")),
    ("evaluator", Fault("short", 1, times=1 << 30, match="eval/evaluator.lock")),
    ("trainer single", Fault("segfault", 3, 11, match="/ckpt/training.json.tmp.")),
    ("trainer mpi", Fault("kill", 3, 9, rank="0", match="/ckpt/checkpoint.tmp.")),
    ("eventlog tail -f", Fault("EIO", 1, errno.EIO, 1 << 30, match="read /")),
    *[("eventlog tail -f", Fault("EIO", call, errno.EIO, 6, match="pread /")) for call in range(1, 7)],
    ("eventlog merge tar", Fault("EIO", 2, errno.EIO, match="read ")),
    ("eventlog merge tar", Fault("terminate", 1, 15, match="fsync ")),
    ("eventlog rename-tag", Fault("terminate", 3, 15, match="fsync ")),
    ("eventlog repair", Fault("interrupt", 1, 2, match="fsync ")),
    ("eventlog repair", Fault("kill", 1, 9, match="rename /")),
    ("eventlog merge", Fault("EMFILE", 1, errno.EMFILE, match="in/run1/")),
    ("checkpoint convert", Fault("terminate", 2, 15, match="write ")),
    ("checkpoint convert back", Fault("terminate", 2, 15, match="fsync ")),
    ("checkpoint convert npy", Fault("interrupt", 3, 2, match="write ")),
], ids=lambda value: str(value))
def test_found(campaign, name, fault):
    """What the campaign has found once."""
    broken, happened = campaign.faults(campaign.job(name), [fault], "found")
    assert not broken and happened == [fault.kind], broken or happened


def test_replaced_while_the_last_step_is_saved(campaign):
    """From before the files of the checkpoint until after the state file, at each call that names the latter."""
    for call in range(22, 60):
        fault = Fault("replaced", call, directory="ckpt", match="/ckpt/checkpoint")
        broken, happened = campaign.faults(campaign.job("trainer single"), [fault], "replaced")
        assert not broken, broken
        if not happened:  # the last call was before
            break
        assert happened == [fault.kind]
    assert 28 < call < 59


@pytest.mark.parametrize("kind", ["moved", "replaced", "gone"])
@pytest.mark.parametrize("before, match", [
    ([], "eval/work.json"), ([Fault("kill", 150, 9)], "eval/.points"), ([Fault("kill", 150, 9)], "write /"),
    ([Fault("kill", 150, 9)], "fsync /")], ids=["work", "points", "write", "fsync"])
def test_eval_directory_goes_between_a_look_and_a_write(campaign, kind, before, match):
    """Also after the last look, and also where an earlier process has points in it."""
    times = 0
    for call in range(1, 7):
        faults = [*before, Fault(kind, call, directory="eval", match=match)]
        broken, happened = campaign.faults(campaign.job("evaluator --exec"), faults, f"{kind} {call}")
        assert not broken, broken
        times += happened == [fault.kind for fault in faults]
    assert times


def test_descriptors_run_out_at_the_start(campaign):
    """At each of the first calls of open(): also where training.json can be written, but its directory not be synced."""
    for call in range(1, 12):
        broken, happened = campaign.faults(campaign.job("trainer single"), [Fault("EMFILE", call, errno.EMFILE, match="open /")],
                                           "start")
        assert not broken and happened == ["EMFILE"], broken or happened


def test_index_that_could_not_be_read_once(campaign, tmp_path):
    """Of a checkpoint that has been scored: that stays so."""
    job, place = campaign.job("evaluator"), Place(tmp_path / "place", campaign.injector)
    job.prepare(place)
    assert job.run(place).status == 0
    fault = Fault("EIO", 1, errno.EIO, times=1 << 30, match="ckpt/model.ckpt-300.index")
    unread = place.run(job.command(place, "--once"), "evaluator", fault)
    assert unread.status == 0 and "trying again" in unread.said and "5 done, 0 failed" in unread.said
    assert [r["status"] for r in job.ledger(place)] == ["done"] * 5


def test_campaign(tmp_path):
    """A part of `make faults`: so many faults, each with its own seed."""
    campaign = Campaign(BUILD, tmp_path)
    campaign.run(110, 100, 0, 2)
    assert not campaign.broken and campaign.happened.total() > 60


def test_kills(tmp_path):
    """A part of `make kills`."""
    kills = Kills(BUILD, tmp_path)
    kills.run(80, 1, 2)
    assert not kills.broken and kills.killed >= 80


def torn(*_):
    raise Broken("torn")


def test_what_breaks_is_told(tmp_path, capsys, monkeypatch):
    """With its seed, and what was there stays; the same seed is the same fault."""
    told = []
    for number in range(2):
        campaign = Campaign(BUILD, tmp_path, "eventlog merge")
        monkeypatch.setattr(type(campaign.job("eventlog merge")), "check", torn)
        campaign.run(7, 1, 0, 1)
        told.append(capsys.readouterr().out.replace(str(campaign.top), "TOP"))
        assert campaign.broken == [7] and (campaign.top / "7/work/in").is_dir() and (campaign.top / "7/1.said").exists()
    assert re.sub(r"[.]\d+", "", told[0]) == re.sub(r"[.]\d+", "", told[1])
    assert "BROKEN seed 7: eventlog merge" in told[0] and "torn" in told[0] and "make faults SEED=7" in told[0]
