"""The demo's log directory, while it is being written, in an unmodified TensorBoard in a real browser.

The page must show both evaluation runs and their tags. Its screenshot is demo.png.
"""
import signal
import subprocess
import sys
import time

import pytest

from browser import BUILD, Page, chromium
from tensorboard_server import TensorBoard
from waiting import DEADLINE, wait_for

pytest.importorskip("tensorboard")
pytest.importorskip("selenium")
RUNS = {"mpi/eval", "ps/eval"}
TAGS = {"precision", "best_precision"}


def curves_drawn(page):
    """The first chart shows lines of at least two colours: text, grid and ground of a chart are grey."""
    place = page.js("const charts = all('line-chart canvas'); return charts.length ? place(charts[0]) : null")
    if not place or place[2] - place[0] < 50:
        return False
    return len([c for c, n in page.colours(place).items() if max(c) - min(c) > 100 and n > 20]) >= 2


@pytest.fixture
def demo(tmp_path):
    """The demo, started, with a log of its output; ended with all its children afterwards."""
    with open(tmp_path / "demo.txt", "w") as output:
        process = subprocess.Popen([sys.executable, "demo/run.py", "--build", BUILD, "--out", tmp_path / "demo",
                                    "--steps", "1500"], stdout=output, stderr=output, start_new_session=True)
    yield process, tmp_path / "demo" / "runs", tmp_path / "demo.txt"
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    process.wait(DEADLINE)


def test_both_curves_appear_while_the_demo_runs(demo, tmp_path):
    process, logdir, output = demo

    def alive():
        assert not process.poll(), output.read_text()
        return True

    wait_for(lambda: alive() and logdir.exists(), "the log directory")
    with chromium() as browser, TensorBoard(logdir, tmp_path / "tensorboard.txt", loader="auto") as tensorboard:
        wait_for(lambda: alive() and list(logdir.glob("ps/eval/*tfevents*")), "an event file of ps/eval")
        page, patience = Page(browser, tensorboard.address), 0

        def shown():
            nonlocal patience
            # The page reloads its data every 30 s by itself; a reader who is in a hurry opens it again.
            if time.monotonic() > patience:
                page.open("timeseries", "?runFilter=eval&tagFilter=precision%7Closs&smoothing=0")
                patience = time.monotonic() + 5
            return RUNS | TAGS <= set(page.words())

        wait_for(shown, lambda: f"{RUNS | TAGS} in {page.words()}")
        wait_for(lambda: curves_drawn(page), "two curves")
        assert process.poll() is None, "the demo was over before the page was read: it was not read while being written"
        page.keep("demo")
    assert process.wait(DEADLINE) == 0, output.read_text()
    for name in ("mpi-vs-ps.svg", "scalars.csv"):
        assert (logdir.parent / name).stat().st_size > 1000, name
