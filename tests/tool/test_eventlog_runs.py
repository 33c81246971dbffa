"""Runs that are read at the same time: every byte that a command prints is as on one core, which reads run by run."""
import gzip
import os
import subprocess

import pytest
from tests import eventlog_command, terminal

CORES = sorted(os.sched_getaffinity(0))
COMMANDS = [
    ("stats",),
    ("stats", "--json"),
    ("stats", "--diverged", "--format=text"),
    ("stats", "--tag=b*", "--tag=nothing", "--to-step=9"),
    ("stats", "--run=r1*", "--view=tensorboard"),
    ("stats", "--view=session", "--sort=last:desc", "--top=5"),
    ("tags",),
    ("tags", "--format=tb-json"),
    ("tags", "--plugin=imges"),
    ("inspect",),
    ("inspect", "--tree"),
    ("inspect", "--json"),
    ("inspect", "--format=tb"),
    ("inspect", "--format=csv", "--tag=b*"),
    ("inspect", "--sort=points:desc", "--top=7"),
    ("hparams",),
    ("hparams", "--metric=bb:min", "--json"),
]


def run_on(cores, *words):
    """Its status, standard output and standard error."""
    done = subprocess.run([eventlog_command.TOOL, *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """60 runs of 1 to 40 points, many of them in several files, packed, damaged in different ways, or no logs."""
    top = tmp_path_factory.mktemp("runs") / "log"
    rows = [f"r{run},{tag},{step},{'nan' if run % 7 == 3 and step > 20 else step * 0.5}"
            for run in range(60) for step in range(1 + run * 7 % 40) for tag in ("a", "b", "bb")]
    eventlog_command.write(top, "-", text="\n".join(["run,tag,step,value", *rows]) + "\n")
    for run in range(0, 60, 9):
        eventlog_command.write(top / f"r{run}", "--step=3", "bb=9", "--text=note=hello")
    for run in range(60):
        file = min((top / f"r{run}").iterdir())
        data = bytearray(file.read_bytes())
        if run % 5 == 1:  # every few bytes, so that more is damaged than is told
            for at in range(100, len(data), 1 + run):
                data[at] ^= 0x41
        if run % 6 == 2:
            del data[-7:]
        if run % 11 == 4:
            data[:] = b"not an event log " * 20
        if run % 13 == 5:
            data = data.replace(b"bb", b"b\xff")  # with a wrong CRC, and not UTF-8
        file.write_bytes(data)
        if run % 4 == 3:
            packed = gzip.compress(bytes(data))
            file.unlink()
            file.with_name(file.name + ".gz").write_bytes(packed[:-20] if run % 8 == 3 else packed)
        if run % 17 == 6:
            (file.parent / "gone.tfevents.1").symlink_to("nowhere")
            (file.parent / "zero.tfevents.2").touch()
    return top


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_as_on_one_core(log, words):
    here = run_on(CORES[:1], *words, log)
    assert here[0] in (0, 1, 2) and (here[1] or here[2])
    for _ in range(3):
        assert run_on(CORES, *words, log) == here
    two = (log / "r1", log / "r36")
    assert run_on(CORES, *words, *two) == run_on(CORES[:1], *words, *two)


def test_an_archive_and_standard_input(log, tmp_path):
    """Members of an archive are read by several threads; standard input beside a log."""
    whole = tmp_path / "whole"
    for run in (0, 10, 12, 20, 22, 30):
        eventlog_command.write(whole / f"r{run}", "--step=1", *(f"t{k}={k + run}" for k in range(200)))
    archive = tmp_path / "logs.tar.gz"
    subprocess.run(["tar", "-caf", archive, "-C", tmp_path, "whole"], check=True)
    assert run_on(CORES, "stats", archive) == run_on(CORES[:1], "stats", archive)
    assert run_on(CORES, "stats", archive)[1].count(b"\n") == 1201
    one = min((whole / "r12").iterdir())
    piped = [subprocess.run([eventlog_command.TOOL, "inspect", "--json", "-", whole], input=one.read_bytes(),
                            capture_output=True, preexec_fn=lambda n=n: os.sched_setaffinity(0, CORES[:n]))
             for n in (1, len(CORES))]
    assert piped[0].stdout == piped[1].stdout and piped[0].stderr == piped[1].stderr
    assert piped[0].returncode == piped[1].returncode == 0


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    """A run of many short series and one long one, which threads get in parts, and a run of few points."""
    top = tmp_path_factory.mktemp("curves") / "log"
    rows = [f"many,t{tag},{step},{tag + step / 8}" for step in range(5) for tag in range(150)]
    rows += [f"many,long,{step},{'nan' if step % 9 == 0 else step / 3}" for step in range(11_000)]
    eventlog_command.write(top, "-", text="\n".join(["run,tag,step,value", *rows, "few,a,1,2"]) + "\n")
    return top


@pytest.mark.parametrize("words", [("--format=csv",), ("--format=json", "--nonfinite=drop"), ("--format=jsonl", "--to-step=5000"),
                                   ("--format=csv", "--order=file"), ("--format=csv", "--tag=*1*", "--view=session")], ids=" ".join)
def test_exports_as_on_one_core(curves, words):
    here = run_on(CORES[:1], "export", *words, curves)
    assert here[0] == 0 and here[1].count(b"\n") > 300
    assert run_on(CORES, "export", *words, curves) == here


def test_nothing_is_left_on_the_terminal(log):
    """A progress line is erased before anything else is written, also between messages about damage."""
    shown = terminal.on_terminal(100, "stats", log, status=2)
    lines = [line.split("\r\x1b[K")[-1] for line in shown.split("\n")]
    assert len(lines) > 100 and not [line for line in lines if "% of" in line]
