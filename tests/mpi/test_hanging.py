"""A rank that hangs, stopped by a signal, in any phase of a run: all end, and one of them names it, its host and what it
was to do."""
import os
import pathlib
import re
import signal
import socket

import ranks
from interposed import HANGING, interposed
from waiting import DEADLINE

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8, "--quiet"]
MPI, PS, ASYNC = ["--run-option", "mpi"], ["--run-option", "ps"], ["--run-option", "ps", "--async"]
# Options, the rank that stops, the call in which it does and the how manieth; what the others wait for. Rank 0 renames
# training.json at the beginning and at the end; its saver, another process, renames the files of checkpoints.
PHASES = {
    "start": (MPI, 1, "MPI_Init_thread", 1, "to start MPI"),
    "first message": (MPI, 0, "MPI_Isend", 1, "to start MPI"),
    "first training.json": (MPI, 0, "rename", 1, "to write its first checkpoint and training.json"),
    "last training.json": (PS, 0, "rename", 2, "to save and close its files"),
    "end": (ASYNC, 1, "MPI_Finalize", 1, "to end MPI"),
}


def test_start_and_end(tmp_path):
    """All at once, as most of the time is waiting; the deadline is beyond what starting them takes."""
    library = interposed(tmp_path, "hanging", HANGING)["LD_PRELOAD"]
    processes = {
        name: ranks.start(2, *LENET, *options, "--max-steps", 2, "--checkpoint-dir", tmp_path / name, "--deadline", 60,
                          LD_PRELOAD=library, STOP_RANK=str(rank), STOP_CALL=call, STOP_AT=str(at))
        for name, (options, rank, call, at, _) in PHASES.items()}
    for name, (_, rank, _, _, doing) in PHASES.items():
        _, said = processes[name].communicate(timeout=DEADLINE)
        host = re.escape(socket.gethostname())
        line = rf"^trainer: rank \d on host {host}: waited 60 s for rank {rank} on host {host} {doing}; ending all ranks$"
        assert re.search(line, said, re.M), f"{name}: {said}"
        if name == "start":  # continued, to be ended, it does not blame those that waited for it
            assert "since" not in said, said
        assert processes[name].returncode != 0, name


def starting(process, count):
    """The ranks, once all of them start MPI. Rank 1 is stopped before it."""
    found = ranks.rank_processes(process)
    names = [path.read_text() for pid in found.values() for path in pathlib.Path(f"/proc/{pid}/task").glob("*/comm")]
    stopped = 1 in found and pathlib.Path(f"/proc/{found[1]}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    return found if stopped and names.count("MPI starts\n") == count else None


def before_mpi_starts(tmp_path, name):
    library = interposed(tmp_path, "hanging", HANGING)["LD_PRELOAD"]
    process = ranks.start(3, *LENET, *MPI, "--max-steps", 2, "--checkpoint-dir", tmp_path / name, LD_PRELOAD=library,
                          STOP_RANK="1", STOP_CALL="MPI_Init_thread", STOP_AT="1")
    return process, ranks.wait_for(process, lambda: starting(process, 3), "all ranks to start MPI")


def test_killed_at_the_start(tmp_path):
    """mpirun may not know who it was: one of the others says it, once."""
    process, found = before_mpi_starts(tmp_path, "killed")
    os.kill(found[1], signal.SIGKILL)
    _, said = process.communicate(timeout=DEADLINE)
    host = re.escape(socket.gethostname())
    line = rf"^trainer: rank [02] on host {host}: MPI cannot start since rank 1 on host {host} ended; mpirun ends all ranks$"
    assert len(re.findall(line, said, re.M)) == 1 and said.count("trainer:") == 1, said
    assert process.returncode != 0


def test_ended_at_the_start(tmp_path):
    """Who ends mpirun needs no explanation."""
    process, _ = before_mpi_starts(tmp_path, "ended")
    process.terminate()
    _, said = process.communicate(timeout=DEADLINE)
    assert "trainer:" not in said
    assert process.returncode != 0


# Options, the ranks and which of them stops; what is said. Asynchronous workers push on, and a server misses the one that does
# not. With bounded staleness servers wait for the decisions of server 0, so that no other one answers: who sees it stand
# names it alone. A server that has a part of the gradient's norm is missed by another server first: either, as it may have
# told one. If it stops with weights that it has not sent, no worker pushes, and server 0, which misses their tensors, sees
# who stands.
STEPS = {
    "asynchronous": ([*ASYNC, "--servers", 1], 3, 1, "2 on host HOST: waited 60 s at step N, as server 0, for rank 1 on host "
                                                     "HOST, for tensors "),
    "bounded": ([*ASYNC, "--servers", 2, "--staleness", 1], 4, 2, "[03] on host HOST: waited 60 s at step N(, as server 1,)? for rank "
                                                                 "2 on host HOST"),
    "clipped": ([*PS, "--servers", 3, "--clip-norm", 0.5], 5, 3, "[24] on host HOST: waited 60 s at step N, as server [02], "
                "for rank 3 on host HOST, for (the norm of the gradient|tensors .*); ending all ranks$"),
}


def without_last_push(directory):
    """Each of two workers makes one push. Worker 1 is stopped in it; worker 0 has made its own, and asks for the servers' state."""
    moment = {"MOMENT_RANK": "1", "MOMENT_CALL": "cblas_sgemm", "MOMENT_AT": "2", "MOMENT_DOES": "stop"}
    return ranks.start(4, *LENET, *ASYNC, "--servers", 2, "--max-steps", 2, "--checkpoint-dir", directory, "--deadline", 60,
                       LD_PRELOAD=str(ranks.BUILD / "tests/campaign/moment.so"), MOMENT_FIRED=str(directory) + "-fired", **moment)


def test_in_a_step(tmp_path):
    processes, last = {}, without_last_push(tmp_path / "last")
    for name, (options, count, rank, _) in STEPS.items():
        process = processes[name] = ranks.start(count, *LENET, *options, "--max-steps", 10**9, "--checkpoint-dir",
                                                tmp_path / name, "--save-checkpoint-steps", 20, "--deadline", 60)
        there = tmp_path / name
        ranks.wait_for(process, lambda there=there: ranks.training_json(there).get("global_step", 0) >= 20, "step 20")
        os.kill(ranks.rank_processes(process)[rank], signal.SIGSTOP)
    for name, (*_, line) in STEPS.items():
        _, said = processes[name].communicate(timeout=DEADLINE)
        pattern = line.replace("HOST", re.escape(socket.gethostname())).replace("step N", r"step \d+")
        assert re.search(f"^ ?trainer: rank {pattern}", said, re.M), said  # Open MPI 5 may put a blank before it
        assert processes[name].returncode != 0
        assert ranks.training_json(tmp_path / name)["state"] != "finished"
    _, said = last.communicate(timeout=DEADLINE)
    host = re.escape(socket.gethostname())
    assert re.findall("^trainer: (.*) at step", said, re.M)[:1] == [f"rank 2 on host {host}: waited 60 s"], said
    assert re.search(rf"^trainer: rank 2 .*, as server 0, for rank 1 on host {host}, for tensors", said, re.M), said


def test_waiting_at_the_end(tmp_path):
    """Rank 2 is stopped between its last two messages. Rank 0 has got the first and ends MPI, rank 1 waits for the second: only
    rank 2 is named. How many messages there are may differ by one from the run that counted them; then rank 0 waits, too."""
    words = [3, *LENET, *MPI, "--transport", "shared", "--max-steps", 2]
    library, counts = str(ranks.BUILD / "tests/campaign/moment.so"), tmp_path / "counts"
    counts.mkdir()
    whole = ranks.start(*words, "--checkpoint-dir", tmp_path / "whole", LD_PRELOAD=library, MOMENT_COUNTS=str(counts))
    _, said = whole.communicate(timeout=DEADLINE)
    assert whole.returncode == 0, said
    last = re.search(r"^MPI_Isend (\d+)$", (counts / "2").read_text(), re.M).group(1)
    process = ranks.start(*words, "--checkpoint-dir", tmp_path / "stopped", "--deadline", 60, LD_PRELOAD=library, MOMENT_RANK="2",
                          MOMENT_CALL="MPI_Isend", MOMENT_AT=last, MOMENT_DOES="stop", MOMENT_FIRED=str(tmp_path / "fired"))
    _, said = process.communicate(timeout=DEADLINE)
    assert re.findall(r"^trainer: rank 0 on host \S+: waited 60 s for (.*) on host \S+ to end(?: MPI)?;", said, re.M) == ["rank 2"], said
    assert process.returncode != 0
