"""--since, --from-step and --to-step: the same points in every command that has them."""
import csv
import io
import json
import os
import pathlib
import subprocess
import time

import pytest

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
NOW = time.time()
# Step and how many days ago: the tests run hours after they were collected, at most.
POINTS = [(10, 50), (20, 10), (30, 3), (40, 0)]
DAY = 86400


def eventlog(*words, status=0, **environment):
    done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600,
                          env={**os.environ, "TZ": "CET-1", **environment})
    assert done.returncode == status, done.stderr
    return done.stdout if status != 2 else done.stderr


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    top = tmp_path_factory.mktemp("ranges") / "log"
    for step, days in POINTS:
        eventlog("write", "-d", top / "run", "--step", step, "--wall-time", f"{NOW - DAY * days:.3f}", f"loss={step / 100}")
    return top


def steps_of_export(log, *words, **more):
    return [int(row["step"]) for row in csv.DictReader(io.StringIO(eventlog("export", log, *words, **more)))]


def steps_of_tail(log, *words, **more):
    return [json.loads(line)["step"] for line in eventlog("tail", "--json", log, *words, **more).splitlines()]


def steps_of_stats(log, *words, **more):
    rows = list(csv.DictReader(io.StringIO(eventlog("stats", log, *words, **more))))
    return [int(row[key]) for row in rows for key in ("first_step", "last_step")]


def steps_of_compare(log, *words, **more):
    rows = json.loads(eventlog("compare", "--json", log, *words, **more))["series"]
    return [row[key] for row in rows for key in ("first_step", "last_step")]


def steps_of_plot(log, *words, **more):
    curves = json.loads(eventlog("plot", "--json", log, *words, **more))["curves"]
    return [int(point[0]) for curve in curves for point in curve["points"]]


COMMANDS = {"export": steps_of_export, "tail": steps_of_tail, "stats": steps_of_stats, "compare": steps_of_compare,
            "plot": steps_of_plot}


@pytest.mark.parametrize("command", COMMANDS)
def test_range(log, command):
    def expect(want, *words):
        got = COMMANDS[command](log, *words, status=0 if want else 1)
        assert got == ([want[0], want[-1]] if want and command in ("stats", "compare") else want), words

    expect([10, 20, 30, 40])
    expect([30, 40], "--since", "7d")
    expect([20, 30, 40], "--since", "20d10h")
    expect([40], "--since", "1d12h")
    expect([30, 40], "--since", f"@{NOW - 5 * DAY}")
    expect([30, 40], "--since", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - 5 * DAY)))
    expect([30, 40], "--since", time.strftime("%Y-%m-%d %H:%M", time.gmtime(NOW - 5 * DAY + 3600)))  # local: CET
    expect([20, 30], "--from-step", "20", "--to-step", "30")
    expect([30], "--from-step", "20", "--to-step", "30", "--since", "1 d", "--since", "5d")
    expect([], "--since", f"@{NOW + DAY}")
    expect([], "--from-step", "41")
    for words, told in [
        (["--since", "yesterdayish"], "--since 'yesterdayish' is not a time; write 2h, 30min, 2026-11-01T10:00 or @1700000000"),
        (["--since", "5"], "is not a time"), (["--since", "2026-02-30"], "is not a time"),
        (["--from-step", "5", "--to-step", "4"], "--from-step 5 is after --to-step 4"),
    ]:
        message = eventlog(command, log, *words, status=2)
        assert message.count("\n") == 1 and told in message


def test_all_formats_of_export(log):
    for words in ["--order=file"], ["--format=jsonl"], ["--format=wide"], ["--format=jsonl-series"]:
        whole, part = (eventlog("export", log, *words, *more) for more in ([], ["--since", "5d"]))
        assert '0.3' in part and '0.10000000149011612' in whole and '0.10000000149011612' not in part, words


def test_tail_keeps_the_last_only_when_asked(log):
    assert steps_of_tail(log, "-n", "1") == [40]
    assert steps_of_tail(log, "-n", "1", "--to-step", "20") == [20]
