"""The demo's log directory in an unmodified TensorBoard in a real browser: while it is being written, the page must show
both evaluation runs and their tags; at the end all three trainings stand on one page, the first and its own.
Screenshots are first.png and demo.png.
"""
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree

import pytest

from browser import BUILD, Page, chromium
from tensorboard_server import TensorBoard
from waiting import DEADLINE, wait_for

pytest.importorskip("tensorboard")
pytest.importorskip("selenium")
RUNS = {"mpi/eval", "ps/eval"}
TAGS = {"precision", "best_precision"}
ANSWER = {"all three/best precision", "all three/best precision after seconds", "all three/mpi minus ps, 0 is equal", "mpi/eval", "ps/eval", "ps-async/eval",
          "mpi minus ps"}


@pytest.fixture
def demo(tmp_path):
    """The demo, started, with a log of its output; ended with all its children afterwards."""
    with open(tmp_path / "demo.txt", "w") as output:
        process = subprocess.Popen([sys.executable, "demo/run.py", "--build", BUILD, "--out", tmp_path / "demo",
                                    "--steps", "400"], stdout=output, stderr=output, start_new_session=True)
    yield process, tmp_path / "demo" / "runs", tmp_path / "demo.txt"
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
    process.wait(DEADLINE)


def test_both_curves_appear_while_the_demo_runs(demo, tmp_path):
    process, logdir, output = demo

    def alive():
        assert not process.poll(), output.read_text()
        return True

    wait_for(lambda: alive() and list(logdir.glob("ps/eval/*tfevents*")), "an event file of ps/eval")
    # The training goes on, but the third one waits until the page has been read, however slow the browser is.
    process.send_signal(signal.SIGSTOP)
    with chromium() as browser, TensorBoard(logdir, tmp_path / "tensorboard.txt", loader="auto") as tensorboard:
        page, patience = Page(browser, tensorboard.address), 0

        def shown():
            nonlocal patience
            # The page reloads its data every 30 s by itself; a reader who is in a hurry opens it again.
            if time.monotonic() > patience:
                page.open("timeseries", "?runFilter=eval&tagFilter=precision%7Closs&smoothing=0")
                patience = time.monotonic() + 5
            return RUNS | TAGS <= set(page.words())

        wait_for(shown, lambda: f"{RUNS | TAGS} in {page.words()}")
        # Beside the list of runs, the table below a chart names those that it shows.
        wait_for(lambda: all(page.words().count(run) > 1 for run in RUNS), page.words)
        assert not list(logdir.glob("ps-async/*")), "the page was not read while the demo was at work"
        process.send_signal(signal.SIGCONT)
        assert process.wait(DEADLINE) == 0, output.read_text()
        # Opened as a reader does, the page begins with what the demo asks, a colour for each of the three: TensorBoard has seven.
        assert len({path.parent for path in logdir.rglob("*tfevents*")}) <= 7
        page.open("")
        wait_for(lambda: ANSWER <= set(page.words()), lambda: f"{ANSWER} in {page.words()}")
        page.keep("first")
        page.open("custom_scalars")
        wait_for(lambda: page.words().count("Matches (3)") == 3 and "Matches (6)" in page.words(), page.words)
        # The last of its seven colours is grey, which only the chart of six runs can spare.
        page.lines_drawn("tf-custom-scalar-multi-line-chart-card", "loss: eval on test images, train on batches")
        page.keep("demo")
    said = output.read_text()
    assert "equal by design" in said and re.search(r"\bequal: \d+ tensors, \d+ values, bit for bit", said), said
    assert "time since the run's first point" in said and "points below, down to 0.0" in said  # step 0 flattens nothing
    drawn = xml.etree.ElementTree.parse(logdir.parent / "mpi-vs-ps.svg").getroot()
    # What lies beyond an axis is told behind its name.
    texts = ["".join(text.itertext()).split(";")[0] for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert {"step", "time since the run's first point"} <= set(texts)
    for name in ("mpi", "ps", "ps --async"):
        speed = rf"{name} \([\d,]+ images/s\)"
        assert any(re.fullmatch(speed, text) for text in texts), (name, texts)
        assert re.search(rf" {speed} +0\.\d", said), said
    assert (logdir.parent / "scalars.csv").stat().st_size > 1000
