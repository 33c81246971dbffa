"""A log written through the C API, in the pages of an unmodified TensorBoard in a real browser: one test a plugin.

Each looks for the data itself: pixels of pictures and curves, texts, lengths of clips, shapes in drawings. Screenshots
are kept: BUILD/screenshots/<plugin>.png.
"""
import subprocess

import pytest

from browser import BUILD, Page, chromium
from tensorboard_server import TensorBoard
from waiting import wait_for

np = pytest.importorskip("numpy")
PLUGINS = {"scalars", "timeseries", "images", "audio", "text", "histograms", "distributions", "pr_curves", "hparams",
           "custom_scalars", "mesh", "graphs"}


@pytest.fixture(scope="module", params=["auto", "ours", "serve"])
def page(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("pages")
    log = directory / "log"
    subprocess.run([BUILD / "tests/peers/plugin_pages", log], check=True)
    with chromium() as browser, TensorBoard(log, directory / "tensorboard.txt", loader=request.param) as tensorboard:
        tensorboard.until_active(PLUGINS)
        yield Page(browser, tensorboard.address)


def test_scalars(page):
    page.open("scalars")
    page.wait_words("train", "eval", "accuracy", "loss", "tag: loss", "tag: loss/high")
    page.lines_drawn("tf-scalar-card", "tag: loss")
    page.lines_drawn("tf-scalar-card", "tag: accuracy", 1)
    page.keep("scalars")


def test_time_series(page):
    page.open("timeseries&smoothing=0")
    page.wait_words("train", "eval", "loss", "accuracy", "picture", "weights")
    page.lines_drawn("card-view", "loss")
    # The table below a chart holds the last points, rounded to four digits.
    page.wait_words("0.9257", "0.875", "0.75")
    page.keep("timeseries")


def test_images(page):
    page.open("images")
    page.wait_words("tag: picture", "train")
    pixels = wait_for(lambda: page.js("""
        for (const image of all('img'))
            if (image.complete && image.naturalWidth == 48 && image.naturalHeight == 32) {
                const canvas = document.createElement('canvas');
                canvas.width = 48; canvas.height = 32;
                const context = canvas.getContext('2d');
                context.drawImage(image, 0, 0);
                image.id = 'found';
                return [[2, 2], [2, 30], [45, 2]].map(([x, y]) => Array.from(context.getImageData(x, y, 1, 1).data));
            }
        return null;"""), "a picture of 48 x 32")
    assert pixels == [[40, 180, 60, 255], [200, 30, 40, 255], [20, 90, 220, 255]]
    page.js("all('#found')[0].scrollIntoView({block: 'center'})")
    seen = page.colours(page.js("return place(all('#found')[0])"))
    assert len([n for n in seen.values() if n > 500]) >= 3, seen
    page.keep("images")


def test_audio(page):
    page.open("audio")
    page.wait_words("tag: tone", "train")
    seconds = wait_for(lambda: page.js("""
        for (const clip of all('audio')) {
            if (clip.readyState == 0) { clip.load(); continue; }
            return clip.duration;
        }
        return null;"""), "a clip that can be played")
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
    paths = wait_for(lambda: page.js("""
        const paths = all('path').filter(p => {
            const box = p.getBoundingClientRect();
            return box.width > 50 && box.height > 10;
        });
        return paths.length >= 5 ? paths.map(p => [p.getAttribute('d').split('L').length, place(p)]) : null;"""),
                     "five histograms")
    assert sum(n > 20 for n, _ in paths) >= 5, paths
    assert sum(sum(page.colours(place).values()) for _, place in paths) > 3000
    page.keep("histograms")


def test_distributions(page):
    page.open("distributions")
    page.wait_words("tag: weights", "train")

    def filled():
        place = page.js("const c = all('vz-distribution-chart'); return c.length ? place(c[0]) : null")
        return place and sum(page.colours(place).values()) > 5000

    wait_for(filled, "a distribution")
    page.keep("distributions")


def test_pr_curves(page):
    page.open("pr_curves")
    page.wait_words("tag: curve", "train is at", "step 0")
    page.lines_drawn("tf-pr-curve-card", "tag: curve", 1)
    page.keep("pr_curves")


def test_hparams(page):
    page.open("hparams")
    page.wait_words("rate", "optimizer", "Accuracy", "trial-0", "trial-1", "0.50000", "momentum", "0.75000", "0.25000",
                    "adam", "0.87500")
    page.keep("hparams")


def test_custom_scalars(page):
    page.open("custom_scalars")
    page.wait_words("chosen", "lines", "band")
    page.wait_words("loss (train)", "accuracy (train)", "loss (eval)")
    page.lines_drawn("tf-custom-scalar-multi-line-chart-card", "lines", 2)
    place = page.lines_drawn("tf-custom-scalar-margin-chart-card", "band", 1)
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

    wait_for(drawn, lambda: f"a cube: {page.words()}")
    page.keep("mesh")


def test_projector(page):
    page.open("projector")
    page.wait_words("clouds", "90x8")
    wait_for(lambda: "Points: 90" in "|".join(page.words()), page.words)

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
    red, green, blue = wait_for(clouds, lambda: f"points: {page.words()}")
    middles = [cloud.mean(axis=0) for cloud in (red, green, blue)]
    for a, cloud in enumerate((red, green, blue)):
        near = [np.linalg.norm(cloud - middle, axis=1) for middle in middles]
        assert np.mean(np.argmin(near, axis=0) == a) > 0.9
    page.keep("projector")


def test_graph(page):
    page.open("graphs")
    names = {"input", "first", "result"}
    wait_for(lambda: names <= set(page.js("return all('g.node').map(n => n.getAttribute('data-name'))")), page.words)
    boxes = page.js("return all('g.node').map(n => n.getBoundingClientRect()).map(r => [r.width, r.height])")
    assert all(width > 5 and height > 5 for width, height in boxes)
    assert len(page.js("return all('g.edge path')")) >= 2
    page.keep("graph")
