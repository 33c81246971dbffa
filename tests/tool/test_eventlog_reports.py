"""Tables of eventlog: sorted and cut, in every format, for people and for programs; which runs have diverged."""
import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LC_ALL", "LANG")} | {"TZ": "CET-1"}


def eventlog(*words, status=0, text=None, **environment):
    done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600, input=text,
                          env=ENVIRONMENT | environment)
    assert done.returncode == status, done.stderr
    return done.stdout if status != 2 else done.stderr


def run_message(*words):
    """What is said on standard error with status 1."""
    done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == 1, done.stderr
    return done.stderr


def write(directory, points):
    """points: (tag, step, value) in that order."""
    lines = (json.dumps({"tag": t, "step": s, "value": v, "wall_time": 1700000000 + s}).replace("NaN", '"NaN"')
             .replace('Infinity', '"Infinity"').replace('-"I', '"-I') for t, s, v in points)
    eventlog("write", "-d", directory, "-", text="\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    top = tmp_path_factory.mktemp("reports") / "log"
    nan = float("nan")
    for run, final in ("r10", 0.91), ("r2", 0.95), ("r1", 0.7), ("r3", nan), ("a|b_*c*", 0.93):
        write(top / run, [(tag, step, value) for step in (0, 1, 2) for tag, value in (
            ("accuracy", final if step == 2 else 0.97 if run == "r1" and step == 1 else 0.1 * step),
            ("loss", 2 - final if step == 2 else 2.0), ("lr", 1e-5))])
    return top


def column(text, key="run"):
    return [row[key] for row in csv.DictReader(io.StringIO(text))]


def test_tags_that_only_some_runs_have_are_named(log, tmp_path):
    """Once for all tags of the same runs; without a word where all have the same."""
    for run, tags in ("a", "loss rate wait"), ("b", "loss rate wait"), ("c", "loss best"), ("d", "loss " + " ".join(f"t{i}" for i in range(9))):
        write(tmp_path / "log" / run, [(tag, 1, 0.5) for tag in tags.split()])

    def said(*words):
        done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
        assert done.returncode == 0
        return done.stderr.splitlines()

    program, left_out = "eventlog compare: only ", "; left out, --tag shows them"
    wanted = [f"{program}c has best{left_out}", f"{program}a, b have rate, wait{left_out}",
              f"{program}d has t0, t1, t2, t3, t4, t5 and 3 more{left_out}"]
    assert said("compare", tmp_path / "log") == said("compare", tmp_path / "log", "--json") == wanted
    assert said("compare", tmp_path / "log", "-o", tmp_path / "x.svg") == wanted
    assert said("plot", tmp_path / "log") == [line.replace(" compare:", " plot:") for line in wanted]
    assert said("compare", tmp_path / "log", "--tag", "best") == [f"{program}c has best"]  # shown, with holes
    assert said("compare", tmp_path / "log/a", tmp_path / "log/c", "--tag", "loss") == said("compare", log) == []
    for i in range(12):  # few lines, however many combinations there are
        write(tmp_path / "many" / f"r{i}", [("loss", 1, 0.5), (f"own{i}", 1, 0.5)])
    lines = said("compare", tmp_path / "many")
    assert len(lines) == 9 and lines[-1] == f"{program}some runs have 4 other tags"


def test_time_to_accuracy_is_one_command(log, tmp_path):
    for run, seconds in ("fast", 2), ("slow", 10), ("never", 1):
        lines = [{"tag": "loss", "step": 0, "value": 9, "wall_time": 100}]
        lines += [{"tag": "accuracy", "step": 10 * s, "wall_time": 105 + s * seconds, "value": 0.1 * s if run == "never" else
                   "NaN" if s == 1 else 0.97 if s == 3 else 0.99 if s > 3 else 0} for s in range(6)]
        eventlog("write", "-d", tmp_path / run, "-", text="\n".join(map(json.dumps, lines)) + "\n")
    words = "compare", tmp_path, "--reach", "0.97"  # 0.97 is 0.97000002861 as a float32: reached all the same
    got = json.loads(eventlog(*words, "--tag", "accuracy", "--sort", "reached_seconds", "--json"))["series"]
    assert [(s["run"], s["reached_step"], s["reached_seconds"]) for s in got] == [
        ("fast", 30, 11.0), ("slow", 30, 35.0), ("never", None, None)]
    table = eventlog(*words, "--tag", "accuracy")
    assert re.findall(r"^  (\w+) +(\S+) +(\S+)", table, re.M)[0] == ("run", "reached", "at")
    assert re.findall(r"^  (fast|never) +(\S+) +(\S+)", table, re.M) == [("fast", "30", "11"), ("never", "-", "-")]
    assert "reached_step" in eventlog(*words, "--format=csv").splitlines()[0]
    assert "reached" not in eventlog("compare", tmp_path, "--format=csv")
    assert "no run reached 0.999" in run_message("compare", tmp_path, "--tag", "accuracy", "--reach", "0.999")
    got = json.loads(eventlog("compare", tmp_path, "--tag", "loss", "--reach", "9", "--json"))["series"]
    assert {s["reached_step"] for s in got} == {0}
    assert "--higher 'lr'" in eventlog("compare", log, "--tag", "lr", "--reach", "1", status=2)
    assert "--reach is not for pictures" in eventlog("compare", log, "--reach", "1", "-o", tmp_path / "x.svg", status=2)


def test_the_best_runs_are_one_command(log):
    words = "--tag", "accuracy", "--top", "3"
    best = ["r2", "a|b_*c*", "r10"]
    assert column(eventlog("stats", log, *words, "--sort", "last:desc")) == best
    assert column(eventlog("stats", log, *words, "--sort", "last")) == ["r1", "r10", "a|b_*c*"]
    assert column(eventlog("compare", log, *words, "--sort", "last", "--format=csv")) == best  # the better ones first
    assert column(eventlog("compare", log, *words, "--sort", "best", "--format=csv")) == ["r1", "r2", "a|b_*c*"]
    assert column(eventlog("compare", log, *words, "--sort", "last:asc", "--format=csv")) == ["r1", "r10", "a|b_*c*"]
    assert [s["run"] for s in json.loads(eventlog("compare", log, *words, "--sort", "last", "--json"))["series"]] == best
    table = eventlog("compare", log, "--tag", "accuracy", "--tag", "loss", "--top", "2", "--sort", "last")
    assert re.findall(r"^(?:(\w+), best \((m..)\)|  (\S+) .*)$", table, re.M) == [
        ("accuracy", "max", ""), ("", "", "run"), ("", "", "r2"), ("", "", "a|b_*c*"),
        ("loss", "min", ""), ("", "", "run"), ("", "", "r2"), ("", "", "a|b_*c*")]  # in each tag


def test_what_has_no_value_comes_last(log):
    for order in "last", "last:asc", "last:desc":
        assert column(eventlog("stats", log, "--tag", "accuracy", "--sort", order))[-1] == "r3"
    assert column(eventlog("stats", log, "--sort", "std:desc"), "std")[-1] == "0.0"  # of lr
    assert column(eventlog("stats", log, "--to-step", "0", "--tag", "l*", "--sort", "std"), "tag") == ["loss", "lr"] * 5


def test_names_in_natural_order(log, tmp_path):
    """For people; for programs by bytes, as the log is read."""
    natural, by_bytes = ["a|b_*c*", "r1", "r2", "r3", "r10"], ["a|b_*c*", "r1", "r10", "r2", "r3"]
    first = r"^ *(a\|b_\*c\*|r\d+)  "
    for command in "stats", "tags", "compare":
        assert re.findall(first, eventlog(command, log, "--tag", "loss", "--format=text"), re.M) == natural, command
    assert re.findall(r"^run (.*)$", eventlog("inspect", log), re.M) == natural
    assert re.findall(r"^(\S+)  ", eventlog("inspect", log, "--tree"), re.M) == natural
    assert re.findall(r"^(\S+)\t", eventlog("tail", log, "-n", "1"), re.M) == natural
    assert column(eventlog("stats", log, "--tag", "loss")) == by_bytes
    assert column(eventlog("stats", log, "--tag", "loss", "--sort", "run")) == natural
    assert column(eventlog("stats", log, "--tag", "loss", "--sort", "run:desc")) == natural[::-1]
    for file in shutil.copytree(log, tmp_path / "cut").rglob("*tfevents*"):
        file.write_bytes(file.read_bytes()[:-1])
    assert re.findall(r"/cut/([^/]*)/.* hidden, ", eventlog("verify", tmp_path / "cut", status=1)) == natural


def test_sort_is_checked(log):
    for command in "stats", "tags", "compare", "inspect":
        told = eventlog(command, log, "--sort", "lst", status=2)
        assert "--sort: no column is called 'lst'; use one of run, tag, " in told and told.count("\n") == 1
    assert "--sort does not apply to --format=json" in eventlog("inspect", log, "--json", "--sort", "points", status=2)
    assert "--top does not apply to pictures" in eventlog("compare", log, "--top", "2", "--format=svg", status=2)
    assert "--sort does not apply to --format=tb-json" in eventlog("tags", log, "--sort", "run", "--format=tb-json", status=2)


def test_inspect_ranks_over_all_runs(log):
    rows = list(csv.DictReader(io.StringIO(eventlog("inspect", log, "--sort", "tag:desc", "--top", "6", "--format=csv"))))
    assert [r["tag"] for r in rows] == ["lr"] * 5 + ["loss"]
    lines = eventlog("inspect", log, "--sort", "tag:desc", "--top", "1").splitlines()
    assert lines[0].split()[:3] == ["run", "tag", "plugin"] and len(lines) == 2
    assert json.loads(eventlog("inspect", log, "--format=jsonl").splitlines()[0])["points"] == 3


def test_hparams(kinds):
    words = "--metric", "loss:min", "--sort", "loss:min:desc"
    assert column(eventlog("hparams", kinds, "--wide", *words)) == ["trial-1", "trial-0"]
    assert json.loads(eventlog("hparams", kinds, "--json", *words, "--top", "1"))["rows"] == [
        ["trial-1", True, "adam", 0.25, 0.5]]
    assert json.loads(eventlog("hparams", kinds, "--wide", "--format=jsonl").splitlines()[0]) == {
        "run": "trial-0", "augment": False, "optimizer": "sgd", "rate": 0.0}
    assert eventlog("hparams", kinds, "--format=text").split("\n")[0].split() == ["run", "augment", "optimizer", "rate"]
    done = subprocess.run([EVENTLOG, "hparams", kinds, "--format=text"], capture_output=True, text=True,
                          env=ENVIRONMENT | {"COLUMNS": "20"})
    assert "2 columns do not fit the terminal; use --format=csv to see all" in done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 20 and "augment" in done.stdout


def test_top_of_many_keeps_the_right_ones(tmp_path):
    """More rows than are kept at a time."""
    values = [(i * 7919) % 12007 for i in range(12007)]
    write(tmp_path, [(f"t{i}", 1, v) for i, v in enumerate(values)])
    for order, want in ("last:desc", sorted(values, reverse=True)), ("last", sorted(values)):
        assert [float(v) for v in column(eventlog("stats", tmp_path, "--sort", order, "--top", "3"), "last")] == want[:3]
    assert len(column(eventlog("stats", tmp_path, "--sort", "last", "--top", "12006"))) == 12006
    assert column(eventlog("stats", tmp_path, "--top", "2"), "tag") == ["t0", "t1"]


def test_markdown(log):
    lines = eventlog("stats", log, "--tag", "accuracy", "--format=md").splitlines()
    rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines]
    assert {len(row) for row in rows} == {len(rows[0])} and rows[0][:3] == [" run ", " tag ", " points "]
    assert rows[1][:3] == [" --- ", " --- ", " ---: "]
    assert rows[2][:2] == [r" a\|b\_\*c\* ", " accuracy "] and rows[2][-1] != " "
    assert eventlog("compare", log, "--format=md").count("\n### ") == 2  # three tags, the first without a line before it


class Cells(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.rows, self.stack, self.outside = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.outside += [attributes[x] for x in ("src", "href") if x in attributes]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append(("", attributes.get("data-v")))
        self.stack.append(tag)

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop() != tag:
            pass

    def handle_data(self, data):
        if self.stack and self.stack[-1] in ("td", "th"):
            self.rows[-1][-1] = (self.rows[-1][-1][0] + data, self.rows[-1][-1][1])


def test_page(log, tmp_path):
    page = Cells(eventlog("stats", log, "--tag", "accuracy", "--format=html"))
    assert not page.outside and [len(row) for row in page.rows] == [len(page.rows[0])] * 6
    titles = [text for text, _ in page.rows[0]]
    first = dict(zip(titles, page.rows[1]))
    assert first["run"] == ("a|b_*c*", None) and first["last"] == ("0.9300", "0.9300000071525574")
    write(tmp_path / "log/<b>&", [("</td>\"", 1, 1.5)])
    assert "<b>" not in (text := eventlog("stats", tmp_path / "log", tmp_path / "log/<b>&", "--format=html"))
    assert Cells(text).rows[1][1][0] == '</td>"'


def test_diverged(log, tmp_path):
    nan, inf = float("nan"), float("inf")
    top = tmp_path / "log"
    write(top / "well", [("loss", s, 1.0) for s in range(5)])
    write(top / "gone", [("loss", s, 1 / (s + 1) if s < 3 else nan) for s in range(6)] + [("late", 0, inf), ("late", 7, 1.5)])
    write(top / "born", [("loss", s, -inf) for s in range(2)])
    rows = json.loads(eventlog("stats", top, "--diverged", "--json", status=1))
    assert rows["total"] == {"series": 4, "diverged": 2, "recovered": 1, "damage": 0}
    assert {(r["run"], r["tag"]): (r["state"], r["value"], r["since_step"], r["since_wall_time"], r["points"],
                                   r["last_finite_step"], r["last_finite"]) for r in rows["series"]} == {
        ("gone", "loss"): ("diverged", "NaN", 3, 1700000003.0, 3, 2, 0.3333333432674408),
        ("gone", "late"): ("recovered", "Infinity", 0, 1700000000.0, 1, None, None),
        ("born", "loss"): ("diverged", "-Infinity", 0, 1700000000.0, 2, None, None)}
    table = eventlog("stats", top, "--diverged", "--format=text", status=1)
    assert re.search(r"^gone +loss +diverged +nan +3 +2023-11-14 23:13:23 +3 +2 +0\.\d+$", table, re.M)
    assert json.loads(eventlog("stats", top, "--diverged", "--json", "--tag", "late"))["total"]["diverged"] == 0
    assert eventlog("stats", top, "--run", "well", "--diverged").count("\n") == 1  # the header
    assert column(eventlog("stats", log, "--diverged", status=1)) == ["r3", "r3"]


def test_times(log):
    def times(*words):
        row = next(csv.DictReader(io.StringIO(eventlog("stats", log, "--tag", "loss", "--run", "r1", *words))))
        return list(row)[14:], [row[k] for k in list(row)[14:]]

    names = ["first_wall_time", "last_wall_time"]
    assert times() == ([], [])
    assert times("--time", "unix") == (names, ["1700000000.0", "1700000002.0"])
    assert times("--time", "iso") == (names, ["2023-11-14T22:13:20Z", "2023-11-14T22:13:22Z"])
    assert times("--time", "local") == (names, ["2023-11-14T23:13:20+01:00", "2023-11-14T23:13:22+01:00"])
    assert times("--time", "relative") == (names, ["0.0", "2.0"])
    assert json.loads(eventlog("stats", log, "--format=jsonl").splitlines()[0])["last_wall_time"] == 1700000002.0
    assert "2 s\n" in eventlog("stats", log, "--tag", "loss", "--run", "r1", "--time", "relative", "--format=text").replace(
        "2.0 s", "2 s")


SECONDS, UTC, LOCAL = 1700000002.0, "2023-11-14T22:13:22Z", "2023-11-14T23:13:22+01:00"


@pytest.mark.parametrize("words, time", [
    ([], SECONDS), (["--time=unix"], SECONDS), (["--time=iso"], UTC), (["--time=local"], LOCAL)])
def test_times_of_points(log, kinds, words, time):
    points = [log, "--run", "r1", "--tag", "loss", "--from-step", "2", *words]
    assert eventlog("tail", *points).rstrip("\n").split("\t")[-1] == str(time)
    assert json.loads(eventlog("tail", *points, "--json"))["wall_time"] == time
    assert column(eventlog("export", *points), "wall_time") == [str(time)]
    assert json.loads(eventlog("export", *points, "--format=jsonl"))["wall_time"] == time
    assert json.loads(eventlog("export", *points, "--format=json"))[0]["wall_time"] == time
    assert column(eventlog("export", *points, "--format=wide", *([] if words else ["--wall-time"])), "wall_time") == [str(time)]
    rows = column(eventlog("export", kinds, "--format=histograms", *words), "wall_time")
    assert rows and {re.sub(r"\.\d+", "", re.sub(r"\d", "9", row)) for row in rows} == {
        re.sub(r"\.\d+", "", re.sub(r"\d", "9", str(time)))}


def test_times_are_checked(log):
    assert "--time does not apply to --format=tb-csv" in eventlog("export", log, "--format=tb-csv", "--time=iso", status=2)
    assert "'utc' is not one of unix|iso|local" in eventlog("tail", log, "--time", "utc", status=2)
