"""The demo's log directory, while it is being written, in an unmodified TensorBoard in a real browser.

The page must show both evaluation runs and their tags. The screenshot is kept: BUILD/screenshots/demo.png.
"""
import io
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("tensorboard")
selenium = pytest.importorskip("selenium")
from PIL import Image  # noqa: E402  (a dependency of TensorBoard)
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
RUNS = {"mpi/eval", "ps/eval"}
TAGS = {"precision", "best_precision"}


def wait_for(what, seconds, check):
    """Polls until check() is true; fails with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"after {seconds} s: {what}"
        time.sleep(0.1)
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def curves_drawn(page):
    """1 when the first chart shows lines of at least two colours: text, grid and ground of a chart are grey."""
    box = page.execute_script("""
        const canvas = document.querySelector('line-chart canvas');
        if (!canvas) return null;
        const r = canvas.getBoundingClientRect();
        return [r.left, r.top, r.right, r.bottom].map(x => x * window.devicePixelRatio);""")
    if not box or box[2] - box[0] < 50:
        return False
    image = Image.open(io.BytesIO(page.get_screenshot_as_png())).convert("RGB").crop([round(x) for x in box])
    colours = image.getcolors(image.width * image.height)
    bright = {c: n for n, c in colours if max(c) - min(c) > 100 and n > 20}
    return len(bright) >= 2


def answers(address):
    try:
        return urllib.request.urlopen(address, timeout=5).status == 200
    except OSError:
        return False


@pytest.fixture
def browser():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1050",
                     "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    page = webdriver.Chrome(options=options, service=Service(driver))
    yield page
    page.quit()


@pytest.fixture
def demo(tmp_path):
    """The demo, started, with a log of its output; ended with all its children afterwards."""
    with open(tmp_path / "demo.txt", "w") as output:
        process = subprocess.Popen([sys.executable, "demo/run.py", "--build", BUILD, "--out", tmp_path / "demo",
                                    "--steps", "1500"], stdout=output, stderr=output, start_new_session=True)
    yield process, tmp_path / "demo" / "runs", tmp_path / "demo.txt"
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    process.wait(60)


def test_both_curves_appear_while_the_demo_runs(demo, browser):
    process, logdir, output = demo

    def alive():
        assert not process.poll(), output.read_text()
        return True

    wait_for("no log directory", 60, lambda: alive() and logdir.exists())
    port = free_port()
    tensorboard = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--port", str(port),
                                    "--reload_interval", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for("TensorBoard does not answer", 60, lambda: answers(f"http://127.0.0.1:{port}/"))
        wait_for("no event file of ps/eval", 240,
                 lambda: alive() and list(logdir.glob("ps/eval/events.out.tfevents.*")))
        browser.get(f"http://127.0.0.1:{port}/?runFilter=eval&tagFilter=precision%7Closs&smoothing=0#timeseries")

        def shown():
            lines = {line.strip() for line in browser.execute_script("return document.body.innerText").splitlines()}
            return RUNS | TAGS <= lines

        deadline, patience = time.monotonic() + 90, time.monotonic() + 5
        while not shown():
            assert time.monotonic() < deadline, browser.execute_script("return document.body.innerText")
            # The page reloads its data every 30 s by itself; a reader who is in a hurry presses reload.
            if time.monotonic() > patience:
                browser.refresh()
                patience = time.monotonic() + 5
            time.sleep(0.1)
        wait_for("no two curves are drawn", 30, lambda: curves_drawn(browser))
        assert process.poll() is None, "the demo was over before the page was read: it was not read while being written"
        screenshots = BUILD / "screenshots"
        screenshots.mkdir(parents=True, exist_ok=True)
        browser.save_screenshot(str(screenshots / "demo.png"))
    finally:
        tensorboard.terminate()
        tensorboard.wait(30)
    assert process.wait(200) == 0, output.read_text()
    for name in ("mpi-vs-ps.svg", "scalars.csv"):
        assert (logdir.parent / name).stat().st_size > 1000, name
