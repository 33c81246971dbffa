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
    rows = [line[12:] for line in text.splitlines() if line[11:12] in "│┤" and line[11:12]]
    found = set()
    for r, line in enumerate(rows):
        for c, character in enumerate(line):
            bits = ord(character) - 0x2800 if 0x2800 <= ord(character) < 0x2900 else 0
            for bit, (x, y) in enumerate(((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))):
                if bits >> bit & 1:
                    found.add((2 * c + x, 4 * r + y))
    return found, 4 * len(rows)


def test_dots_stand_where_the_points_are(log):
    text = plot(log / "a", "--tag", "loss", "--width", 92, "--height", 10)
    found, rows = dots(text)
    values = [math.exp(-s / 20) for s in range(100)]
    low, high = min(values), max(values)
    for s, v in enumerate(values):
        x, y = s / 99 * 159, rows - 1 - (v - low) / (high - low) * (rows - 1)
        assert any(abs(x - a) <= 1 and abs(y - b) <= 1 for a, b in found), (s, x, y)
    assert max(x for x, _ in found) == 159 and all(len(line) <= 92 for line in text.splitlines())
    assert re.search(r"━ \.  final 0\.00708\d*, best 0\.00708\d* at 99", text)
    straight, rows = dots(plot(log / "a", "--tag", "loss", "--width", 92, "--height", 10, "--log-y"))
    assert len(straight) >= 160
    for x, y in straight:  # a logarithmic scale makes an exponential a line
        assert abs(y - x / 159 * (rows - 1)) <= 1.5


def test_no_colours_no_braille(log):
    text = plot(log, "--tag", "loss", "--ascii")
    assert text.isascii() and "\033" not in text and "* a  final" in text and "+ b  final" in text
    assert plot(log, "--tag", "loss", LC_ALL="C").isascii()
    letters = plot(log, "--tag", "loss")
    assert "A a  final" in letters and "B b  final" in letters and re.search("│.*A$", letters, re.M)
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
    assert "exists already" in plot(log, "-o", tmp_path / "a.svg", status=2)
    plot(log, "-o", tmp_path / "a.txt")
    assert "final" in (tmp_path / "a.txt").read_text()
    plot(log, "--tag", "none", status=1)
    for arguments in ([], [log, "--smoothing", 1], [log, "--x", "steps"], [log, "--width", 5], [tmp_path / "none"]):
        plot(*arguments, status=2)
    odd = plot(log / "a", "--tag", "odd", "--log-y", "--ascii")
    assert "final 99, best 99 at 99" in odd
