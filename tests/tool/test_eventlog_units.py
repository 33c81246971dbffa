"""Wall times in milliseconds, microseconds, nanoseconds or .NET ticks: dates and spans are right, numbers are as written."""
import csv
import io
import json
import os
import pathlib
import re
import struct
import subprocess

import pytest

from tfrecord_files import field, record

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
BEGAN = 1_700_000_000  # 2023-11-14T22:13:20Z
UNITS = {"milliseconds": lambda t: t * 1e3, "microseconds": lambda t: t * 1e6, "nanoseconds": lambda t: t * 1e9,
         ".NET ticks": lambda t: 621355968e9 + t * 1e7}
SAID = "wall times in {} are taken for that wherever a date or a span is shown; TensorBoard takes them for seconds\n"


def event(wall, step, value):
    return record(struct.pack("<Bd", 9, wall) + bytes([0x10, step]) + field(5, field(1, field(1, b"loss") + struct.pack("<Bf", 0x15, value))))


def write(directory, unit, began=BEGAN):
    """A point a minute, for an hour."""
    directory.mkdir(parents=True)
    (directory / "events.out.tfevents.1.h").write_bytes(b"".join(event(unit(began + 60 * i), i, 1 / (1 + i)) for i in range(61)))
    return directory


def run(*words, columns="200"):
    done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TZ": "UTC", "COLUMNS": columns})
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(params=UNITS)
def odd(tmp_path, request):
    return write(tmp_path / "log", UNITS[request.param]), request.param, write(tmp_path / "seconds", lambda t: float(t))


@pytest.mark.parametrize("command", ["inspect", "inspect --format=tree", "stats --time iso --json", "stats --time relative", "stats --json --time unix", "compare --json",
                                     "compare --json --reach 0.1", "plot --x relative", "plot --x wall", "plot --x relative --json",
                                     "export --time iso", "export --time iso --format json", "tail --no-follow --time iso",
                                     "export --since 2023-11-14T22:43:20Z --time iso", "stats --since 2023-11-14T22:43:20Z --format=csv"])
def test_as_if_they_were_seconds(odd, command):
    """Every place that shows a date or a span; and one line says it."""
    log, unit, seconds = odd
    shown, said = run(*command.split(), log)
    wanted, nothing = run(*command.split(), seconds)
    assert shown.replace(str(log), "") == wanted.replace(str(seconds), "") and nothing == ""
    assert said.count("\n") == 1 and said.endswith(SAID.format(unit))


def test_spans_and_dates(odd):
    log = odd[0]
    assert re.search(r"events\S+ .* 61 +60 min", run("inspect", log)[0])
    assert run("export", "--time", "iso", log)[0].splitlines()[1].endswith(",2023-11-14T22:13:20Z")
    assert "14 Nov 2023" in run("plot", "--x", "wall", log)[0]
    document = json.loads(run("inspect", "--json", log)[0])["runs"][0]["files"][0]
    assert (document["first_wall_time"], document["last_wall_time"]) == (BEGAN, BEGAN + 3600)


def test_prometheus(odd, tmp_path):
    """Its metric is called _seconds."""
    run("export", "-o", tmp_path / "a.prom", odd[0])
    assert f"_wall_time_seconds{{run=\".\",tag=\"loss\"}} {BEGAN + 3600}.0\n" in (tmp_path / "a.prom").read_text()


def test_numbers_are_exact(odd):
    """The wall times of exported points are those of the file."""
    log, unit, _ = odd
    rows = list(csv.DictReader(io.StringIO(run("export", log)[0])))
    assert [float(r["wall_time"]) for r in rows] == [UNITS[unit](BEGAN + 60 * i) for i in range(61)]


def test_each_unit_is_said_once(tmp_path):
    for i in range(3):
        write(tmp_path / f"log/ms-{i}", UNITS["milliseconds"])
    write(tmp_path / "log/ticks", UNITS[".NET ticks"])
    write(tmp_path / "log/seconds", lambda t: float(t))
    shown, said = run("stats", "--json", "--time", "unix", tmp_path / "log")
    assert {(s["first_wall_time"], s["last_wall_time"]) for s in json.loads(shown)["series"]} == {(BEGAN, BEGAN + 3600)}
    assert said == "".join("eventlog stats: " + SAID.format(unit) for unit in ("milliseconds", ".NET ticks"))


@pytest.mark.parametrize("began", [0, 1.0, 315532800, 95617584000, 253402297000])
def test_seconds_are_seconds(tmp_path, began):
    """Up to the year 9999."""
    assert run("stats", "--json", write(tmp_path / "log", lambda t: float(t), began))[1] == ""
