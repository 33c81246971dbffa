"""What eight times as much costs at most three times eight: linear work, seen in the processor's time of a command. And
what one form of an export costs beside another."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, READER = BUILD / "bin/eventlog", BUILD / "tests/programs/read_log"
TIMES = 8


def processor_seconds(*arguments):
    """User's and system's together: only their sum is exact, the kernel shares it out by a sample every few milliseconds."""
    process = subprocess.Popen([*map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_utime + usage.ru_stime


def tags(directory, count):
    """Two runs with as many tags, of a point each."""
    points = "tag,step,value\n" + "".join(f"layer{i:06d}/loss,1,0.5\n" for i in range(count))
    for run in "ab":
        subprocess.run([TOOL, "write", "-d", directory / run, "-"], input=points, text=True, check=True,
                       stdout=subprocess.DEVNULL)


def files(directory, count):
    """A run of as many files, which hold the same event."""
    subprocess.run([TOOL, "write", "-d", directory, "--step", "0", "loss=0.5"], check=True, stdout=subprocess.DEVNULL)
    first, = directory.iterdir()
    for i in range(1, count):
        os.link(first, first.with_name(f"{first.name}.{i}"))


def named(directory, count):
    """The same as files of their own, to be given by their names."""
    files(directory, 1)
    first, = directory.iterdir()
    for i in range(1, count):
        shutil.copy(first, first.with_name(f"{first.name}.{i}"))


def streamed(directory, count):
    """Points of as many runs, in a file of text."""
    lines = "".join(f"run{run:06d},loss,{step},0.5,{1.7e9 + step}\n" for run in range(count) for step in range(120))
    (directory / "points.csv").write_text("run,tag,step,value,wall_time\n" + lines)


GROWING = [(tags, [TOOL, "compare", "--json", "PATH"], 3000), (tags, [TOOL, "compare", "--reach", "0.5", "PATH"], 3000),
           (tags, [READER, "PATH", "points"], 3000), (files, [READER, "PATH"], 1500),
           (named, [TOOL, "merge", "FILES", "-o", "OUT"], 800),
           (streamed, [TOOL, "write", "-d", "OUT", "-i", "FILES"], 1000)]


@pytest.mark.parametrize("make, command, count", GROWING)
def test_linear(make, command, count, tmp_path):
    for name, size in [("few", count), ("many", TIMES * count)]:
        (tmp_path / name).mkdir()
        make(tmp_path / name, size)

    def words(log, turn=0):
        for word in command:
            yield from (sorted(log.iterdir()) if word == "FILES" else [log.with_suffix(f".{turn}")] if word == "OUT" else
                        [log] if word == "PATH" else [word])

    few = 0  # as often as makes it the same work: one short run is measured too coarsely
    for turn in range(TIMES):  # nothing is removed before the end: ext4 goes around what is just deleted
        few += processor_seconds(*words(tmp_path / "few", turn))
    assert processor_seconds(*words(tmp_path / "many")) < 3 * few


def peak_kilobytes(*arguments):
    """Once the first bytes come; ru_maxrss would be that of this process, if that is more."""
    process = subprocess.Popen([*map(str, arguments)], stdout=subprocess.PIPE)
    assert process.stdout.readline()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    process.communicate()
    assert process.returncode == 0
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1])


@pytest.fixture(scope="module")
def long_run(tmp_path_factory):
    log = tmp_path_factory.mktemp("long") / "log"
    points = "".join(f"loss,{i},{i * 0.37 % 1:.7f},{1.7e9 + i * 0.0123}\n" for i in range(400000))
    subprocess.run([TOOL, "write", "-d", log, "-"], input="tag,step,value,wall_time\n" + points, text=True, check=True,
                   stdout=subprocess.DEVNULL)
    return log


# Before: 6 and 8 times.
@pytest.mark.parametrize("name, most", [("points.csv.gz", 4), ("points.sqlite", 5)])
def test_time_beside_csv(name, most, long_run, tmp_path):
    csv = processor_seconds(TOOL, "export", "-o", tmp_path / "points.csv", long_run)
    assert processor_seconds(TOOL, "export", "-o", tmp_path / name, long_run) < most * csv


def test_memory_of_reduce(long_run):
    """Before: 3.6 times."""
    assert peak_kilobytes(TOOL, "export", "--format=reduce", long_run) < 2 * peak_kilobytes(TOOL, "export", long_run)
