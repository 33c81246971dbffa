#!/usr/bin/env python3
"""Make the pictures and charts of docs/gallery.md, and a page that shows them beside TensorBoard: `make gallery`.

usage: make.py [--build DIR] [--logs DIR] [--check]      run from the root of the checkout

Write the logs, the same ones each time, then run each command of gallery.md: a block that begins with `eventlog`. A
picture goes where its command says; what a command prints replaces the block of text behind it. Last take screenshots of
TensorBoard on the same logs and write BUILD/gallery/index.html, which has each beside our picture. --check changes
nothing in docs/, takes no screenshots, and exits 1 if a picture or a block of text is not what its command makes.
"""
import argparse
import math
import os
import pathlib
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path[:0] = ["tests"]
from browser import HELPERS, chromium
from tensorboard_server import TensorBoard
from waiting import wait_for

PAGE, PICTURES = pathlib.Path("docs/gallery.md"), pathlib.Path("docs/gallery")
# A command and, where it writes no file, what it prints.
BLOCK = re.compile(r"```sh\n(eventlog (?:.|\n)*?)\n```\n(?:\n```text\n((?:.|\n)*?)```\n)?")
START = 1.7e9


def untrained(draw):
    """Evaluations of three ways of training: the first is of a net that has learnt nothing."""
    for run, seconds, late in (("mpi", 0.2, 0), ("ps", 0.4, 0), ("ps-async", 0.15, 0.011)):
        for step in range(0, 801, 50):
            trained = 0.97 + 0.02 * (1 - math.exp(-step / 300)) - late + draw.gauss(0, 0.0006)
            yield run, step, START + seconds * step, "precision", trained if step else 0.098


def diverged(draw):
    """One run ends, one has a hole, one never was in danger."""
    for run, rate in (("lr0.1", 0.012), ("lr0.3", 0.02), ("lr1", 0.04)):
        for step in range(0, 200, 2):
            loss = 2.3 * math.exp(-step * rate) + 0.2 + draw.gauss(0, 0.03)
            if run == "lr0.3" and 120 <= step < 140:
                loss = math.nan
            if run == "lr1" and step >= 50:
                loss = 10 ** (step - 48) if step < 60 else math.inf if step < 70 else math.nan
            yield run, step, START + step, "loss", loss


def logarithmic(draw):
    """Losses over five powers of ten, and a learning rate that is 0 at first."""
    for run, power in (("adam", 1.6), ("sgd", 1.0)):
        for step in range(0, 1000, 4):
            yield run, step, START + step, "loss", 10 * (1 + step) ** -power * math.exp(draw.gauss(0, 0.15))


def sweep(draw):
    """24 runs."""
    for k in range(24):
        for step in range(0, 1000, 10):
            accuracy = 0.95 - 0.016 * k - 0.85 * math.exp(-step / (60 + 14 * k)) + draw.gauss(0, 0.004)
            yield f"lr{10 ** (-4 + k % 6 * 0.5):.0e}-decay{k // 6}", step, START + step, "accuracy", accuracy


def names(draw):
    """Runs and a tag as long as some write them."""
    run = "experiments/2026-02-11/resnet32-cifar10-momentum0.9-decay5e-4-cosine-warmup5-smoothing0.1/seed-%d/train"
    tag = "optimizer/param_groups/0/average_loss_per_token_of_the_last_hundred_batches"
    for k in range(4):
        for step in range(0, 300, 3):
            yield run % k, step, START + step, tag, math.exp(-step / (50 + 10 * k)) + draw.gauss(0, 0.004)


def one(_):
    """A single evaluation of each run."""
    for run, value in (("mpi", 0.981), ("ps", 0.979)):
        yield run, 700, START, "precision", value


def million(draw):
    """10^6 points, one of them a spike."""
    for step in range(1000000):
        spike = 1.5 if step == 612345 else 0
        yield ".", step, START + step / 10, "loss", 2.2 * math.exp(-step / 50000) + 0.2 + draw.gauss(0, 0.04) + spike


def seeds(draw):
    """Five seeds of two ways of training."""
    for way, late in (("all-reduce", 80), ("async", 110)):
        for seed in range(5):
            level = draw.gauss(0, 0.05)
            for step in range(0, 500, 5):
                loss = 2.3 * math.exp(-step / late) + 0.25 + level + draw.gauss(0, 0.04)
                yield f"{way}/seed-{seed}", step, START + step, "loss", loss


LOGS = [untrained, diverged, logarithmic, sweep, names, one, million, seeds]


def write_logs(eventlog, logs):
    for make in LOGS:
        directory = logs / make.__name__
        shutil.rmtree(directory, ignore_errors=True)
        rows = "".join(f"{run},{step},{wall},{tag},{value:.7g}\n" for run, step, wall, tag, value in make(random.Random(7)))
        subprocess.run([eventlog, "write", "--dir", directory, "-"], input="run,step,wall_time,tag,value\n" + rows,
                       text=True, check=True)


def run(eventlog, command, logs, out):
    """What the command prints, its logs and its picture taken from and put into those directories."""
    words = [word.replace("build/gallery", str(logs)).replace("docs/gallery/", f"{out}/") for word in shlex.split(command)]
    for target in (words[i + 1] for i, word in enumerate(words) if word == "-o"):
        pathlib.Path(target).unlink(missing_ok=True)
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    return subprocess.run([eventlog, *words[1:]], env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def remake(eventlog, logs, out):
    """The page with what its commands print now; their pictures are put into out."""
    def replace(match):
        printed = run(eventlog, match[1].replace("\\\n", " "), logs, out)
        assert bool(printed) == (match[2] is not None), f"{match[1]}: a block of text for what it prints, and only then"
        return f"```sh\n{match[1]}\n```\n" + (f"\n```text\n{printed}```\n" if printed else "")

    return BLOCK.sub(replace, PAGE.read_text())


def check(eventlog, logs):
    """What in docs/ is not what its command makes."""
    with tempfile.TemporaryDirectory() as scratch:
        page, made = remake(eventlog, logs, scratch), sorted(pathlib.Path(scratch).iterdir())
        old = [path.name for path in made if not (PICTURES / path.name).exists() or
               path.read_bytes() != (PICTURES / path.name).read_bytes()]
        old += {path.name for path in PICTURES.glob("*.svg")} - {path.name for path in made}
    return old + [PAGE.name] * (page != PAGE.read_text())


def screenshot(browser, name, logs):
    """Of TensorBoard on that log as it opens, its chart in full size."""
    with tempfile.TemporaryDirectory() as scratch, \
            TensorBoard(logs / name, pathlib.Path(scratch) / "output", loader="auto") as tensorboard:
        tensorboard.until_active({"scalars"})
        browser.get(f"{tensorboard.address}/?darkMode=false#timeseries")
        browser.execute_script(HELPERS)

        def press(label):
            wait_for(lambda: browser.execute_script("const found = all(`button[aria-label='${arguments[0]}']`);"
                                                    "if (found.length) found[0].click(); return found.length", label),
                     label)

        wait_for(lambda: browser.execute_script("return all('line-chart canvas, line-chart svg').length"), "a chart")
        press("Toggle settings side pane")
        if name == "logarithmic":
            press("More line chart options")
            press("Toggle Y-axis log scale on line chart")
        press("Toggle full size mode")
        last = b""

        def still():  # charts are drawn a little after their data came
            nonlocal last
            now = browser.get_screenshot_as_png()
            same, last = now == last, now
            return same

        wait_for(still, "the page to rest")
        return last


def compare(logs):
    """Write index.html in logs: each picture beside a screenshot of TensorBoard."""
    names = [make.__name__ for make in LOGS if (PICTURES / f"{make.__name__}.svg").exists()]
    rows = []
    try:
        with chromium() as browser:
            browser.set_window_size(1240, 900)
            for name in names:
                print(f"gallery: TensorBoard on {logs / name}", flush=True)
                (logs / f"{name}.png").write_bytes(screenshot(browser, name, logs))
                shutil.copy(PICTURES / f"{name}.svg", logs)
                rows.append(f"<h2>{name}</h2><img src='{name}.svg'><img src='{name}.png'>\n")
    except pytest.skip.Exception as missing:
        sys.exit(f"gallery: the pictures are made; screenshots of TensorBoard are not: {missing}")
    (logs / "index.html").write_text("<!doctype html><meta charset='utf-8'><title>eventlog and TensorBoard</title>"
                                     "<style>img {width: 49%; vertical-align: top}</style>\n" + "".join(rows))
    print(f"gallery: {logs / 'index.html'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build")
    parser.add_argument("--logs", type=pathlib.Path, help="default: BUILD/gallery")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    eventlog, logs = options.build.resolve() / "bin/eventlog", options.logs or options.build / "gallery"
    write_logs(eventlog, logs)
    if options.check:
        old = check(eventlog, logs)
        sys.exit(f"not what the commands of {PAGE} make: {', '.join(old)}; run: make gallery" if old else 0)
    PAGE.write_text(remake(eventlog, logs, PICTURES))
    compare(logs)


if __name__ == "__main__":
    main()
