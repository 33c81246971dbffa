"""Embeddings that the C library wrote, asked for at a running TensorBoard as its projector page does."""
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
NAME = 'digits "0" \\'


@pytest.fixture(scope="module")
def board(tmp_path_factory):
    logdir = tmp_path_factory.mktemp("projector")
    subprocess.run([BUILD / "tests/peers/projector", logdir / "run"], check=True)
    output = logdir / "output"
    with open(output, "w") as log:
        process = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--port", "0",
                                    "--host", "127.0.0.1", "--reload_interval=1"], stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while not (match := re.search(r"http://\S+?:\d+/", output.read_text())):
        assert time.monotonic() < deadline and process.poll() is None, output.read_text()
        time.sleep(0.05)

    def get(route, **query):
        url = f"{match.group()}data/plugin/projector/{route}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read()

    while json.loads(get("runs")) != ["run"]:
        assert time.monotonic() < deadline, get("runs")
        time.sleep(0.05)
    yield get
    process.terminate()
    process.wait()


def test_config(board):
    words, digits = json.loads(board("info", run="run"))["embeddings"]
    assert (words["tensorName"], words["tensorShape"]) == ("words", [50, 3])
    assert (digits["tensorName"], digits["tensorShape"]) == (NAME, [5, 2])
    assert digits["sprite"]["singleImageDim"] == [3, 2] and "sprite" not in words


def test_values_are_the_same_to_the_bit(board):
    i = np.arange(50, dtype=np.float32)
    wanted = np.stack([i / np.float32(7), 0 - i, i * np.float32(1e-20)], axis=1)
    assert board("tensor", run="run", name="words") == wanted.astype("<f4").tobytes()


def test_labels(board):
    assert board("metadata", run="run", name="words").decode() == "".join(f"wörd {i}\n" for i in range(50))
    assert board("metadata", run="run", name=NAME).decode() == (
        "digit\tgröße\n0\tnull\n1\teins\n2\tzwei\n3\t\n4\tvier\n")


def test_pictures(board):
    image = pytest.importorskip("PIL.Image").open(io.BytesIO(board("sprite_image", run="run", name=NAME)))
    assert (image.format, image.size, image.mode) == ("PNG", (9, 6), "RGB")  # three in a row; as many rows, the last empty
    pixels = np.asarray(image)
    for k in range(5):
        y, x = k // 3 * 2, k % 3 * 3
        assert (pixels[y:y + 2, x:x + 3] == (10 * k, 20 * k, 255)).all()
