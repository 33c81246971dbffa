"""Fashion-MNIST as our reader has it, against gzip and numpy."""
import gzip
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")) / "tests" / "peers" / "model_tool"
PLACE = pathlib.Path("/usr/share/datasets/fashion-mnist")  # Debian's dataset-fashion-mnist


@pytest.mark.parametrize("packed", [True, False])
def test_fashion_mnist(packed, tmp_path):
    if not PLACE.is_dir():
        pytest.skip("dataset-fashion-mnist is not installed")
    directory = PLACE
    raw = gzip.decompress((PLACE / "t10k-images-idx3-ubyte.gz").read_bytes())
    if not packed:
        directory = tmp_path
        for name in ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
            (tmp_path / name.replace("-idx", ".idx")).write_bytes(gzip.decompress((PLACE / f"{name}.gz").read_bytes()))
    subprocess.run([TOOL, "transform", "unit", "fashion-mnist", directory, "0", "10000", tmp_path / "out"], check=True)
    want = numpy.frombuffer(raw, "uint8", offset=16).astype("float32") / numpy.float32(255)
    assert numpy.array_equal(numpy.fromfile(tmp_path / "out", "float32"), want)
