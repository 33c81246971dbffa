"""SIGINT and SIGTERM to what started the ranks, once and twice, in steps of milliseconds and of seconds: nothing that was
trained is lost, training.json says so, and what is resumed has the bits of a training that was never interrupted.
"""
import functools
import json
import os
import pathlib
import re
import signal
import tempfile

import pytest

import ranks
from interposed import HELD_SYNC, NO_ALARM, SLOW_DISK, SLOW_PRODUCTS, interposed
from waiting import DEADLINE, wait_for

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--seed", "3"]
HOWS = {"single": (0, []), "mirrored": (0, ["--run-option", "mirrored", "--threads", "2"]),
        "mpi": (2, ["--run-option", "mpi"]),
        "messages": (3, ["--run-option", "mpi", "--transport", "mpi"]),
        "ps": (4, ["--run-option", "ps", "--servers", "2"]), "async": (3, ["--run-option", "ps", "--async"])}
# A step of 5 seconds is one of many short pauses: a slice of a few images takes milliseconds all the same.
LENGTHS = {"20ms": (64, 0), "5s": (736, 2000)}
NEVER = 10**9


def send(process, number):
    """Sends a signal, and returns when its handler has begun: a second one of the kind would fall into one with it."""
    def handled():
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return True
        pending = [int(x, 16) for x in re.findall(r"^(?:Sig|Shd)Pnd:\s+(\w+)", status, re.M)]
        return not any(x >> (number - 1) & 1 for x in pending)

    if process.poll() is None:
        process.send_signal(number)
        wait_for(handled, f"signal {number} to be taken")


def logged(path):
    """The step of the newest line, 0 without one."""
    return max((int(x) for x in re.findall(r"^step: (\d+),", path.read_text(errors="replace"), re.M)), default=0)


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    return interposed(tmp_path_factory.mktemp("slow"), "slow_products", SLOW_PRODUCTS)["LD_PRELOAD"]


@pytest.fixture(scope="module")
def patient(tmp_path_factory):
    """For two signals: a busy machine may take longer to save than the second that the second one leaves."""
    return interposed(tmp_path_factory.mktemp("patient"), "no_alarm", NO_ALARM)["LD_PRELOAD"]


def start(how, length, directory, said, *preloaded):
    count, words = HOWS[how]
    batch, microseconds = LENGTHS[length]
    return ranks.start(count, *LENET, *words, "--batch-size", batch, "--max-steps", NEVER, "--log-every", 1,
                       "--checkpoint-dir", directory, said=said, LD_PRELOAD=":".join(preloaded),
                       SLOW_MICROSECONDS=str(microseconds))


@functools.cache
def straight(how, length, steps):
    """What a training has that was never stopped."""
    count, words = HOWS[how]
    with tempfile.TemporaryDirectory() as directory:
        ranks.train(count, *LENET, *words, "--batch-size", LENGTHS[length][0], "--max-steps", steps, "--quiet",
                    "--checkpoint-dir", directory)
        return ranks.variables(pathlib.Path(directory) / f"model.ckpt-{steps}")


def same_as_straight(how, length, directory):
    """Resumed for two more steps, without the pauses."""
    count, words = HOWS[how]
    steps = ranks.training_json(directory)["global_step"] + 2
    ranks.train(count, *LENET, *words, "--batch-size", LENGTHS[length][0], "--max-steps", steps, "--quiet",
                "--checkpoint-dir", directory)
    assert ranks.training_json(directory)["state"] == "finished"
    if how != "async":  # whose pushes come in another order each time; of two workers, all others have the bits of mpi
        wanted = straight("mpi" if how in ("ps", "mirrored") else how, length, steps)
        assert ranks.variables(directory / f"model.ckpt-{steps}") == wanted


@pytest.mark.parametrize("how,length,number,times", [
    pytest.param(how, length, number, times, id=f"{how}-{length}-{number.name}-{times}")
    for how in HOWS for length in LENGTHS for number in (signal.SIGINT, signal.SIGTERM) for times in (1, 2)
    if how not in ("messages", "mirrored") or (length == "5s" and times == 1)
    if how != "mirrored" or number == signal.SIGTERM])
def test_nothing_is_lost(how, length, number, times, slow, patient, tmp_path):
    count = HOWS[how][0]
    directory, log = tmp_path / "ckpt", tmp_path / "log"
    with open(log, "wb") as said:
        process = start(how, length, directory, said, slow, *[patient] * (times == 2))
    ranks.wait_for(process, lambda: logged(log) >= 1, "the first step")
    pids = list(ranks.rank_processes(process).values()) if count else [process.pid]
    assert len(pids) == max(count, 1)
    for _ in range(times):
        send(process, number)
    process.communicate(timeout=DEADLINE)
    state = ranks.last_state(directory) if count else ranks.training_json(directory)  # mpirun may end before the ranks
    assert state["state"] == "stopped", log.read_text()
    if not count:
        assert process.returncode == 128 + number and state["signal"] == number.name
    elif times == 1 and ranks.open_mpi() in (4, 5):  # it passes on any signal as SIGTERM
        assert state["signal"] == "SIGTERM"
    else:  # mpirun ends at once, or, on a busy machine, the first signal was passed on before the second one came
        assert "mpirun" in state["reason"] or state.get("signal") in ("SIGTERM", number.name)
    if count and ranks.open_mpi():
        assert process.returncode == 1
    stopped = state["global_step"]
    assert f'"model.ckpt-{stopped}"' in ranks.state_file(directory).splitlines()[0]
    # Nothing that was trained is lost. Of a mpirun that is gone the last lines are, and of other workers nobody hears.
    heard = how != "async" and times == 1 and (not count or ranks.open_mpi() < 5)
    assert stopped == logged(log) if heard else stopped >= logged(log)
    if length == "5s" and how != "async":
        assert stopped <= 2, "it did not leave its step"
    wait_for(lambda: not any(map(ranks.alive, pids)), "the ranks to be gone")
    same_as_straight(how, length, directory)


@pytest.mark.parametrize("times", [2, 3])
def test_a_disk_that_hangs(times, tmp_path):
    """The first signal waits for the disk, the second for a second, the third for nothing."""
    directory, log, hold, begun = tmp_path / "ckpt", tmp_path / "log", tmp_path / "hold", tmp_path / "begun"
    library = interposed(tmp_path, "held_sync", HELD_SYNC)["LD_PRELOAD"]
    if times == 3:
        library += ":" + interposed(tmp_path, "no_alarm", NO_ALARM)["LD_PRELOAD"]
    with open(log, "wb") as said:
        process = ranks.start(0, *LENET, "--batch-size", LENGTHS["20ms"][0], "--max-steps", NEVER, "--log-every", 1,
                              "--checkpoint-dir", directory, said=said, LD_PRELOAD=library, HOLD_NAME="model.ckpt-",
                              HOLD_WHILE=str(hold), HOLD_SAYS=str(begun))
    # The first checkpoint must be there: held back, it would be taken for the last one, before the signal is seen.
    ranks.wait_for(process, lambda: logged(log) >= 1 and (directory / "checkpoint").exists(), "the first step")
    hold.touch()
    send(process, signal.SIGTERM)
    ranks.wait_for(process, begun.exists, "the checkpoint to be saved")
    for _ in range(times - 1):
        assert process.poll() is None
        send(process, signal.SIGTERM)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGTERM
    assert ranks.training_json(directory)["state"] == "running"  # nothing was saved, and nothing says so
    hold.unlink()
    assert ranks.last_state(directory)["state"] == "stopped"
    same_as_straight("single", "20ms", directory)


@pytest.mark.parametrize("how", ["mpi", "ps"])
def test_mpirun_is_killed(how, slow, tmp_path):
    """The ranks see that the one who started them is gone, and save."""
    directory, log = tmp_path / "ckpt", tmp_path / "log"
    with open(log, "wb") as said:
        process = start(how, "5s", directory, said, slow)
    ranks.wait_for(process, lambda: logged(log) >= 1, "the first step")
    process.kill()
    process.communicate(timeout=DEADLINE)
    wait_for(lambda: ranks.training_json(directory)["state"] != "running", "the ranks to end")
    state = ranks.training_json(directory)
    assert state["state"] == "stopped" and "mpirun" in state["reason"] and "signal" not in state
    same_as_straight(how, "5s", directory)


@pytest.mark.parametrize("how", ["mpi", "ps"])
def test_mpirun_is_killed_and_the_disk_is_slow(how, tmp_path):
    """Open MPI's own thread ends a rank half a second after mpirun is gone, in the middle of its save."""
    directory, log = tmp_path / "ckpt", tmp_path / "log"
    slow = {"LD_PRELOAD": interposed(tmp_path, "slow_disk", SLOW_DISK)["LD_PRELOAD"]}
    with open(log, "wb") as said:
        process = ranks.start(HOWS[how][0], *LENET, *HOWS[how][1], "--batch-size", LENGTHS["20ms"][0], "--max-steps", NEVER,
                              "--log-every", 1, "--checkpoint-dir", directory, said=said, **slow)
    ranks.wait_for(process, lambda: logged(log) >= 1, "the first step")
    pids = list(ranks.rank_processes(process).values())
    process.kill()
    process.communicate(timeout=DEADLINE)
    wait_for(lambda: ranks.training_json(directory)["state"] != "running", "the ranks to end")
    assert ranks.training_json(directory)["state"] == "stopped"
    wait_for(lambda: not any(map(ranks.alive, pids)), "the ranks to be gone")
    same_as_straight(how, "20ms", directory)


@pytest.mark.parametrize("how", ["mpi", "messages", "ps", "async"])
def test_one_rank_alone(how, slow, tmp_path):
    """One rank gets the signal in the middle of a long step; the others end theirs, and nobody applies it."""
    directory, log = tmp_path / "ckpt", tmp_path / "log"
    with open(log, "wb") as said:
        process = start(how, "5s", directory, said, slow)
    ranks.wait_for(process, lambda: logged(log) >= 1, "the first step")
    os.kill(ranks.rank_processes(process)[1], signal.SIGTERM)
    process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + signal.SIGTERM, log.read_text()
    state = ranks.training_json(directory)
    assert state["state"] == "stopped" and state["signal"] == "SIGTERM"
    if how != "async":
        assert state["global_step"] == logged(log)
    same_as_straight(how, "5s", directory)


ENDS = {"term": signal.SIGTERM, "int": signal.SIGINT, "hup": signal.SIGHUP, "kill": signal.SIGKILL, "rank-0": 0, "rank-1": 1}


@pytest.mark.parametrize("while_saving", [False, True], ids=["trains", "saves"])
@pytest.mark.parametrize("how", ["mpi", "ps"])
@pytest.mark.parametrize("end", ENDS)
def test_the_last_update_is_saved(how, end, while_saving, tmp_path):
    """Whatever ends the ranks, and however little time it leaves: also while a save takes as long as all of them live."""
    directory, log, hold, begun = tmp_path / "ckpt", tmp_path / "log", tmp_path / "hold", tmp_path / "begun"
    library = interposed(tmp_path, "held_sync", HELD_SYNC)["LD_PRELOAD"]
    hold.touch()
    with open(log, "wb") as said:
        process = ranks.start(HOWS[how][0], *LENET, *HOWS[how][1], "--batch-size", LENGTHS["20ms"][0], "--max-steps", NEVER,
                              "--log-every", 1, "--checkpoint-dir", directory, "--save-checkpoint-steps", 5, said=said,
                              LD_PRELOAD=library, HOLD_NAME="model.ckpt-10.data" if while_saving else "no such file",
                              HOLD_WHILE=str(hold), HOLD_SAYS=str(begun))
    ranks.wait_for(process, begun.exists if while_saving else lambda: logged(log) >= 12, "the moment")
    pids = ranks.rank_processes(process)
    if end.startswith("rank"):
        os.kill(pids[ENDS[end]], signal.SIGKILL)
    else:
        process.send_signal(ENDS[end])
    wait_for(lambda: process.poll() is not None or not any(map(ranks.alive, pids.values())), "the ranks to end")
    hold.unlink()
    process.communicate(timeout=DEADLINE)
    state = ranks.last_state(directory)
    assert state["state"] == ("failed" if end.startswith("rank") else "stopped"), log.read_text()
    newest = int(re.search(r'"model\.ckpt-(\d+)"', ranks.state_file(directory))[1])
    if how == "ps" and end.startswith("rank"):  # the servers have the state, and end with the others
        assert newest >= (10 if while_saving else 5)
    else:
        assert newest == state["global_step"] >= logged(log)
    _, said = ranks.train(0, *LENET, "--batch-size", LENGTHS["20ms"][0], "--max-steps", 1, "--checkpoint-dir", directory)
    assert f"resuming from {directory}/model.ckpt-{newest}" in said


def test_the_next_training_waits(tmp_path):
    """It starts while what the killed one left is still being saved, says that it waits, and goes on from there."""
    directory, log, hold, begun = tmp_path / "ckpt", tmp_path / "log", tmp_path / "hold", tmp_path / "begun"
    library = interposed(tmp_path, "held_sync", HELD_SYNC)["LD_PRELOAD"]
    hold.touch()
    options = [*LENET, "--batch-size", 8, "--log-every", 1, "--checkpoint-dir", directory]
    with open(log, "wb") as said:
        first = ranks.start(0, *options, "--max-steps", NEVER, "--save-checkpoint-steps", 10, said=said, LD_PRELOAD=library,
                            HOLD_NAME="model.ckpt-10.data", HOLD_WHILE=str(hold), HOLD_SAYS=str(begun))
    ranks.wait_for(first, begun.exists, "the save of step 10")
    first.kill()
    first.communicate(timeout=DEADLINE)
    with open(tmp_path / "said", "wb") as said:
        second = ranks.start(0, *options, "--max-steps", 11, said=said)
    ranks.wait_for(second, lambda: "waiting until the last state" in (tmp_path / "said").read_text(), "it to wait")
    assert second.poll() is None
    hold.unlink()
    second.communicate(timeout=DEADLINE)
    said = (tmp_path / "said").read_text()
    assert second.returncode == 0, said
    assert int(re.search(r"^resuming from .*/model\.ckpt-(\d+)$", said, re.M)[1]) >= 10


def test_the_saver_is_killed(tmp_path):
    """The training notices, says so, and saves itself from then on."""
    directory, log = tmp_path / "ckpt", tmp_path / "log"
    with open(log, "wb") as said:
        process = ranks.start(2, *LENET, "--run-option", "mpi", "--batch-size", 8, "--max-steps", NEVER, "--log-every", 1,
                              "--checkpoint-dir", directory, "--save-checkpoint-steps", 5, said=said)
    ranks.wait_for(process, lambda: logged(log) >= 1, "the first step")
    saver, = [pid for pid in ranks.working_in(directory) if ranks.name_of(pid) == "trainer: saver"]
    os.kill(saver, signal.SIGKILL)
    ranks.wait_for(process, lambda: "was killed by signal 9" in log.read_text(), "it to notice")
    step = logged(log)
    ranks.wait_for(process, lambda: logged(log) >= step + 20, "some more steps")
    # Not by a signal to mpirun: Open MPI 5 and 6 kill ranks soon after it, and without its saver this one has to live.
    (directory / "stop.json").write_text(json.dumps({"reason": "enough"}))
    process.communicate(timeout=DEADLINE)
    state = ranks.last_state(directory)
    assert state["state"] == "finished" and f'"model.ckpt-{state["global_step"]}"' in ranks.state_file(directory)
    assert log.read_text().count("was killed by signal 9") == 1
