"""What the tests of several ranks share: starting the trainer, small CIFAR-10 files, reading checkpoints."""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import waiting
from cifar10_files import write_cifar  # noqa: F401  for the tests of ranks

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TRAINER = BUILD / "bin" / "trainer"
# More ranks than cores, and no page about a rank that failed: by variables, since each mpirun has other options for that.
# UCX, by which Open MPI 6 sends, puts its own dlopen in the place of everybody's, also of a library of LD_PRELOAD's.
# Open MPI 5.0.7 says of an interface with an IPv6 address, too, that it cannot be reached, unless it goes by weights.
ENVIRONMENT = {**os.environ, "OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
               "OMPI_MCA_orte_execute_quiet": "1", "OMPI_MCA_reachable": "weighted", "UCX_MEM_EVENTS": "no",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "ASAN_OPTIONS": "detect_leaks=0", "OPENBLAS_NUM_THREADS": "1"}


def open_mpi():
    """The first number of Open MPI's version, 0 if mpirun is not its own. From 5 on mpirun may not pass on what ranks say after
    SIGTERM, lets ranks that are more than the cores yield whatever they ask for, and ends with 0 when it has lost a host. That
    of 6 passes on no SIGTERM."""
    said = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, env=ENVIRONMENT).stdout
    number = re.search(r"\(Open MPI\) (\d+)\.", said)
    return int(number[1]) if number else 0


if shutil.which("mpirun") and open_mpi() >= 6:  # it says of the older name that it is deprecated
    ENVIRONMENT["PRTE_MCA_mapby"] = ENVIRONMENT.pop("PRTE_MCA_rmaps_default_mapping_policy")


def command(ranks, *options):
    """The words that start the trainer; ranks 0: without mpirun."""
    launcher = ["mpirun", "--bind-to", "none", "-n", str(ranks)] if ranks else []
    return [*launcher, str(TRAINER), *map(str, options)]


def together(*programs):
    """The words that start programs as the ranks of one run: (count, words) of each. A shell chooses, as not every mpirun
    takes several programs."""
    lines, count = ["rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"], 0
    for ranks, words in programs:
        count += ranks
        lines.append(f"[ $rank -ge {count} ] || exec {shlex.join(map(str, words))}")
    return ["mpirun", "--bind-to", "none", "-n", str(count), "sh", "-c", "\n".join(lines)]


def train(ranks, *options, status=0, also=None):
    """Runs to the end; returns (the summary of --json or None, what was said). also: one more rank with these options
    instead."""
    words = command(ranks, *options)
    if also:
        words = together((ranks, command(0, *options)), (1, command(0, *also)))
    return finish(words, status)


def finish(words, status=0):
    """The same, started by these words."""
    run = subprocess.run(words, capture_output=True, text=True, timeout=waiting.DEADLINE, env=ENVIRONMENT)
    assert run.returncode == status, f"status {run.returncode}, not {status}: {run.stderr}"
    said = re.sub(r"^-{70,}\n.*?^-{70,}\n", "", run.stderr.replace("\0", ""), flags=re.MULTILINE | re.DOTALL)  # Open MPI 5's page, which has no switch
    return (json.loads(run.stdout) if run.stdout.startswith("{") else None), said


started = []  # processes that start() made; conftest.py kills what a test leaves


class Mpirun(subprocess.Popen):
    """Without the byte 0 with which Open MPI 5 ends what it says of MPI_Abort, before what a rank says."""

    def communicate(self, *arguments, **keywords):
        return tuple(text and text.replace("\0", "") for text in super().communicate(*arguments, **keywords))


def start(ranks, *options, said=subprocess.PIPE, **variables):
    """said: a file for standard error; variables: of the environment, besides."""
    started.append(Mpirun(command(ranks, *options), stdout=subprocess.PIPE, stderr=said, text=True,
                          env={**ENVIRONMENT, **variables}))
    return started[-1]


def wait_for(process, condition, what):
    """waiting.wait_for(); fails at once when the training ends before."""
    def checked():
        value = condition()
        assert value or process.poll() is None, f"ended before {what}: {process.communicate()}"
        return value

    return waiting.wait_for(checked, what)


def rank_processes(launcher):
    """{rank: pid} of the trainer processes below mpirun, as far as they are up; MPICH's has a proxy between, and
    all but Open MPI 4's each rank's stand-in."""
    def parents_of(pid):
        for _ in range(3):
            pid = int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            yield pid

    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parents = [*parents_of(entry.name)]
            stands_in = name_of(parents[0]) in ("hydra_pmi_proxy", "prterun", "prted")  # or will: see stand_in.h
            environment = (entry / "environ").read_bytes().split(b"\0")
            image = os.readlink(entry / "exe")
        except (OSError, IndexError, ValueError):
            continue
        if launcher.pid in parents and not stands_in and image == str(TRAINER):
            for word in environment:
                if word.startswith((b"OMPI_COMM_WORLD_RANK=", b"PMI_RANK=")):
                    found[int(word.split(b"=")[1])] = int(entry.name)
    return found


def working_in(directory):
    """The trainer processes, ranks or not, that were started with that directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.readlink(entry / "exe") == str(TRAINER) and alive(entry.name) and (
                    str(directory).encode() in (entry / "cmdline").read_bytes().split(b"\0")):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def name_of(pid):
    return pathlib.Path(f"/proc/{pid}/comm").read_text().rstrip("\n")


def alive(pid):
    """A process that was killed is, as long as one of its threads waits for the disk."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def variables(prefix):
    """{name: bytes} of everything that training depends on, from a one-shard bundle; our own notes left out."""
    run = subprocess.run([str(BUILD / "tests" / "mpi" / "checkpoint_values"), str(prefix)], capture_output=True,
                         text=True)
    assert run.returncode == 0, run.stderr
    return dict(line.split("\t") for line in run.stdout.splitlines())


def curves(directory):
    """{tag: [(step, value), ...]} of a directory with event files."""
    run = subprocess.run([str(BUILD / "bin" / "eventlog"), "export", "--format", "jsonl", str(directory)], check=True,
                         capture_output=True, text=True)
    found = {}
    for line in run.stdout.splitlines():
        point = json.loads(line)
        found.setdefault(point["tag"], []).append((point["step"], point["value"]))
    return found


def training_json(directory):
    """{} where there is none yet."""
    try:
        return json.loads((directory / "training.json").read_text())
    except FileNotFoundError:
        return {}


def last_state(directory):
    """training.json once the training has ended and all is saved, whoever did it, and nothing is left behind."""
    waiting.wait_for(lambda: training_json(directory).get("state", "running") != "running", "the last state")
    waiting.wait_for(lambda: not working_in(directory), "the processes to be gone")
    assert not [path.name for path in directory.iterdir() if "temp" in path.name or path.name.startswith("training.json.")]
    return training_json(directory)


def state_file(directory):
    return (pathlib.Path(directory) / "checkpoint").read_text()
