"""A log written through the C API, in the pages of an unmodified TensorBoard in a real browser: one test a plugin.

Each looks for the data itself: pixels of pictures and curves, texts, lengths of clips, shapes in drawings. Screenshots
are kept: BUILD/screenshots/<plugin>.png.
"""
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("tensorboard")
pytest.importorskip("selenium")
np = pytest.importorskip("numpy")
from PIL import Image  # noqa: E402  (a dependency of TensorBoard)
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
PLUGINS = {"scalars", "timeseries", "images", "audio", "text", "histograms", "distributions", "pr_curves", "hparams",
           "custom_scalars", "mesh", "graphs"}

# Through shadow DOM and frames: all elements that match, the page's whole text, and where an element is on the screen.
HELPERS = """
window.all = function (selector, root) {
    const found = [];
    (function walk(node) {
        if (node.matches && node.matches(selector)) found.push(node);
        if (node.shadowRoot) walk(node.shadowRoot);
        if (node.tagName == 'IFRAME') { try { walk(node.contentDocument.body); } catch (e) {} }
        for (const child of node.children || []) walk(child);
    })(root || document.body);
    return found;
};
window.words = function (root) {
    let text = '';
    (function walk(node) {
        if (node.nodeType == 3) text += node.textContent;
        if (['STYLE', 'SCRIPT', 'TEMPLATE', 'NOSCRIPT'].includes(node.tagName)) return;
        if (node.shadowRoot) walk(node.shadowRoot);
        if (node.tagName == 'IFRAME') { try { walk(node.contentDocument.body); } catch (e) {} }
        for (const child of node.childNodes) walk(child);
        if (node.nodeType == 1 && !['B', 'STRONG', 'EM', 'I', 'SPAN'].includes(node.tagName)) text += '\\n';
    })(root || document.body);
    return text.split('\\n').map(line => line.trim()).filter(line => line);
};
window.place = function (element) {
    const r = element.getBoundingClientRect(), d = window.devicePixelRatio;
    return [r.left * d, r.top * d, r.right * d, r.bottom * d];
};
"""


def wait_for(what, check, seconds=60):
    """Polls until check() is true; fails with `what` after the deadline."""
    deadline = time.monotonic() + seconds
    while not (found := check()):
        assert time.monotonic() < deadline, f"after {seconds} s: {what() if callable(what) else what}"
        time.sleep(0.05)
    return found


class Page:
    def __init__(self, browser, base):
        self.browser, self.base = browser, base

    def open(self, plugin):
        """A fresh page of that plugin, once its dashboard is there."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.base}/#{plugin}")
        self.browser.execute_script(HELPERS)

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def words(self):
        return self.js("return words()")

    def wait_words(self, *wanted):
        wait_for(lambda: f"{set(wanted) - set(self.words())} not in {self.words()}",
                 lambda: set(wanted) <= set(self.words()))

    def picture(self, place=None):
        image = Image.open(io.BytesIO(self.browser.get_screenshot_as_png())).convert("RGB")
        return image.crop([round(x) for x in place]) if place else image

    def colours(self, place):
        """Colour -> pixels, of what is neither white, black nor grey."""
        image = self.picture(place)
        counts = image.getcolors(image.width * image.height) or []
        return {c: n for n, c in counts if max(c) - min(c) > 60}

    def keep(self, name):
        screenshots = BUILD / "screenshots"
        screenshots.mkdir(parents=True, exist_ok=True)
        self.browser.save_screenshot(str(screenshots / f"{name}.png"))


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("chromium and chromium-driver are not installed")
    directory = tmp_path_factory.mktemp("pages")
    log, output = directory / "log", directory / "tensorboard.txt"
    subprocess.run([BUILD / "tests/peers/plugin_pages", log], check=True)
    with open(output, "w") as f:
        tensorboard = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", log, "--port", "0",
                                        "--host", "127.0.0.1", "--reload_interval", "1"], stdout=f, stderr=f)
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1050",
                     "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    browser = None
    try:
        browser = webdriver.Chrome(options=options, service=Service(driver))
        wait_for(lambda: output.read_text(), lambda: "http://" in output.read_text() and tensorboard.poll() is None, 90)
        base = output.read_text().split("http://")[1].split()[0].rstrip("/")

        def active():
            with urllib.request.urlopen(f"http://{base}/data/plugins_listing", timeout=30) as answer:
                return {name for name, plugin in json.load(answer).items() if plugin["enabled"]}

        wait_for("not all plugins have data", lambda: PLUGINS <= active())
        yield Page(browser, f"http://{base}")
    finally:
        if browser:
            browser.quit()
        tensorboard.terminate()
        tensorboard.wait(30)


def lines_drawn(page, selector, tag, colours=2):
    """Waits until the chart under a heading `tag: ...` shows lines of that many colours; returns its place."""
    script = """
        for (const card of all(arguments[0]))
            if (words(card).some(line => line == arguments[1])) {
                const charts = all('svg, canvas', card).filter(c => c.getBoundingClientRect().width > 200);
                if (charts.length) { charts[0].scrollIntoView({block: 'center'}); return place(charts[0]); }
            }
        return null;"""

    def drawn():
        place = page.js(script, selector, tag)
        bright = place and [c for c, n in page.colours(place).items() if n > 60 and max(c) - min(c) > 100]
        return place if bright and len(bright) >= colours else None

    return wait_for(lambda: f"no {colours} lines of {tag}: {page.words()}", drawn)


def test_scalars(page):
    page.open("scalars")
    page.wait_words("train", "eval", "accuracy", "loss", "tag: loss", "tag: loss/high")
    lines_drawn(page, "tf-scalar-card", "tag: loss")
    lines_drawn(page, "tf-scalar-card", "tag: accuracy", 1)
    page.keep("scalars")


def test_time_series(page):
    page.open("timeseries&smoothing=0")
    page.wait_words("train", "eval", "loss", "accuracy", "picture", "weights")
    lines_drawn(page, "card-view", "loss")
    # The table below a chart holds the last points, rounded to four digits.
    page.wait_words("0.9257", "0.875", "0.75")
    page.keep("timeseries")


def test_images(page):
    page.open("images")
    page.wait_words("tag: picture", "train")
    pixels = wait_for("no picture of 48 x 32", lambda: page.js("""
        for (const image of all('img'))
            if (image.complete && image.naturalWidth == 48 && image.naturalHeight == 32) {
                const canvas = document.createElement('canvas');
                canvas.width = 48; canvas.height = 32;
                const context = canvas.getContext('2d');
                context.drawImage(image, 0, 0);
                image.id = 'found';
                return [[2, 2], [2, 30], [45, 2]].map(([x, y]) => Array.from(context.getImageData(x, y, 1, 1).data));
            }
        return null;"""))
    assert pixels == [[40, 180, 60, 255], [200, 30, 40, 255], [20, 90, 220, 255]]
    page.js("all('#found')[0].scrollIntoView({block: 'center'})")
    seen = page.colours(page.js("return place(all('#found')[0])"))
    assert len([n for n in seen.values() if n > 500]) >= 3, seen
    page.keep("images")


def test_audio(page):
    page.open("audio")
    page.wait_words("tag: tone", "train")
    seconds = wait_for("no clip that can be played", lambda: page.js("""
        for (const clip of all('audio')) {
            if (clip.readyState == 0) { clip.load(); continue; }
            return clip.duration;
        }
        return null;"""))
    assert abs(seconds - 0.5) < 0.01
    page.keep("audio")


def test_text(page):
    page.open("text")
    page.wait_words("tag: note", "tag: table", "a slanted wörd", "3x3x16")
    assert "slanted" in page.js("return all('em').map(e => e.textContent.trim())")
    assert "first" in page.js("return all('td strong').map(e => e.textContent.trim())")
    page.keep("text")


def test_histograms(page):
    page.open("histograms")
    page.wait_words("tag: weights", "train")
    paths = wait_for("no five histograms are drawn", lambda: page.js("""
        const paths = all('path').filter(p => {
            const box = p.getBoundingClientRect();
            return box.width > 50 && box.height > 10;
        });
        return paths.length >= 5 ? paths.map(p => [p.getAttribute('d').split('L').length, place(p)]) : null;"""))
    assert sum(n > 20 for n, _ in paths) >= 5, paths
    assert sum(sum(page.colours(place).values()) for _, place in paths) > 3000
    page.keep("histograms")


def test_distributions(page):
    page.open("distributions")
    page.wait_words("tag: weights", "train")

    def filled():
        place = page.js("const c = all('vz-distribution-chart'); return c.length ? place(c[0]) : null")
        return place and sum(page.colours(place).values()) > 5000

    wait_for("no distribution is drawn", filled)
    page.keep("distributions")


def test_pr_curves(page):
    page.open("pr_curves")
    page.wait_words("tag: curve", "train is at", "step 0")
    lines_drawn(page, "tf-pr-curve-card", "tag: curve", 1)
    page.keep("pr_curves")


def test_hparams(page):
    page.open("hparams")
    page.wait_words("rate", "optimizer", "Accuracy", "trial-0", "trial-1", "0.50000", "momentum", "0.75000", "0.25000",
                    "adam", "0.87500")
    page.keep("hparams")


def test_custom_scalars(page):
    page.open("custom_scalars")
    page.wait_words("chosen", "lines", "band")
    wait_for(page.words, lambda: {"loss (train)", "accuracy (train)", "loss (eval)"} <= set(page.words()))
    lines_drawn(page, "tf-custom-scalar-multi-line-chart-card", "lines", 2)
    place = lines_drawn(page, "tf-custom-scalar-margin-chart-card", "band", 1)
    assert sum(n for c, n in page.colours(place).items()) > 2000  # the band is filled
    page.keep("custom_scalars")


def test_mesh(page):
    page.open("mesh")
    page.wait_words("mesh", "train")

    def drawn():
        place = page.js("""
            const c = all('canvas').filter(c => c.getBoundingClientRect().width > 100);
            if (c.length) c[0].scrollIntoView({block: 'center'});
            return c.length ? place(c[0]) : null;""")
        seen = page.colours(place) if place else {}
        return sum(seen.values()) > 2000 and len(seen) > 50  # the colours of the corners run into each other

    wait_for(lambda: f"no cube is drawn: {page.words()}", drawn)
    page.keep("mesh")


def test_projector(page):
    page.open("projector")
    page.wait_words("clouds", "90x8")
    wait_for(page.words, lambda: "Points: 90" in "|".join(page.words()))

    def clouds():
        """Where the points of each picture's colour are, in pixels: red, green, blue."""
        place = page.js("const c = all('canvas').filter(c => c.getBoundingClientRect().width > 300); "
                        "return c.length ? place(c[0]) : null")
        if not place:
            return None
        image = np.asarray(page.picture(place)).astype(int)
        found = [np.argwhere((image[..., c] > 200) & (image.sum(axis=2) - image[..., c] < 110)) for c in range(3)]
        return found if all(len(f) > 200 for f in found) else None

    # Each cloud shows the picture of its own points: the three colours do not share a place.
    red, green, blue = wait_for(lambda: f"no points are drawn: {page.words()}", clouds)
    middles = [cloud.mean(axis=0) for cloud in (red, green, blue)]
    for a, cloud in enumerate((red, green, blue)):
        near = [np.linalg.norm(cloud - middle, axis=1) for middle in middles]
        assert np.mean(np.argmin(near, axis=0) == a) > 0.9
    page.keep("projector")


def test_graph(page):
    page.open("graphs")
    names = {"input", "first", "result"}
    wait_for(page.words, lambda: names <= set(page.js("return all('g.node').map(n => n.getAttribute('data-name'))")))
    boxes = page.js("return all('g.node').map(n => n.getBoundingClientRect()).map(r => [r.width, r.height])")
    assert all(width > 5 and height > 5 for width, height in boxes)
    assert len(page.js("return all('g.edge path')")) >= 2
    page.keep("graph")
