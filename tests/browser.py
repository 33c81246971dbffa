"""A headless Chromium on the pages of a TensorBoard. Screenshots are kept: BUILD/screenshots/<name>.png."""
import contextlib
import io
import os
import pathlib
import shutil

import pytest

from tensorboard_server import localhost_or_skip
from waiting import DEADLINE, wait_for

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))

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


@contextlib.contextmanager
def chromium():
    """Selenium's driver of a new browser, until the end of `with`; what is not installed is a skip."""
    localhost_or_skip()
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not program or not driver:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1050",
                     "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    browser = webdriver.Chrome(options=options, service=service.Service(driver))
    browser.command_executor.client_config.timeout = DEADLINE
    browser.set_script_timeout(DEADLINE)
    browser.set_page_load_timeout(DEADLINE)
    try:
        yield browser
    finally:
        browser.quit()


class Page:
    """TensorBoard's page at an address in that browser. A place is left, top, right, bottom, in pixels of a picture."""

    def __init__(self, browser, address):
        self.browser, self.address = browser, address

    def open(self, plugin, query=""):
        """A fresh page of that plugin."""
        self.browser.get("about:blank")
        self.browser.get(f"{self.address}/{query}#{plugin}")
        self.browser.execute_script(HELPERS)

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def words(self):
        """Its lines of text."""
        return self.js("return words()")

    def wait_words(self, *wanted):
        wait_for(lambda: set(wanted) <= set(self.words()),
                 lambda: f"{set(wanted) - set(self.words())} in {self.words()}")

    def png(self):
        """A screenshot. The browser gives one up that takes it 10 s, as it may on a busy machine: then the next is taken."""
        exceptions = pytest.importorskip("selenium.common.exceptions")

        def taken():
            try:
                return self.browser.get_screenshot_as_png()
            except exceptions.TimeoutException:
                return None

        return wait_for(taken, "a screenshot")

    def picture(self, place=None):
        image = pytest.importorskip("PIL.Image").open(io.BytesIO(self.png())).convert("RGB")
        return image.crop([round(x) for x in place]) if place else image

    def colours(self, place):
        """Colour -> pixels, of what is neither white, black nor grey."""
        image = self.picture(place)
        counts = image.getcolors(image.width * image.height) or []
        return {c: n for n, c in counts if max(c) - min(c) > 60}

    def lines_drawn(self, selector, heading, colours=2):
        """Waits until the chart under a heading shows lines of that many colours; returns its place."""
        script = """
            for (const card of all(arguments[0]))
                if (words(card).some(line => line == arguments[1])) {
                    const charts = all('svg, canvas', card).filter(c => c.getBoundingClientRect().width > 200);
                    if (charts.length) { charts[0].scrollIntoView({block: 'center'}); return place(charts[0]); }
                }
            return null;"""

        def drawn():
            place = self.js(script, selector, heading)
            bright = place and [c for c, n in self.colours(place).items() if n > 60 and max(c) - min(c) > 100]
            return place if bright and len(bright) >= colours else None

        return wait_for(drawn, lambda: f"{colours} lines of {heading}: {self.words()}")

    def keep(self, name):
        screenshots = BUILD / "screenshots"
        screenshots.mkdir(parents=True, exist_ok=True)
        (screenshots / f"{name}.png").write_bytes(self.png())
