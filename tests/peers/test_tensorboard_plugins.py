"""Each page of an unmodified TensorBoard, in a real browser, with what the C library wrote for it.

A page passes when the names stand on it and its picture is drawn. Screenshots are kept: BUILD/screenshots/*.png.
"""
import io
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

pytest.importorskip("tensorboard")
pytest.importorskip("selenium")
from PIL import Image  # noqa: E402  (a dependency of TensorBoard)
from selenium import webdriver  # noqa: E402
from selenium.common.exceptions import WebDriverException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
SECONDS = 60

# All that can be seen of a page: its pieces hide in shadow roots and frames of the same origin.
WALK = """
const seen = [];
function walk(node, x, y) {
    seen.push([node, x, y]);
    if (node.shadowRoot) walk(node.shadowRoot, x, y);
    if (node.tagName == 'IFRAME' && node.contentDocument && node.contentDocument.body) {
        const r = node.getBoundingClientRect();
        walk(node.contentDocument.body, x + r.left, y + r.top);
    }
    for (const child of node.childNodes)
        if (!['STYLE', 'SCRIPT', 'TEMPLATE', 'NOSCRIPT'].includes(child.tagName)) walk(child, x, y);
}
walk(document.body, 0, 0);
"""
TEXTS = WALK + "return seen.map(s => s[0]).filter(n => n.nodeType == 3).map(n => n.textContent.trim()).filter(t => t);"
BOXES = WALK + """
return seen.filter(s => s[0].nodeType == 1 && s[0].matches(arguments[0])).map(([n, x, y]) => {
    const r = n.getBoundingClientRect();
    return [r.left + x, r.top + y, r.right + x, r.bottom + y].map(v => v * window.devicePixelRatio);
}).filter(b => b[2] - b[0] > 20 && b[3] - b[1] > 20);"""

# page: words that must stand on it; what holds the picture, and how many strong colours are in the first such place.
PAGES = {
    "timeseries": ({"loss", "precision", "weights", "gradient", "mpi", "ps"}, "line-chart", 2),
    "scalars": ({"loss", "loss_high", "precision"}, "vz-line-chart2", 2),
    "images": ({"gradient", "mpi", "3"}, "img", 50),
    "audio": ({"tone", "mpi", "3"}, "audio", 0),
    "text": ({"layers", "conv1", "5 x 5", "fc3", "512"}, "table", 0),
    "histograms": ({"weights", "0", "15"}, "vz-histogram-timeseries", 3),
    "distributions": ({"weights"}, "vz-distribution-chart", 3),
    "pr_curves": ({"digit 7"}, "vz-line-chart2", 1),
    "hparams": ({"learning_rate", "run_option", "0.25000", "0.12500", "mpi", "ps"}, "tf-hparams-table-view", 0),
    "custom_scalars": ({"training", "both in one", "with a band", "loss (mpi)", "precision (ps)"},
                       "vz-line-chart2", 2),
    "mesh": ({"cube"}, "canvas", 50),
    "graphs": ({"images", "conv1", "pool2", "logits"}, "tf-graph-scene", 0),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    directory = tmp_path_factory.mktemp("pages")
    subprocess.run([BUILD / "tests/peers/event_pages", directory / "log"], check=True)
    output = directory / "output.txt"
    with open(output, "w") as f:
        process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", str(directory / "log"),
                                    "--port", "0", "--host", "127.0.0.1"], stdout=f, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + SECONDS
    while "http://" not in (text := output.read_text()):
        assert time.monotonic() < deadline and process.poll() is None, text
        time.sleep(0.05)
    yield text[text.index("http://"):].split()[0].rstrip("/")
    process.terminate()
    process.wait(30)


@pytest.fixture(scope="module")
def browser():
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1400,1000",
                     "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    page = webdriver.Chrome(options=options, service=Service(driver))
    yield page
    page.quit()


def strong_colours(browser, box):
    """Colours in a part of the screen that are no grey; a single odd pixel does not count."""
    image = Image.open(io.BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    image = image.crop([max(0, round(x)) for x in box])
    return sum(max(c) - min(c) > 60 and n > 3 for n, c in image.getcolors(image.width * image.height))


def missing(browser, words, selector, colours):
    """What the page does not show yet, as a sentence; nothing when all is there."""
    absent = words - set(browser.execute_script(TEXTS))
    if absent:
        return f"without {sorted(absent)}"
    boxes = browser.execute_script(BOXES, selector)
    if not boxes:
        return f"without a place for a picture ({selector})"
    found = strong_colours(browser, boxes[0]) if colours else 0
    return f"{found} colours in {selector}, wanted {colours}" if found < colours else None


@pytest.mark.parametrize("plugin", PAGES)
def test_page(address, browser, plugin):
    words, selector, colours = PAGES[plugin]
    browser.get("about:blank")  # a change of the fragment alone would not load anything
    browser.get(f"{address}/?smoothing=0#{plugin}")
    deadline, patience = time.monotonic() + SECONDS, time.monotonic() + 10
    while True:
        try:
            why = missing(browser, words, selector, colours)
        except WebDriverException as e:  # the page is being built
            why = str(e)
        if not why:
            break
        if time.monotonic() > patience:  # loaded before the data was read: press reload, as a reader would
            browser.refresh()
            patience = time.monotonic() + 10
        if time.monotonic() > deadline:
            browser.save_screenshot(str(BUILD / "screenshots" / f"{plugin}-failed.png"))
            pytest.fail(f"the page {plugin} stays {why}")
        time.sleep(0.1)
    (BUILD / "screenshots").mkdir(parents=True, exist_ok=True)
    browser.save_screenshot(str(BUILD / "screenshots" / f"{plugin}.png"))
