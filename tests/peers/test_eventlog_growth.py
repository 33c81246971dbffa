"""What eight times as much costs at most three times eight: linear work, seen in the processor's time of a command."""
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, READER = BUILD / "bin/eventlog", BUILD / "tests/peers/read_log"
TIMES = 8


def user_seconds(*arguments):
    process = subprocess.Popen([*map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, arguments
    return usage.ru_utime


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


GROWING = [(tags, [TOOL, "compare", "--json", "PATH"], 3000), (tags, [TOOL, "compare", "--reach", "0.5", "PATH"], 3000),
           (tags, [READER, "PATH", "points"], 3000), (files, [READER, "PATH"], 1500)]


@pytest.mark.parametrize("make, command, count", GROWING)
def test_linear(make, command, count, tmp_path):
    for name, size in [("few", count), ("many", TIMES * count)]:
        (tmp_path / name).mkdir()
        make(tmp_path / name, size)
    few, many = (user_seconds(*(tmp_path / size if word == "PATH" else word for word in command))
                 for size in ("few", "many"))
    assert many < 3 * TIMES * few
