"""Places that have less than a machine, as containers do: 64 MB of shared memory; a user without a name and without HOME on a
host whose name does not resolve; a root that is only read. All runs there, or one sentence says what is missing."""
import os
import pathlib
import shutil
import subprocess

import pytest

import ranks
from waiting import DEADLINE

BIN = ranks.BUILD / "bin"
LENET = ["--model", "lenet", "--data", "fashion-mnist"]
TRAINING = [*LENET, "--batch-size", "8", "--max-steps", "3"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a namespace needs root")
NAMELESS = ["setpriv", "--reuid", "54321", "--clear-groups", "env", "-u", "HOME", "-u", "XDG_CACHE_HOME"]


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """The checkpoints and the curves of a training."""
    place = tmp_path_factory.mktemp("trained")
    ranks.train(0, *TRAINING, "--checkpoint-dir", place / "ckpt", "--log-dir", place / "log")
    return place


@pytest.fixture
def place(log):
    """A directory that everybody can reach and write to, with that training's files."""
    made = pathlib.Path("/var/tmp") / f"small-places-{os.getpid()}"
    shutil.copytree(log, made)
    subprocess.run(["chmod", "-R", "a+rwX", made], check=True)
    yield made
    shutil.rmtree(made)


def there(change, *words, **variables):
    """How a process is started where the shell's lines `change` have made another place of the machine."""
    return {"args": ["unshare", "--mount", "--uts", "sh", "-ec", f'{change}\nexec "$@"', "sh", *map(str, words)], "text": True,
            "stdin": subprocess.DEVNULL, "env": {**ranks.ENVIRONMENT, **variables}}


def within(change, *words, **variables):
    return subprocess.run(**there(change, *words, **variables), capture_output=True, timeout=DEADLINE)


def serves(change, *words, **variables):
    """Whether it comes so far that it listens."""
    ranks.started.append(subprocess.Popen(**there(change, *words, **variables), stderr=subprocess.PIPE))
    said = next((line for line in ranks.started[-1].stderr if "listening on" in line), None)
    ranks.started[-1].terminate()
    ranks.started[-1].communicate(timeout=DEADLINE)
    return said


def read_only(place):
    return f"mount --bind {place} {place}\nmount -o remount,bind,ro /\nif touch /var/tmp/written 2>/dev/null; then exit 9; fi"


def programs(place):
    """What each program does here, all but the ones that serve."""
    (place / "here.txt").write_text("localhost:0,1\n")
    (place / "texts").write_text("a word and a word\n")
    return [[BIN / "trainer", *TRAINING, "--checkpoint-dir", place / "alone", "--log-dir", place / "curves"],
            [BIN / "trainer", "--resource-info", place / "here.txt", "--run-option", "mpi", *TRAINING, "--checkpoint-dir",
             place / "ranks"],
            [BIN / "evaluator", *LENET, "--checkpoint-dir", place / "ckpt", "--eval-dir", place / "eval", "--once"],
            [BIN / "checkpoint", "verify", place / "ckpt"],
            [BIN / "dataset", "vocabulary", place / "texts", "--output", place / "vocabulary"],
            [BIN / "eventlog", "inspect", place / "log"],
            [BIN / "eventlog", "write", "--dir", place / "new", "--step", "1", "a=2"]]


def servers(place):
    return [[BIN / "eventlog-server", "--logdir", place / "log", "--port", "0"],
            [BIN / "eventlog", "serve", place / "log", "--port", "0", "--server-only"]]


@needs_root
@pytest.mark.parametrize("options", [["--run-option", "mpi"], ["--run-option", "mpi", "--transport", "mpi"],
                                     ["--run-option", "ring"], ["--run-option", "ps"]], ids=" ".join)
def test_little_shared_memory(options, tmp_path):
    words = ranks.command(4, "--model", "resnet32", "--data", "synthetic", "--batch-size", 2, "--max-steps", 2, *options,
                          "--checkpoint-dir", tmp_path / "ckpt")
    run = within("mount -t tmpfs -o size=64m tmpfs /dev/shm", *words)
    assert run.returncode == 0 and (tmp_path / "ckpt" / "model.ckpt-2.index").exists(), run


@needs_root
def test_no_name(place):
    """Of the user and of the host, and no home."""
    for words in programs(place):
        run = within("hostname no-such-host", *NAMELESS, *words)
        assert run.returncode == 0, run
    for words in servers(place):
        assert serves("hostname no-such-host", *NAMELESS, *words), words


@needs_root
def test_read_only_root(place):
    variables = {"TMPDIR": str(place)}
    for words in programs(place):
        run = within(read_only(place), *words, **variables)
        assert run.returncode == 0, run
    for words in servers(place):
        assert serves(read_only(place), *words, **variables), words


@needs_root
def test_nowhere_for_temporary_files(place):
    """mpirun says a page, and not what to do."""
    trainer = programs(place)[1]
    run = within(read_only(place), *trainer, TMPDIR="/var/tmp")
    assert (run.returncode, run.stderr) == (2, "trainer: --resource-info: mpirun needs a directory for its files; set TMPDIR to one: "
                                               "/var/tmp: Read-only file system\n")
    refused = within(read_only(place), *programs(place)[0][:-3], "/var/tmp/elsewhere", "--log-dir", place / "curves")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1 and "Read-only file system" in refused.stderr, refused


def control_groups(place):
    """A copy of what Linux shows of this process's control group with a limit of memory, and its file of kills, for each
    version of control groups that it has here."""
    names = {":memory:": ("memory", "memory.oom_control", "memory.limit_in_bytes"), "::": (".", "memory.events", "memory.max")}
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        key = f":{controllers}:"
        if key in names:
            mount, kills, limit = names[key]
            group = place / f"version{number}" / mount / path.lstrip("/")
            group.mkdir(parents=True)
            (group / kills).write_text("low 0\noom 5\noom_kill 3\n")
            (group / limit).write_text("125829120\n")
            yield f"mount --bind {place}/version{number} /sys/fs/cgroup", group / kills


KILLED = "the kernel ended a process here for lack of memory (limit of its control group: 120 MiB)"


@needs_root
def test_killed_for_lack_of_memory(log, tmp_path):
    """SIGKILL alone says nothing; what the kernel counts does. Without that it was somebody else."""
    groups = list(control_groups(tmp_path))
    assert groups
    for change, kills in groups:
        for counted in (False, True):
            shutil.rmtree(tmp_path / "eval", ignore_errors=True)
            shutil.rmtree(tmp_path / "ckpt", ignore_errors=True)
            kill = (f"echo oom_kill 4 > {kills}\n" if counted else "") + "kill -9 $$\n"
            (tmp_path / "score.sh").write_text(kill)
            run = within(change, BIN / "evaluator", "--checkpoint-dir", log / "ckpt", "--eval-dir", tmp_path / "eval", "--once",
                         "--exec", f"sh {tmp_path}/score.sh")
            assert run.returncode == 1 and "signal 9" in run.stderr and (KILLED in run.stderr) == counted, run
            kills.write_text("oom_kill 3\n")
            training = subprocess.Popen(**there(change, BIN / "trainer", *LENET, "--batch-size", "8", "--log-every", "1",
                                                "--checkpoint-dir", tmp_path / "ckpt"), stderr=subprocess.PIPE)
            ranks.started.append(training)
            assert next(line for line in training.stderr if line.startswith("step: "))
            if counted:
                kills.write_text("oom_kill 4\n")
            training.kill()
            said = training.stderr.read()  # until the process that saves has ended, too
            reason = ranks.training_json(tmp_path / "ckpt")["reason"]
            assert (KILLED in said, KILLED in reason) == (counted, counted) and "died" in reason, (said, reason)
            kills.write_text("oom_kill 3\n")
