"""Ranks that are killed, stopped or cut off at a moment: the strategies, one fault in one of them, and what must hold.

The hosts are namespaces (two_hosts.py), new for each training, so that what it leaves behind is seen: processes, and files in
the host's own /dev/shm, where MPI has its shared memory and its session. A moment is the call of a function in a rank, by
its number (moment.c); a training without a fault counts how many there are.
"""
import dataclasses
import functools
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import threading
import time

import ranks
import two_hosts
import waiting
from campaign_jobs import write_data
from injected import TEMPORARY, Broken, expect

STEPS, EVERY = 9, 2  # EVERY: steps from one checkpoint to the next
LIBRARY = ranks.BUILD / "tests/campaign/moment.so"
LENET, NEXT_WORD = ["--model", "lenet", "--data", "mnist"], ["--model", "next_word", "--data", "text"]
SAME = ["--reproducible", "--global-batch", 8]
LIMIT = 900  # seconds for a training that ends by itself, or by its deadline, on a busy machine


@dataclasses.dataclass(frozen=True)
class Strategy:
    name: str
    options: tuple
    ranks: int           # on one host; 0: without mpirun
    hosts: tuple = (1, 2)
    servers: int = 0
    model: tuple = tuple(LENET)
    ordered: bool = True  # two runs of it have the same bits; otherwise a run and another that follows its record
    spare: int = 0       # workers whose gradients an update can do without


def strategy(name, count, *options, **more):
    return Strategy(name, tuple(map(str, options)), count, **more)


STRATEGIES = {s.name: s for s in (
    strategy("single", 0, *SAME, hosts=(1,)),
    strategy("mirrored copied", 0, "--run-option", "mirrored", "--threads", 3, *SAME, hosts=(1,)),
    strategy("mirrored shared", 0, "--run-option", "mirrored", "--threads", 2, "--weights", "shared", *SAME, hosts=(1,)),
    strategy("mpi shared", 3, "--run-option", "mpi", "--transport", "shared", *SAME, hosts=(1,)),
    strategy("mpi messages", 3, "--run-option", "mpi", "--transport", "mpi", *SAME),
    strategy("mpi two-level", 3, "--run-option", "mpi", "--transport", "two-level", *SAME, hosts=(2,)),
    strategy("ring", 3, "--run-option", "ring", "--batch-size", 2),
    strategy("ps", 3, "--run-option", "ps", *SAME, servers=1),
    strategy("ps 2 servers", 4, "--run-option", "ps", "--servers", 2, *SAME, servers=2),
    strategy("ps backup", 4, "--run-option", "ps", "--replicas-to-aggregate", 2, "--batch-size", 2, servers=1, ordered=False,
             spare=1),
    strategy("ps async", 3, "--run-option", "ps", "--async", "--batch-size", 2, servers=1, ordered=False),
    strategy("ps bounded", 4, "--run-option", "ps", "--async", "--staleness", 1, "--servers", 2, "--batch-size", 2, servers=2,
             ordered=False),
    strategy("hybrid", 3, "--run-option", "hybrid", *SAME, servers=1, model=tuple(NEXT_WORD)),
    strategy("hybrid 2 servers", 4, "--run-option", "hybrid", "--servers", 2, "--partitions", 3, *SAME, servers=2,
             model=tuple(NEXT_WORD)),
)}
ON_TWO_HOSTS = 4  # ranks: two on each


# The functions, by the part of a training in which they are called.
MOMENTS = {"MPI_Init_thread": "at the start", "cblas_sgemm": "in a step", "MPI_Isend": "in a step", "MPI_Irecv": "in a step",
           "rename": "in a save", "fsync": "in a save", "MPI_Finalize": "at the end"}


@dataclasses.dataclass(frozen=True)
class Fault:
    kind: str   # kill, stop, cut
    rank: int
    call: str   # the function
    share: float  # of its calls, in a training without a fault

    def __str__(self):
        return f"{self.kind} rank {self.rank} at {self.share:.4f} of its calls of {self.call}"


def draw(chance, chosen, calls=None):
    """The number of hosts and a fault for a strategy. calls(hosts): how often each rank called each function."""
    hosts = chance.choice(chosen.hosts)
    kind = chance.choice(["kill", "stop"] + ["cut"] * (hosts == 2))
    counted = calls(hosts)
    rank = chance.randrange(len(counted))
    call = chance.choice(sorted(name for name, count in counted[rank].items() if count))
    return hosts, Fault(kind, rank, call, chance.random())


class Training:
    """One start of the trainer on hosts of its own."""

    def __init__(self, place, hosts, directory, *more):
        """more: options, besides."""
        self.place, self.directory, self.more, self.every = place, directory, more, EVERY
        place.mkdir(parents=True, exist_ok=True)
        self.hosts = two_hosts.Hosts(place, "ab"[:hosts])
        self.count = hosts

    def words(self, chosen, data, deadline):
        words = []
        if chosen.ranks:
            count = ON_TWO_HOSTS if self.count == 2 else chosen.ranks
            where = "a:2,b:2" if self.count == 2 else f"a:{count}"
            exported = ("LD_PRELOAD", "MOMENT_RANK", "MOMENT_CALL", "MOMENT_AT", "MOMENT_DOES", "MOMENT_FIRED", "MOMENT_COUNTS")
            words = ["mpirun", "--host", where, "--bind-to", "none", *(word for name in exported for word in ("-x", name)), "-n", count]
        data = data / chosen.model[-1]
        return [*words, ranks.TRAINER, *chosen.model, "--data-dir", data, *chosen.options, *self.more, "--max-steps", STEPS, "--save-checkpoint-steps", self.every, "--log-every", 1, "--checkpoint-dir", self.directory,
                "--deadline", deadline, "--json"]

    def run(self, chosen, data, deadline, fault=None, at=0):
        """To its end: (status, said, seconds from the fault to the end or None)."""
        fired, counts = self.place / "fired", self.place / "counts"
        counts.mkdir(exist_ok=True)
        fired.unlink(missing_ok=True)
        moment = {"LD_PRELOAD": str(LIBRARY), "MOMENT_COUNTS": str(counts)}
        if fault:
            moment |= {"MOMENT_RANK": str(fault.rank), "MOMENT_CALL": fault.call, "MOMENT_AT": str(at),
                       "MOMENT_DOES": "hold" if fault.kind == "cut" else fault.kind, "MOMENT_FIRED": str(fired)}
        with open(self.place / "said", "wb") as said:
            process = subprocess.Popen(
                [str(word) for word in [*self.hosts.inside("a"), *self.words(chosen, data, deadline)]], stdout=subprocess.DEVNULL,
                stderr=said, stdin=subprocess.DEVNULL,
                env={**two_hosts.ENVIRONMENT, **two_hosts.started_by(self.hosts.agent), **two_hosts.KEEPALIVE, **moment})
            try:
                at = self.wait(process, fault, fired, not chosen.ranks)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        # Open MPI 5 ends what it says of MPI_Abort with a NUL.
        return process.returncode, (self.place / "said").read_text(errors="replace").replace("\0", ""), at and time.monotonic() - at

    def wait(self, process, fault, fired, alone):
        """alone: nobody would miss the trainer if it stops, so it is continued."""
        end, at = time.monotonic() + LIMIT, None
        while process.poll() is None:
            if fault and not at and fired.exists():
                at = time.monotonic()
                if fault.kind == "cut":
                    self.hosts.cut("a", "b")
                    fired.unlink()
            if at and fault.kind == "stop" and alone:
                self.go_on(process)
            if time.monotonic() > end:
                raise Broken(f"it hangs: {LIMIT} s; left: {self.left()}")
            time.sleep(0.005 if fault and not at else 0.05)
        return at or (time.monotonic() if fault and fired.exists() else None)

    def go_on(self, launcher):
        """Also nsenter, which stops with what it has started."""
        for pid in [*(pid for pid, _ in self.hosts.pids_of("a")), launcher.pid]:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def left(self):
        return {name: found for name in self.hosts.pids if (found := self.hosts.processes(name))}

    def nothing_left(self):
        """No process, no shared memory, no session; also at the ends of a cable that is still cut."""
        waiting.wait_for(lambda: not self.left(), lambda: f"{self.left()} to end", LIMIT)
        for name, pid in self.hosts.pids.items():
            there = pathlib.Path(f"/proc/{pid}/root/dev/shm")
            files = [str(path.relative_to(there)) for path in there.rglob("*") if not path.is_dir()]
            expect(not files, f"left in /dev/shm of host {name}: {' '.join(files[:5])}")

    def close(self):
        self.hosts.close()


def calls_of(place):
    """[{function: calls}] by rank."""
    counts = place / "counts"
    return [{name: int(count) for name, count in (line.split() for line in (counts / f"{rank}").read_text().splitlines())}
            for rank in range(len(list(counts.iterdir())))]


def write_text(directory):
    """A text of 60 words of nonsense, 400 in all."""
    chance = random.Random(2)
    words = ["".join(chance.choices("abcdefgh", k=4)) for _ in range(60)]
    directory.mkdir()
    (directory / "text.txt").write_text("\n".join(" ".join(chance.choices(words, k=10)) for _ in range(40)))


class Bench:
    """What all faults of a campaign share: data, and trainings without a fault, made when one is needed."""

    def __init__(self, top, deadline):
        self.top, self.deadline, self.lock = top, deadline, threading.Lock()
        self.data = top / "data"
        self.data.mkdir()
        write_data(self.data / "mnist")
        write_text(self.data / "text")

    def reference(self, name, hosts):
        """The place in which this strategy was trained without a fault."""
        with self.lock:
            return self.made(name, hosts, EVERY)

    def checkpoint(self, name, hosts, step):
        """Its checkpoint of that step: any, as who is killed leaves the last whole update."""
        with self.lock:
            return self.made(name, hosts, EVERY if step % EVERY == 0 or step == STEPS else 1) / f"ckpt/model.ckpt-{step}"

    @functools.cache
    def made(self, name, hosts, every):
        place = self.top / f"reference {name} {hosts} {every}".replace(" ", "-")
        training = Training(place, hosts, place / "ckpt")
        training.every = every
        try:
            status, said, _ = training.run(STRATEGIES[name], self.data, 300)
            expect(status == 0, f"{name} on {hosts} hosts fails without a fault: {said}")
            training.nothing_left()
        finally:
            training.close()
        return place

    def calls(self, name):
        return lambda hosts: calls_of(self.reference(name, hosts))


def steps_in(directory):
    return sorted(int(path.name[11:-6]) for path in directory.glob("model.ckpt-*.index"))


def tool(*words):
    return subprocess.run([ranks.BUILD / "bin/checkpoint", *map(str, words)], capture_output=True, text=True)


def checkpoints_hold(bench, chosen, hosts, directory):
    """The last checkpoint is whole, and is what a training without a fault has there. Its step, -1: there is none."""
    steps = steps_in(directory)
    if not steps:
        return -1
    newest = steps[-1]
    verified = tool("verify", directory)
    expect(verified.returncode == 0, f"checkpoint verify: {verified.stdout}{verified.stderr}")
    if (directory / "checkpoint").exists():
        newest = int(re.search(r'model_checkpoint_path: "model\.ckpt-(\d+)"', ranks.state_file(directory)).group(1))
        expect(newest in steps, f"the state file names {newest}, of {steps}")
    if chosen.ordered:
        for step in {newest, steps[-1]}:
            reference = bench.checkpoint(chosen.name, hosts, step)
            compared = tool("compare", directory / f"model.ckpt-{step}", reference)
            expect(compared.returncode == 0, f"model.ckpt-{step} differs: {compared.stdout[-300:]}{compared.stderr[-300:]}")
    return newest


LINE = re.compile(r"trainer: rank (\d+) on host \w+: (mpirun ends the ranks)?.*$", re.M)


def numbers(text):
    """Of "ranks 0, 1 on host a, 3 on host b"."""
    return {int(number) for number in re.findall(r"\d+", re.sub(r"on (host \w+|another host)", "", text))}


def named(said):
    """[(who speaks, the ranks that it blames, whether it speaks because mpirun ends it)]; mpirun itself is None."""
    found = []
    for line in said.splitlines():
        if noticed := re.match(r"(?:mpirun|prterun) noticed that process rank (\d+) .* on node ", line):
            found.append((None, {int(noticed.group(1))}, False))
        elif match := LINE.match(line.lstrip()):
            speaker, hurried = int(match.group(1)), bool(match.group(2))
            blamed = [numbers(ranks) for ranks in re.findall(
                r"(?:for|since) ranks? (.*?)(?=, for tensors| to | ended;| \(server|;|$)", line)]
            if "did not run" in line:
                blamed = [{speaker}]
            found.append((speaker, set().union(*blamed), hurried))
    return found


def blames(chosen, hosts, fault, said):
    """The failure has its name: of the rank, alone, or, where a cable is cut, of a rank at its other end. Nobody else is
    blamed; but a rank may wait for one that has spoken before, or, when mpirun ends all, for one that speaks as well, for a
    server, or, on the other host, which sees no more, for any: these wait for others. Between hosts Open MPI 4.1 may end a
    rank whose connection breaks before anybody knows why; then nobody is named."""
    text = said[-1500:]
    if not chosen.ranks:
        return
    sentences = named(said)
    # A cut has two ends, and each host may see the other's ranks end.
    if fault.kind == "cut" or (hosts == 2 and fault.kind == "kill" and not sentences):
        return
    count = ON_TWO_HOSTS if hosts == 2 else chosen.ranks
    servers, spoken = set(range(count - chosen.servers, count)), set()
    # As the one that ended, it may stand beside the server that was waited for.
    expect(any(found - (servers - {fault.rank}) == {fault.rank} for _, found, _ in sentences), f"rank {fault.rank} is not named alone: {sentences} {text}")
    everyone = {speaker for speaker, _, _ in sentences}
    for speaker, found, hurried in sentences:
        far = hosts == 2 and speaker is not None and (speaker < 2) != (fault.rank < 2)
        expect(fault.rank in found or (hurried and far) or found <= (everyone | servers if hurried else spoken),
               f"another than rank {fault.rank} is named: {sentences} {text}")
        spoken.add(speaker)


def start_again(bench, chosen, hosts, directory, place, *more):
    """The next start, without a fault: what it said."""
    training = Training(place, hosts, directory, *more)
    try:
        status, said, _ = training.run(chosen, bench.data, 300)
        expect(status == 0, f"the next start: status {status}: {said[-1500:]}")
        training.nothing_left()
    finally:
        training.close()
    return said


def same_end(directory, other):
    compared = tool("compare", directory / f"model.ckpt-{STEPS}", other / f"model.ckpt-{STEPS}")
    expect(compared.returncode == 0, f"it ends with another checkpoint: {compared.stdout[-300:]}{compared.stderr[-300:]}")


def resumed(bench, chosen, hosts, directory, place, newest):
    """The next start continues from the newest checkpoint, tidies up, and ends with the bits of an undisturbed training, or,
    where the order of updates is by chance, with those of another start that follows its record."""
    record, again = place / "record", place / "again"
    if not chosen.ordered and directory.exists():
        shutil.copytree(directory, again)
    said = start_again(bench, chosen, hosts, directory, place, *(() if chosen.ordered else ("--record", record)))
    if newest >= 0:
        expect(re.search(rf"model\.ckpt-{newest}\b", said), f"does not resume from {newest}: {said[:600]}")
    left = [path.name for path in directory.iterdir() if TEMPORARY.search(path.name)]
    expect(not left, f"left behind after the next start: {left}")
    expect(ranks.training_json(directory)["state"] == "finished", "the next start is not finished")
    if chosen.ordered:
        same_end(directory, bench.reference(chosen.name, hosts) / "ckpt")
    elif newest < STEPS:
        expect(not list(place.glob("*.part")), "a part of the record is left")
        start_again(bench, chosen, hosts, again, place / "followed", "--replay", record)
        same_end(directory, again)


def happen(bench, chosen, hosts, fault, place):
    """One fault. Seconds from it to the end of the training; None: it did not happen. Broken: what does not hold."""
    calls = bench.calls(chosen.name)(hosts)[fault.rank][fault.call]
    directory, training = place / "ckpt", Training(place, hosts, place / "ckpt")
    try:
        status, said, seconds = training.run(chosen, bench.data, bench.deadline, fault, 1 + int(fault.share * calls))
        finished = ranks.training_json(directory).get("state") == "finished"
        if seconds is None or (fault.kind == "stop" and not chosen.ranks):
            expect(status == 0, f"status {status} without a fault: {said[-1500:]}")
        elif not finished or fault.kind != "cut":
            expect(status != 0 or (fault.kind == "cut" and ranks.open_mpi() >= 5), f"status 0 after the fault: {said[-1500:]}")
            blames(chosen, hosts, fault, said)
        training.nothing_left()
    finally:
        training.close()
    newest = checkpoints_hold(bench, chosen, hosts, directory)
    if not finished:
        resumed(bench, chosen, hosts, directory, place / "resumed", newest)
    return seconds
