"""Trainings that are stopped, killed and continued: the same bits as one that never was; and no hang without a name."""
import os
import pathlib
import re
import signal
import socket
import time

import pytest

import ranks
from interposed import BROKEN_CONNECTION, NAN_LOSS, interposed
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist"]
HOWS = {"single": (0, [], 1), "mpi-2": (2, ["--run-option", "mpi"], 2), "mpi-3": (3, ["--run-option", "mpi"], 3),
        "ps": (4, ["--run-option", "ps", "--servers", "2"], 2)}
NEVER = 10**9


def saved(directory, step):
    """The checkpoint of at least this step that the state file names newest, or None."""
    try:
        name = ranks.state_file(directory).split('"')[1]
    except (OSError, IndexError):
        return None
    return name if int(name.rsplit("-", 1)[1]) >= step else None


def spent(pid):
    """Seconds of processor time of all its threads, and how often they went to sleep; None: it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        pauses = sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.M)[1])
                     for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"))
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), pauses


def seconds_a_pause(before, after):
    """Of processor time; one that looks and sleeps takes some 30 us, also where it is rarely its turn, one that spins has
    no pauses."""
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def lines_of(said):
    return [line for line in said.splitlines() if line.startswith("trainer: ")]


@pytest.mark.parametrize("how", HOWS)
def test_killed_and_resumed_is_the_same_bits(how, tmp_path):
    count, options, _ = HOWS[how]
    model = [*LENET, "--batch-size", 8, "--seed", 3, "--quiet", *options]
    ranks.train(count, *model, "--max-steps", 20, "--checkpoint-dir", tmp_path / "straight")
    process = ranks.start(count, *model, "--max-steps", NEVER, "--checkpoint-dir", tmp_path / "cut",
                          "--save-checkpoint-steps", 11, "--keep", 0)
    ranks.wait_for(process, lambda: saved(tmp_path / "cut", 11), "step 11")
    pids = ranks.rank_processes(process) if count else {0: process.pid}
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=DEADLINE)
    # A new seed in the command would be an error of the test's: the checkpoint's own is to be used.
    resumed = [word for word in model if word not in ("--seed", 3)]
    ranks.train(count, *resumed, "--max-steps", 20, "--checkpoint-dir", tmp_path / "cut", "--resume", 11)
    assert (ranks.variables(tmp_path / "cut" / "model.ckpt-20") ==
            ranks.variables(tmp_path / "straight" / "model.ckpt-20"))


@pytest.mark.parametrize("how,number", [(how, number) for how in HOWS for number in (signal.SIGTERM, signal.SIGINT)])
def test_signals(how, number, tmp_path):
    """SIGUSR1 to the last rank: a checkpoint, and on. SIGTERM to the last rank alone: all end in order, resume is
    exact, and the status is the signal's, mpirun's too."""
    count, options, _ = HOWS[how]
    model = [*LENET, "--batch-size", 8, *options]
    process = ranks.start(count, *model, "--max-steps", NEVER, "--checkpoint-dir", tmp_path, "--log-every", 1)
    ranks.wait_for(process, lambda: saved(tmp_path, 0), "the first checkpoint")
    last = ranks.rank_processes(process)[count - 1] if count else process.pid
    if how != "ps":  # a server has no use for SIGUSR1: it is asked of workers
        os.kill(last, signal.SIGUSR1)
        ranks.wait_for(process, lambda: saved(tmp_path, 1), "the checkpoint asked for")
        assert ranks.training_json(tmp_path)["state"] == "running"
    os.kill(last, number)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 128 + number, said
    state = ranks.training_json(tmp_path)
    assert state["state"] == "stopped" and state["signal"] == number.name and number.name in state["reason"]
    assert state["max_steps"] == NEVER and state["world_size"] == max(count, 1)
    stopped = state["global_step"]
    assert saved(tmp_path, stopped) == f"model.ckpt-{stopped}"
    assert f"stopped at step {stopped}" in said
    ranks.train(count, *model, "--max-steps", stopped + 3, "--quiet", "--checkpoint-dir", tmp_path)
    assert ranks.training_json(tmp_path)["state"] == "finished"
    ranks.train(count, *model, "--max-steps", stopped + 3, "--quiet", "--checkpoint-dir", tmp_path / "straight")
    assert (ranks.variables(tmp_path / f"model.ckpt-{stopped + 3}") ==
            ranks.variables(tmp_path / "straight" / f"model.ckpt-{stopped + 3}"))
    _, said = ranks.train(count, *model, "--max-steps", stopped, "--checkpoint-dir", tmp_path)
    assert "nothing is left to train" in said


@pytest.mark.parametrize("options,stopped,waiting", [
    (["--run-option", "mpi"], 2, (0, 1)), (["--run-option", "mpi", "--transport", "mpi"], 1, (0, 2)),
    (["--run-option", "ps"], 1, (2,)), (["--run-option", "ps"], 2, (0, 1))],
    ids=["shared", "messages", "ps-worker", "ps-server"])
def test_deadline(options, stopped, waiting, tmp_path):
    """A rank that stops answering: the others say so in one line, having slept meanwhile, and all end. The deadline holds
    while MPI starts, too, and is beyond what that takes on a busy machine."""
    process = ranks.start(3, *LENET, *options, "--batch-size", 8, "--max-steps", NEVER, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 20, "--deadline", 30, "--quiet")
    ranks.wait_for(process, lambda: saved(tmp_path, 20), "step 20")
    pids = ranks.rank_processes(process)
    os.kill(pids[stopped], signal.SIGSTOP)
    begun, used = time.monotonic(), [spent(pids[waiting[0]])]
    while process.poll() is None:
        assert time.monotonic() < begun + DEADLINE, "the ranks hang"
        used.append(spent(pids[waiting[0]]) or used[-1])
        time.sleep(0.01)
    _, said = process.communicate()
    assert process.returncode != 0
    lines = lines_of(said)
    # Another rank that waits may say so, too, on a busy machine, or for whom it waited when mpirun ended it.
    assert lines and all("waited 30 s at step" in line or "mpirun ends the ranks" in line for line in lines), said
    assert "waited 30 s at step" in lines[0]
    speaker = int(re.search(r": rank (\d+) on host ", lines[0]).group(1))
    assert speaker in waiting  # the lowest of them, unless the machine did not run it for a while
    late = {int(r) for r in re.search(r" for ranks? (\d+(?:, \d+)*)", lines[0]).group(1).split(", ")}
    # With messages the stopped rank may have answered one of the others and not the third, which is then late as well.
    assert late == {stopped} or ("--transport" in options and late == {0, 1, 2} - {speaker})
    assert "/weights" in lines[0] or "/biases" in lines[0]
    assert seconds_a_pause(used[0], used[-1]) < 0.001, "a waiting rank burns its core"
    newest = saved(tmp_path, 20)
    assert ranks.variables(tmp_path / newest)["global_step"]


def test_a_broken_connection(tmp_path):
    """A rank's death that another one sees before mpirun does: Open MPI ends all ranks at once, by its own means. What was
    trained is saved all the same."""
    when = tmp_path / "when"
    environment = interposed(tmp_path, "broken", BROKEN_CONNECTION, DEATH_WHEN=when)
    process = ranks.start(3, *LENET, "--run-option", "mpi", "--transport", "mpi", "--batch-size", 8, "--max-steps", NEVER,
                          "--checkpoint-dir", tmp_path, "--save-checkpoint-steps", 20, "--quiet", **environment,
                          OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo")
    ranks.wait_for(process, lambda: saved(tmp_path, 20), "step 20")
    (tmp_path / "next").write_text(str(ranks.rank_processes(process)[2]))
    os.rename(tmp_path / "next", when)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode != 0
    assert re.search("(writev|sendmsg) failed: Connection reset by peer", said), said
    state = ranks.last_state(tmp_path)
    assert state["state"] in ("failed", "stopped") and saved(tmp_path, 20) == f"model.ckpt-{state['global_step']}"


def switches(pid):
    """How often the process has slept, and how often it went on being runnable when another took its core."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return [int(re.search(rf"^{kind}_ctxt_switches:\s+(\d+)", text, re.M).group(1)) for kind in ("voluntary", "nonvoluntary")]


@pytest.mark.parametrize("crowded", [False, True], ids=["", "crowded"])
def test_idle_server_sleeps(crowded, tmp_path):
    """Also with more ranks than cores, where Open MPI on its own would yield instead: then a server, which needs almost no
    time, has to wait for a core behind workers that compute."""
    cifar = ranks.write_cifar(tmp_path / "data")
    workers = len(os.sched_getaffinity(0)) if crowded else 1
    process = ranks.start(workers + 1, "--model", "resnet32", "--data", "cifar10", "--data-dir", cifar, "--run-option", "ps",
                          "--batch-size", 64, "--max-steps", NEVER, "--quiet")
    pids = ranks.wait_for(process, lambda: len(found := ranks.rank_processes(process)) == workers + 1 and found, "all ranks")
    begun, turns = {}, []

    def worked():
        now = {rank: spent(pid) for rank, pid in pids.items()}
        if not begun and now[0][0] > 1:  # MPI's own start-up is over
            begun.update(now)
            turns.append(switches(pids[workers]))
        return begun and now[0][0] > begun[0][0] + 6 and now  # long beside what is left of the server's start-up
    now = ranks.wait_for(process, worked, "six seconds of work")
    turns.append(switches(pids[workers]))
    process.terminate()
    process.communicate(timeout=DEADLINE)
    slept, displaced = (after - before for before, after in zip(*turns))
    assert seconds_a_pause(begun[workers], now[workers]) < 0.001
    assert displaced < slept / 4 or (crowded and ranks.open_mpi() >= 5), f"the server slept {slept} times, and was displaced {displaced} times"



@pytest.mark.parametrize("how", [["mpi"], ["ps", "--servers", "1"]])
def test_state_after_another_rank_died(tmp_path, how):
    """mpirun ends the others, and rank 0 waits for the dead one: training.json says failed all the same."""
    process = ranks.start(3, *LENET, "--run-option", *how, "--max-steps", NEVER, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 5, "--quiet")
    ranks.wait_for(process, lambda: saved(tmp_path, 10), "a checkpoint")
    assert ranks.training_json(tmp_path)["state"] == "running"
    os.kill(ranks.rank_processes(process)[1], signal.SIGKILL)
    process.communicate(timeout=DEADLINE)
    state = ranks.last_state(tmp_path)
    assert state["state"] == "failed" and state["global_step"] >= 10 and state["max_steps"] == NEVER


def test_second_signal_ends_at_once(tmp_path):
    process = ranks.start(2, *LENET, "--run-option", "mpi", "--max-steps", NEVER, "--checkpoint-dir", tmp_path,
                          "--quiet")
    ranks.wait_for(process, lambda: saved(tmp_path, 0), "the first checkpoint")
    pids = ranks.rank_processes(process)
    os.kill(pids[1], signal.SIGSTOP)  # so that rank 0 cannot come to the end of its step
    os.kill(pids[0], signal.SIGTERM)
    os.kill(pids[0], signal.SIGINT)  # not the same once more: two of one kind may arrive as one
    process.communicate(timeout=DEADLINE)
    assert process.returncode != 0


def test_bad_loss_stops(tmp_path):
    for count, options in ((0, []), (2, ["--run-option", "mpi"]), (3, ["--run-option", "ps"]),
                           (3, ["--run-option", "ps", "--async"])):
        directory = tmp_path / "-".join(["d", *options])
        _, said = ranks.train(count, *LENET, *options, "--optimizer", "sgd", "--learning-rate", "1e6", "--max-steps",
                              200, "--batch-size", 16, "--checkpoint-dir", directory, "--quiet", status=1)
        lines = lines_of(said)
        # Ranks whose own loss is not finite may name themselves, if others' still are.
        common = [line for line in lines if not re.match("trainer: rank [0-2] on host .*: the loss of its batch is ", line)]
        assert len(common) == 1 and "the loss is not finite at step" in common[0], said
        assert ranks.training_json(directory)["state"] == "failed"
        assert saved(directory, 0) == "model.ckpt-0"


@pytest.mark.parametrize("options", [["mpi"], ["ps"], ["ps", "--async"]], ids=["mpi", "ps", "async"])
def test_bad_loss_of_one_rank(options, tmp_path):
    """The rank names itself and the step."""
    library = interposed(tmp_path, "nan_loss", NAN_LOSS)["LD_PRELOAD"]
    servers = options[0] == "ps"
    _, said = ranks.start(3 + servers, *LENET, "--run-option", *options, "--max-steps", 200, "--batch-size", 8, "--quiet",
                          NAN_RANK="2", NAN_CALL="17", LD_PRELOAD=library).communicate(timeout=DEADLINE)
    named = rf"trainer: rank 2 on host {socket.gethostname()}: the loss of its batch is -?nan at step (\d+), while "
    own = [match for line in lines_of(said) if (match := re.match(named, line))]
    common = re.findall(r"trainer: the loss is not finite at step (\d+) on some of the ranks; stopped", said)
    assert len(own) == len(common) == 1 and int(common[0]) < 200, said
    assert (own[0].group(1) == common[0] and len(lines_of(said)) == 2) or "--async" in options, said


@pytest.mark.parametrize("options", [["--run-option", "mpi"], ["--run-option", "mpi", "--transport", "mpi"],
                                     ["--run-option", "ps"]], ids=["shared", "messages", "ps"])
def test_rank_0_dies(options, tmp_path):
    """training.json does not stay at "running": its saver says what happened."""
    process = ranks.start(2, *LENET, *options, "--batch-size", 8, "--max-steps", NEVER, "--checkpoint-dir", tmp_path,
                          "--save-checkpoint-steps", 20, "--quiet")
    ranks.wait_for(process, lambda: saved(tmp_path, 20) and ranks.training_json(tmp_path)["global_step"] >= 20, "step 20")
    os.kill(ranks.rank_processes(process)[0], signal.SIGKILL)
    process.communicate(timeout=DEADLINE)
    state = ranks.last_state(tmp_path)
    assert (state["state"], state.get("reason")) == ("failed", "rank 0 died")
    assert state["global_step"] >= 20 and state["max_steps"] == NEVER
