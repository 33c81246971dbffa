"""Embeddings that the C library wrote, asked for at a running TensorBoard as its projector page does."""
import io
import json
import os
import pathlib
import subprocess

import pytest

from tensorboard_server import TensorBoard

np = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
NAME = 'digits "0" \\'


@pytest.fixture(scope="module", params=["auto", "serve", "serve several"])
def board(request, tmp_path_factory):
    """Over eventlog serve the projector finds its files, too: with one directory, and beside another with a name."""
    logdir = tmp_path_factory.mktemp("projector")
    subprocess.run([BUILD / "tests/peers/projector", logdir / "run"], check=True)
    loader, *several = request.param.split()
    with TensorBoard(logdir, tmp_path_factory.mktemp("tensorboard") / "output",
                     *[f"beside={logdir}" for _ in several], loader=loader) as tensorboard:
        tensorboard.until("projector/runs", lambda runs: set(runs) == {"run", *("beside/run" for _ in several)})
        yield lambda route, **query: tensorboard.raw(f"projector/{route}", **query)[0]


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
