"""eventlog plot: charts whose dots stand where the points are, and TensorBoard's smoothing."""
import fcntl
import json
import math
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios
import xml.etree.ElementTree

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "TERM", "LC_ALL", "LANG")}


def plot(*arguments, status=0, **environment):
    done = subprocess.run([TOOL, "plot", *map(str, arguments)], capture_output=True, text=True,
                          env={**ENVIRONMENT, "LC_ALL": "C.UTF-8", **environment})
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


@pytest.fixture
def log(tmp_path):
    rows = "run,step,wall_time,loss,acc,odd\n"
    for run, start in (("a", 1.7e9), ("b", 1.7e9 + 5000)):
        for s in range(100):
            odd = "nan" if s % 10 == 0 else -1 if s == 11 else s
            rows += f"{run},{s},{start + 60 * s},{math.exp(-s / 20) + (run == 'b')},{s / 100},{odd}\n"
    subprocess.run([TOOL, "write", "--dir", tmp_path / "log", "-"], input=rows, text=True, check=True)
    return tmp_path / "log"


def smoothed(values, weight):
    """As TensorBoard's page computes it (vz_line_chart, debiased exponential moving average)."""
    last, count, out = 0, 0, []
    for v in values:
        if not math.isfinite(v):
            out.append(v)
            continue
        last = last * weight + (1 - weight) * v
        count += 1
        out.append(last / (1 - weight ** count if weight != 1 else 1))
    return out


def test_points_and_smoothing(log):
    curves = json.loads(plot(log, "--json", "--smoothing", 0.6))["curves"]
    assert [(c["run"], c["tag"]) for c in curves] == [(r, t) for t in ("acc", "loss", "odd") for r in "ab"]
    raw = json.loads(plot(log, "--json"))["curves"]
    for a, b in zip(raw, curves):
        want = smoothed([float(v) for _, v in a["points"]], 0.6)
        got = [float(v) for _, v in b["points"]]
        assert len(want) == len(got) == 100 and all(math.isclose(x, y, rel_tol=1e-12) or x != x and y != y for x, y in zip(want, got))
    wall = json.loads(plot(log, "--json", "--x", "wall", "--tag", "acc"))["curves"][1]["points"]
    relative = json.loads(plot(log, "--json", "--x", "relative", "--tag", "acc"))["curves"][1]["points"]
    assert wall[1][0] == 1.7e9 + 5060 and relative[1][0] == 60
    both = json.loads(plot(log, "--json", "--x", "relative,step", "--tag", "acc"))["curves"]
    assert [(c["run"], c["x"], c["points"][1][0]) for c in both] == [
        ("a", "relative", 60), ("b", "relative", 60), ("a", "step", 1), ("b", "step", 1)]


def test_over_time_points_stand_as_written_and_over_steps_by_step(tmp_path):
    """A run that was set back to step 1: over time its curve goes back, over steps the last value of a step counts."""
    rows = "step,wall_time,loss\n0,100,5\n1,101,4\n2,102,3\n1,103,2\n2,104,1\n"
    subprocess.run([TOOL, "write", "--dir", tmp_path / "log", "-"], input=rows, text=True, check=True)
    curves = json.loads(plot(tmp_path / "log", "--json", "--x", "step,relative"))["curves"]
    assert curves[0]["points"] == [[0, 5], [1, 2], [2, 1]]
    assert curves[1]["points"] == [[0, 5], [1, 4], [2, 3], [3, 2], [4, 1]]


def dots(text):
    """{(column, row)} of the braille dots of a chart, rows from above, and the number of rows."""
    rows = [re.split("[│┤]", line)[1] for line in text.splitlines() if re.search("[│┤]", line)]
    found = set()
    for r, line in enumerate(rows):
        for c, character in enumerate(line):
            bits = ord(character) - 0x2800 if 0x2800 <= ord(character) < 0x2900 else 0
            for bit, (x, y) in enumerate(((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))):
                if bits >> bit & 1:
                    found.add((2 * c + x, 4 * r + y))
    return found, 4 * len(rows)


def test_dots_stand_where_the_points_are(log):
    text = plot(log / "a", "--tag", "loss", "--width", 85, "--height", 10)
    found, rows = dots(text)
    values = [math.exp(-s / 20) for s in range(100)]
    low, high = min(values), max(values)
    for s, v in enumerate(values):  # 85 characters: three of values, a blank, the axis, 80 of dots
        x, y = s / 99 * 159, rows - 1 - (v - low) / (high - low) * (rows - 1)
        assert any(abs(x - a) <= 1 and abs(y - b) <= 1 for a, b in found), (s, x, y)
    assert max(x for x, _ in found) == 159 and max(map(len, text.splitlines())) == 85
    assert re.search(r"━ \. +0\.0071 +0\.0071 +99\n", text)
    straight, rows = dots(plot(log / "a", "--tag", "loss", "--width", 86, "--height", 10, "--log-y"))
    assert len(straight) >= 160
    for x, y in straight:  # a logarithmic scale makes an exponential a line
        assert abs(y - x / 159 * (rows - 1)) <= 1.5


def test_no_colours_no_braille(log):
    text = plot(log, "--tag", "loss", "--ascii")
    assert text.isascii() and "\033" not in text and re.search("\\* a +[0-9.]+ +[0-9.]+ +99\n +\\+ b", text)
    assert plot(log, "--tag", "loss", LC_ALL="C").isascii()
    letters = plot(log, "--tag", "loss")
    assert re.search("\n +A a +[0-9.]+.*\n +B b ", letters) and re.search("│.*⣀A$", letters, re.M)
    assert "\033[34m" in plot(log, "--tag", "loss", "--color", "always")
    assert re.search("^ +Two runs\n\n +loss\n", plot(log, "--tag", "loss", "--title", "Two runs"))
    assert max(map(len, plot(log, "--tag", "loss", COLUMNS="60").splitlines())) <= 60


def on_terminal(log, columns, **environment):
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    process = subprocess.Popen([TOOL, "plot", log, "--tag", "acc"], stdout=child, stdin=child, stderr=subprocess.DEVNULL,
                               env={**ENVIRONMENT, "LC_ALL": "C.UTF-8", "TERM": "xterm", **environment})
    os.close(child)
    out = b""
    try:
        while piece := os.read(parent, 65536):
            out += piece
    except OSError:  # how a terminal ends on Linux
        pass
    os.close(parent)
    assert process.wait() == 0
    return out.decode()


def test_on_a_terminal(log):
    text = on_terminal(log, 50)
    plain = re.sub("\033\\[[0-9]*m", "", text)
    assert "\033[" in text and max(len(line.rstrip("\r")) for line in plain.split("\n")) == 50
    assert "\033[" not in on_terminal(log, 50, NO_COLOR="1")


def test_pictures_and_wrong_use(log, tmp_path):
    plot(log, "-o", tmp_path / "a.svg", "--smoothing", "0.9", "--log-y")
    root = xml.etree.ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag.endswith("svg") and len(root.findall(".//{*}circle")) > 5
    assert "already exists" in plot(log, "-o", tmp_path / "a.svg", status=2)
    plot(log, "-o", tmp_path / "a.txt")
    assert "final" in (tmp_path / "a.txt").read_text()
    plot(log, "--tag", "none", status=1)
    for arguments in ([], [log, "--smoothing", 1], [log, "--x", "steps"], [log, "--width", 5], [tmp_path / "none"]):
        plot(*arguments, status=2)
    odd = plot(log / "a", "--tag", "odd", "--log-y", "--ascii", "--higher", "odd")
    assert re.search("99 +99 +99\n", odd) and "1 point not above 0" in odd


@pytest.fixture
def write(tmp_path):
    """A log of rows 'RUN,STEP,WALL,VALUE' of one tag."""
    def log(name, rows, tag="loss"):
        text = f"run,step,wall_time,{tag}\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
        subprocess.run([TOOL, "write", "--dir", tmp_path / name, "-"], input=text, text=True, check=True)
        return tmp_path / name
    return log


DIVERGED = [("good", s, 100 + s, 1 - s / 20) for s in range(0, 20, 2)] + [
    ("bad", 0, 100, 1), ("bad", 4, 104, 0.5), ("bad", 8, 108, "nan"), ("bad", 12, 112, "inf"), ("bad", 14, 114, "-inf"),
    ("bad", 18, 118, "nan")]

# What is not a number is marked at the height of the value before it, infinities at the edges.
DIVERGED_CHART = """\
     loss
1.0 ┤⠙⠶⡢⠤⣀⡀                   △
    │  ⠈⠒⢄⠈⠉⠑⠒⠢⠤⣀⡀
    │     ⠉⠢⣀    ⠈⠉⠒⠒⠤⠤⣀⡀
0.5 ┤        ⠑        ▲ ⠈⠉⠒⠢⠤⢄⣀⡀           ▲A
    │                          ⠈⠉⠒⠢⠤⣀⣀
    │                              ▽  ⠉⠉⠒⠢⠤⣀B
    └┬────────────────────┬───────────────────
     0                   10
     step
     ▲ not a number   △ +inf   ▽ -inf
       run    final  best (min)  at step
     A bad      nan      0.5000        4
     B good  0.1000      0.1000       18
"""
DIVERGED_ASCII = """\
     loss
1.0 +++                         ^
    |  +++++++++
    |     ***   +++++++++
0.5 +        **        ! +++++++++           !
    |                             +++++++++
    |                               v      +++
    ++---------------------+------------------
     0                    10
     step
     ! not a number   ^ +inf   v -inf
       run    final  best (min)  at step
     * bad      nan      0.5000        4
     + good  0.1000      0.1000       18
"""


def marks(root, kind):
    """Places (x, y) of the marks of that kind in an SVG's plots."""
    found = [e.get("d") for e in root.findall(".//{*}path") if kind in e.get("class").split()]
    return [tuple(map(float, re.match(r"M(\S+) (\S+?)m", d).groups())) for d in found]


def picture(path):
    root = xml.etree.ElementTree.parse(path).getroot()
    return root, [t.text for t in root.findall(".//{*}text")]


def test_divergence_is_seen(write, tmp_path):
    log = write("log", DIVERGED)
    assert plot(log, "--width", 46, "--height", 6) == DIVERGED_CHART
    assert plot(log, "--width", 46, "--height", 6, "--ascii") == DIVERGED_ASCII
    plot(log, "-o", tmp_path / "a.svg")
    root, texts = picture(tmp_path / "a.svg")
    circles = {(c.get("class"), float(c.get("cx")), float(c.get("cy"))) for c in root.findall(".//{*}circle")}
    best = next((x, y) for name, x, y in circles if name == "best c0")
    nan, legend = marks(root, "nan")[:2], marks(root, "nan")[2:]
    assert len(nan) == 2 and len(legend) == 1
    assert [y for _, y in nan] == [best[1]] * 2 and [y for _, y in marks(root, "plus")][0] < best[1]
    assert marks(root, "minus")[0][1] > best[1] and "nan" in texts and "not a number" in texts
    assert not [c for c in circles if c[0] == "f last c0"]  # there is no last value to put a dot at


def test_outliers_do_not_flatten_the_rest(write, tmp_path):
    rows = [(run, s, 100 + s, 0.1 if s == 0 else 0.95 + s / 1000) for run in ("mpi", "ps") for s in range(0, 40, 5)]
    log = write("log", rows, "precision")
    text = plot(log, "--width", 60, "--height", 6)
    assert "2 points below, down to 0.1\n" in text and "↓ below the axis" in text and "0.10 ┤" not in text
    assert text.splitlines()[6].split("│")[1].startswith("↓")  # at its step, in the lowest row
    plot(log, "-o", tmp_path / "a.svg")
    root, texts = picture(tmp_path / "a.svg")
    lines = [e.get("d") for e in root.findall(".//{*}path") if e.get("class").startswith("line c") and "L" in e.get("d")]
    ends = [float(y) for d in lines for y in re.findall(r"[ML]\S+? ([0-9.]+)", d)]
    below = marks(root, "below")
    assert len(lines) == 2 and len(below) == 3 and max(ends) <= below[0][1]  # clipped at the axis; two marks and a legend
    assert not re.search("above", " ".join(filter(None, texts)))


def width_of(text):
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize("columns", [30, 60, 80, 200])
def test_24_runs_and_long_names_fit(write, columns):
    name = "sweep/2026-02-11/resnet32-momentum0.9-decay5e-4-warmup5-smoothing0.1/seed-%02d/träin"
    rows = [(name % k, s, 100 + s, k + 10 / (s + 1)) for k in range(24) for s in range(0, 300, 7 + k)]
    log = write("log", rows, "optimizer/groups/0/a/very/long/name/that/goes/on/and/on/learning_rate_and_loss_per_token")
    for arguments in ((), ("--ascii",), ("--color", "always"), ("--x", "wall"), ("--log-y",)):
        text = re.sub("\033\\[[0-9]*m", "", plot(log, "--width", columns, *arguments))
        assert width_of(text) == columns, arguments
        legend = re.findall(r"^ +(\S) sw", text, re.M)
        assert len(set(legend)) == 24, arguments  # each line has a sign of its own ...
        if "--ascii" not in arguments:  # ... that is at the end of a curve
            drawn = "".join(line[-12:] for line in text.splitlines() if re.search("[│┤]", line))
            assert set(legend) <= set(re.sub("[^A-Z]", "", drawn)) | set("".join(re.findall("[A-X]", text))), arguments


def test_24_runs_in_a_picture(write, tmp_path):
    rows = [(f"run-{k:02}", s, 100 + s, k + 10 / (s + 1)) for k in range(24) for s in range(0, 300, 7)]
    log = write("log", rows)
    plot(log, "-o", tmp_path / "a.svg")
    root, _ = picture(tmp_path / "a.svg")
    letters = [(float(t.get("y")), t.text) for t in root.findall(".//{*}text") if "letter" in t.get("class").split()]
    beside = letters[:24]  # beside the plot from above, then one in each row below
    assert len(letters) == 48 and len({t for _, t in beside}) == 24
    assert [t for _, t in beside] == [chr(ord("X") - k) for k in range(24)]  # the highest first
    assert all(b - a > 5 for (a, _), (b, _) in zip(beside, beside[1:]))
    styles = [e.get("class") for e in root.findall(".//{*}path") if e.get("class").startswith("line c")]
    assert len(set(styles)) == 24


@pytest.mark.parametrize("drawn, lettered", [("ps", False), ("mpi ps", False), ("a b ps-async-4 mpi", False), ("ps-2 mpi-2 ps-4", True)])
def test_a_strategy_has_one_colour_everywhere(tmp_path, drawn, lettered):
    """In pictures and on a terminal, whatever else is drawn; runs of one have dashes, and letters, of their own."""
    names = [f"{name}/eval" for name in drawn.split()]
    rows = "".join(f"{name},{step},{step / (i + 2)}\n" for i, name in enumerate(names) for step in range(5))
    subprocess.run([TOOL, "write", "--dir", tmp_path / "log", "-"], input="run,step,acc\n" + rows, text=True, check=True)
    svg = plot(tmp_path / "log", "--format", "svg")
    order = sorted(names, key=lambda name: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)])
    styles = dict(zip(order, re.findall(r'<path class="line (c\d d\d)"', svg)))
    colours = {name: style.split()[0] for name, style in styles.items()}
    own = {"mpi": "c0", "ps": "c1", "ps-async": "c2"}
    for name in names:
        if (strategy := re.sub(r"(-\d+)?/eval", "", name)) in own:
            assert colours[name] == own[strategy]
        else:
            assert colours[name] not in ("c0", "c2") and name in ("a/eval", "b/eval")
    assert len(set(styles.values())) == len(names) and (svg.count("letter m") > 0) == lettered
    lines = plot(tmp_path / "log", "--color", "always").splitlines()
    for name, code in ("mpi", 34), ("ps", 31), ("ps-async", 32):
        for line in [line for line in lines if re.search(rf"\b{name}(-\d+)?/eval", line)]:
            assert f"\033[{code}m" in line


def test_all_strategies_of_the_trainer_have_a_colour(tmp_path):
    """Each alone in a picture: a run that is of no strategy would have the first colour, as mpi has."""
    said = subprocess.run([BUILD / "bin/trainer", "--help"], capture_output=True, text=True, check=True).stdout
    names = re.search(r"--run-option (\S+)", said).group(1).split("|")
    for name in names:
        subprocess.run([TOOL, "write", "--dir", tmp_path / name, "-"], input=f"run,step,acc\n{name},1,1\n", text=True, check=True)
    colours = [re.search(r'<path class="line (c\d)', plot(tmp_path / name, "--format", "svg")).group(1) for name in names]
    assert len(set(colours)) == len(names) >= 6, dict(zip(names, colours))


def test_one_point_and_flat_curves(write, tmp_path):
    log = write("log", [("a", 5, 100, 0.5), ("b", 5, 101, "nan")])
    text = plot(log, "--width", 40, "--height", 4)
    assert "▲" in text and re.search(r"A a +0\.5\d* ", text) and re.search("B b +nan +- +-\n", text)
    plot(log, "-o", tmp_path / "a.svg")
    root, texts = picture(tmp_path / "a.svg")
    lines = [e.get("d") for e in root.findall(".//{*}path") if e.get("class") == "line c0 d0"]
    assert lines[0].endswith("m-1 0h2")  # a line of one point is seen
    assert len(marks(root, "nan")) == 2


@pytest.mark.parametrize("span, labels", [((0.987651, 0.987659), ["0.987652", "0.987658"]), ((1e-8, 3e-8), ["1e-08", "2e-08"])])
def test_no_two_ticks_say_the_same(write, span, labels):
    log = write("log", [("a", s, 100 + s, repr(span[0] + (span[1] - span[0]) * s / 10)) for s in range(11)])
    ticks = re.findall(r"^ *(\S+) ┤", plot(log), re.M)
    assert len(set(ticks)) == len(ticks) > 2 and set(labels) <= set(ticks)


def test_range_of_values(write, tmp_path):
    log = write("log", [("a", s, 100 + s, s) for s in range(11)])
    text = plot(log, "--y-range", "2,8", "--width", 60, "--height", 7)
    assert "2 points above, up to 10; 2 points below, down to 0\n" in text and "values from 2 to 8\n" in text
    ticks = re.findall(r"^ *(\S+) ┤", text, re.M)
    assert (ticks[0], ticks[-1]) == ("8", "2")
    assert "down to" not in plot(log, "--y-range", ",8") and "up to" not in plot(log, "--y-range", "2,")
    outliers = write("outliers", [("a", s, 100 + s, 1000 if s == 50 else s % 7) for s in range(100)])
    assert "1 point above, up to 1000" in plot(outliers) and "1 point above" not in plot(outliers, "--clip-outliers", "off")
    cut = plot(outliers, "--clip-outliers", "on", "--y-range", "-1,")
    assert "1 point above" in cut and "the axis without outliers" in cut
    for wrong in ("1", "2,1", "a,b", ","):
        assert "is not LOW,HIGH" in plot(log, "--y-range", wrong, status=2)
    assert "--log-y cannot show" in plot(log, "--y-range", "0,1", "--log-y", status=2)


def test_relative_steps(write):
    log = write("log", [(run, s, 100 + s, s) for run, first in (("old", 0), ("tuned", 1000)) for s in range(first, first + 5)])
    curves = json.loads(plot(log, "--json", "--x", "relative-step"))["curves"]
    assert [c["points"][0] for c in curves] == [[0, 0], [0, 1000]] and curves[1]["x"] == "relative-step"
    assert "steps since the run's first point" in plot(log, "--x", "relative-step")
    later = json.loads(plot(log, "--json", "--from-step", 2, "--to-step", 1003))["curves"]
    assert [[p[0] for p in c["points"]] for c in later] == [[2, 3, 4], [1000, 1001, 1002, 1003]]


SEEDS = [(f"{way}/seed-{k}", s, 100 + s + k, k + s * (way == "ps")) for way in ("mpi", "ps") for k in range(3) for s in range(0, 9, 2)]


def test_groups_and_bands(write, tmp_path):
    log = write("log", SEEDS)
    curves = json.loads(plot(log, "--json", "--group", "seed-*"))["curves"]
    assert [(c["run"], c["runs"], c["band"]) for c in curves] == [
        (f"{way}/seed-*", [f"{way}/seed-{k}" for k in range(3)], "deviation") for way in ("mpi", "ps")]
    assert curves[1]["points"] == [[s, 1 + s, s, 2 + s] for s in range(0, 9, 2)]  # mean, and one deviation of 0, 1, 2
    both = json.loads(plot(log, "--json", "--group", "mpi/*=all-reduce", "--band", "min-max"))["curves"]
    assert [c["run"] for c in both] == ["all-reduce", "ps/seed-0", "ps/seed-1", "ps/seed-2"]
    assert both[0]["points"] == [[s, 1, 0, 2] for s in range(0, 9, 2)] and both[1]["points"][0] == [0, 0]
    alone = json.loads(plot(log, "--json", "--band", "min-max"))["curves"]
    assert len(alone) == 1 and alone[0]["points"][-1] == [8, 5, 0, 10] and len(alone[0]["runs"]) == 6
    smooth = json.loads(plot(log, "--json", "--group", "ps/*=x", "--run", "ps/*", "--smoothing", 0.5))["curves"][0]["points"]
    want = smoothed([s + 1 for s in range(0, 9, 2)], 0.5)  # each run is smoothed, then their mean is taken
    assert all(math.isclose(p[1], w) and math.isclose(p[3] - p[1], 1) for p, w in zip(smooth, want))
    over_time = json.loads(plot(log, "--json", "--group", "mpi/*=x", "--run", "mpi/*", "--x", "wall"))["curves"][0]["points"]
    assert [p[:2] for p in over_time[:3]] == [[100, 0], [101, 0.5], [102, 1]]  # runs count from their first point on
    text = plot(log, "--group", "seed-*", "--width", 60, "--height", 8, "--ascii")
    assert "mpi/seed-* (3 runs)" in text and "." in text.split("+-")[0] and width_of(text) == 60
    plot(log, "--group", "seed-*", "-o", tmp_path / "a.svg")
    root, texts = picture(tmp_path / "a.svg")
    bands = [e.get("d") for e in root.findall(".//{*}path") if "band" in e.get("class").split()]
    assert len(bands) == 2 and all(d.count("L") == 9 and d.endswith("z") for d in bands)
    assert "mean and standard deviation of the runs of a group" in texts
    assert "no run matches" in plot(log, "--group", "sed-*", status=2)
    assert "neither GLOB nor GLOB=NAME" in plot(log, "--group", "=x", status=2)
    compare = subprocess.run([TOOL, "compare", log, "--group", "seed-*"], capture_output=True, text=True)
    assert compare.returncode == 2 and "apply only to pictures" in compare.stderr


def test_a_run_of_a_group_that_diverges_ends_its_band(write, tmp_path):
    rows = [(f"seed-{k}", s, 100 + s, "nan" if k and s > 4 else 1 + k) for k in range(2) for s in range(9)]
    log = write("log", rows)
    curve = json.loads(plot(log, "--json", "--group", "seed-*"))["curves"][0]["points"]
    assert [p[1] for p in curve] == [1.5] * 5 + ["NaN"] * 4 or [p[1] for p in curve][5:] == [None] * 4
    text = plot(log, "--group", "seed-*")
    assert "▲ not a number" in text and re.search(r"\(2 runs\) +nan", text)
    plot(log, "--group", "seed-*", "-o", tmp_path / "a.svg")
    root, _ = picture(tmp_path / "a.svg")
    band = next(e.get("d") for e in root.findall(".//{*}path") if "band" in e.get("class").split())
    assert band.count("L") == 9


def test_a_picture_says_what_was_chosen(write, tmp_path):
    log = write("log", [("a", s, 1e9 + s, s) for s in range(10)])
    plot(log, "-o", tmp_path / "a.svg", "--smoothing", 0.6, "--log-y", "--from-step", 2, "--view", "tensorboard",
         "--y-range", "0.5,")
    _, texts = picture(tmp_path / "a.svg")
    lines = ["points as TensorBoard shows them, steps from 2, smoothing 0.6, logarithmic scale,", "values from 0.5"]
    assert " ".join(texts[:2]) == " ".join(lines)
    chart = plot(log, "--smoothing", 0.6, "--log-y", "--from-step", 2, "--view", "tensorboard", "--y-range", "0.5,", "--width", 85)
    assert " ".join(line.strip() for line in chart.splitlines()[:3]) == " ".join(lines) + " "
    plot(log, "-o", tmp_path / "b.svg")
    root, _ = picture(tmp_path / "b.svg")
    assert not root.findall(".//{*}text[@class='tick settings']")


@pytest.mark.parametrize("command", ["plot", "compare"])
def test_png(log, tmp_path, command):
    """The SVG in two pixels a unit, by librsvg, which is loaded when it is needed."""
    image = pytest.importorskip("PIL.Image")
    for name in ("a.svg", "a.PNG"):
        done = subprocess.run([TOOL, command, log, "--tag", "loss", "-o", tmp_path / name], capture_output=True, text=True)
        if "librsvg-2.so.2: cannot open" in done.stderr:
            pytest.skip("librsvg2-2 is not installed")
        assert done.returncode == 0, done.stderr
    root, _ = picture(tmp_path / "a.svg")
    drawn = image.open(tmp_path / "a.PNG").convert("RGB")
    assert drawn.size == (2 * int(root.get("width")), 2 * int(root.get("height")))
    counts = {c: n for n, c in drawn.getcolors(1 << 20)}
    assert max(counts, key=counts.get) == (255, 255, 255)  # on light ground
    assert counts[0x00, 0x72, 0xb2] > 1000 and counts[0xd5, 0x5e, 0x00] > 500  # both curves
    text = drawn.crop((0, drawn.height - 80, drawn.width // 2, drawn.height)).getcolors(1 << 20)
    assert len(text) > 20  # letters have soft edges


def test_png_without_librsvg(log, tmp_path):
    """The build and other commands do not need it; without it PNG is refused in a sentence, and no file is left."""
    assert "rsvg" not in subprocess.run(["ldd", TOOL], capture_output=True, text=True, check=True).stdout
    (tmp_path / "librsvg-2.so.2").write_bytes(b"")
    message = plot(log, "-o", tmp_path / "a.png", status=2, LD_LIBRARY_PATH=str(tmp_path))
    assert "drawing a PNG needs librsvg" in message and "librsvg2-2" in message and len(message.splitlines()) == 1
    assert [p.name for p in tmp_path.iterdir() if "a.png" in p.name] == []
    assert plot(log, "-o", tmp_path / "a.svg", LD_LIBRARY_PATH=str(tmp_path)) == ""
