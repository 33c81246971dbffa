"""What is removed from a log between listing and opening is gone: every command reads the rest, as if it had never been."""
import os
import pathlib
import shutil
import subprocess

import pytest

from interposed import VANISHING, interposed

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE, READER = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample", BUILD / "tests/programs/read_log"
READING = ["inspect --json", "export --format=csv", "stats", "tags", "hparams", "compare --json", "verify --json",
           "plot --width 60 --tag loss", "tail -n -1"]
WRITING = ["export --format=csv", "merge --keep-runs", "split --tags all=*", "rename-tag loss=l", "drop-tag lo*",
           "downsample -n 2"]


def run(*arguments, **more):
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, timeout=120, **more)


def contents(path):
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return [(p.relative_to(path), p.read_bytes()) for p in files]


def event_file(directory):
    """Which the file system may list behind a directory."""
    return next(path for path in directory.iterdir() if path.is_file())


@pytest.fixture
def log(tmp_path):
    for name in ["eval", "eval/pinned", "train"]:
        (tmp_path / "log" / name).mkdir(parents=True)
        subprocess.run([SAMPLE, "sample", tmp_path / "log" / name], check=True)
    return tmp_path / "log"


@pytest.fixture(params=["directory", "file"])
def vanishing(request, log, tmp_path):
    """The environment in which something of the log vanishes, the file that does, and the log as it is afterwards."""
    rest, aside = tmp_path / "rest/log", tmp_path / "aside"
    variables, gone = {}, None
    if request.param == "directory":
        variables["VANISHING_DIRECTORY"] = log / "eval/pinned"
    else:
        gone = variables["VANISHING_FILE"] = event_file(log / "eval/pinned")
        shutil.copy(gone, gone.with_name(gone.name + ".later"))
    shutil.copytree(log, rest)
    if gone:
        (rest / gone.relative_to(log)).unlink()
    else:
        shutil.rmtree(rest / "eval/pinned")
    return interposed(tmp_path, "vanishing", VANISHING, VANISHED_TO=aside, **variables), gone, rest, aside


def check(got, want, log, rest, gone, aside):
    assert got.returncode == want.returncode < 2, got.stderr
    assert got.stdout.replace(str(log), "LOG") == want.stdout.replace(str(rest), "LOG")
    assert aside.exists(), "nothing vanished"
    told = f"{gone}: was removed before it was read; left out" if gone else ""
    assert told in got.stderr and "cannot be" not in got.stderr


@pytest.mark.parametrize("command", READING)
def test_read(command, log, vanishing):
    environment, gone, rest, aside = vanishing
    want = run(TOOL, *command.split(), rest)
    got = run(TOOL, *command.split(), log, env=environment)
    check(got, want, log, rest, gone, aside)


@pytest.mark.parametrize("command", WRITING)
def test_written(command, log, vanishing, tmp_path):
    environment, gone, rest, aside = vanishing
    want = run(TOOL, *command.split(), rest, "-o", tmp_path / "want")
    got = run(TOOL, *command.split(), log, "-o", tmp_path / "got", env=environment)
    assert got.returncode == want.returncode == 0, got.stderr
    assert aside.exists() and contents(tmp_path / "got") == contents(tmp_path / "want")


@pytest.mark.parametrize("how", [[], ["points"]])
def test_library(how, log, vanishing):
    environment, _, rest, aside = vanishing
    want, got = run(READER, rest, *how), run(READER, log, *how, env=environment)
    assert got.returncode == want.returncode == 0 and want.stdout, got.stderr
    assert aside.exists() and got.stdout == want.stdout


def test_directory_tree(log, tmp_path):
    """prune takes a file that vanishes for a log that is being written, which it leaves alone."""
    environment = interposed(tmp_path, "vanishing", VANISHING, VANISHED_TO="aside",
                             VANISHING_DIRECTORY="log/eval/pinned")
    got, want = (subprocess.run([TOOL, "prune", "--fewer-than", "100", "--grace", "0s", "log"], capture_output=True, timeout=120,
                                cwd=tmp_path, env=variables) for variables in (environment, None))
    assert got.returncode == want.returncode == 0, got.stderr
    assert (tmp_path / "aside").exists() and got.stdout == want.stdout


def test_named_file(log, tmp_path):
    """What was named itself is missed."""
    path = event_file(log / "train")
    environment = interposed(tmp_path, "vanishing", VANISHING, VANISHED_TO=tmp_path / "aside", VANISHING_FILE=path)
    for command in ["stats", "tail", "verify"]:
        shutil.copy(path, tmp_path / "kept")
        done = run(TOOL, command, log / "eval", path, env=environment)
        assert done.returncode == 2 and f"{path}: cannot be opened: No such file" in done.stderr, command
        shutil.copy(tmp_path / "kept", path)


def test_compressed_meanwhile(log, tmp_path):
    """Under another name it is not gone: an answer without it would be wrong."""
    path = event_file(log / "train")
    environment = interposed(tmp_path, "vanishing", VANISHING, VANISHED_TO=f"{path}.gz", VANISHING_FILE=path)
    done = run(TOOL, "stats", log, env=environment)
    assert done.returncode == 2 and f"{path}: cannot be opened: No such file" in done.stderr
