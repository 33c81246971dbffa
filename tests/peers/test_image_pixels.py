"""Images of a folder tree as our reader has them, against Pillow: decoded, scaled and cut, in our order."""
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")) / "tests" / "peers" / "model_tool"


def picture(seed, height, width):
    """Smooth shapes with noise, as JPEG is made for."""
    y, x = numpy.mgrid[:height, :width]
    base = numpy.stack([120 + 100 * numpy.sin(x / (3 + seed) + c) * numpy.cos(y / (5 + c)) for c in range(3)], -1)
    noise = numpy.random.default_rng(seed).normal(0, 12, base.shape)
    return Image.fromarray(numpy.clip(base + noise, 0, 255).astype("uint8"))


def write(tree):
    """All that the two formats have: their ways to store colours, and both ways to send them."""
    kinds = [("a.jpg", "RGB", {"quality": 90}), ("b.jpg", "RGB", {"quality": 75, "progressive": True}),
             ("c.JPEG", "L", {}), ("d.jpg", "RGB", {"quality": 60, "subsampling": 0}), ("e.png", "RGB", {}),
             ("f.png", "L", {}), ("g.png", "P", {}), ("h.png", "RGBA", {}), ("i.png", "1", {}), ("j.png", "LA", {}),
             ("k.jpg", "CMYK", {}), ("l.jpg", "CMYK", {"quality": 95})]
    sizes = [(32, 32), (57, 40), (40, 91), (16, 20), (33, 32), (200, 31), (32, 47), (8, 8), (100, 100), (64, 32), (45, 50), (33, 61)]
    paths = []
    for i, ((name, mode, how), size) in enumerate(zip(kinds, sizes)):
        path = tree / ("cat" if i % 3 else "dog") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(i, *size).convert(mode).save(path, **how)
        if name == "l.jpg":  # YCCK, which Pillow reads, but does not write
            data = path.read_bytes()
            at = data.index(b"Adobe") + 11
            path.write_bytes(data[:at] + b"\2" + data[at + 1:])
        paths.append(path)
    return paths


def wanted(path, height, width):
    image = Image.open(path).convert("RGB")
    scale = max(height / image.height, width / image.width)
    size = [max(want, int(have * scale + 0.5)) for have, want in ((image.width, width), (image.height, height))]
    if image.size != (width, height):
        left, top = (size[0] - width) // 2, (size[1] - height) // 2
        # Width first, then height: each step rounds, and Pillow may take them in the other order.
        image = image.resize((size[0], image.height), Image.Resampling.BILINEAR)
        image = image.resize(size, Image.Resampling.BILINEAR).crop((left, top, left + width, top + height))
    return numpy.asarray(image)


@pytest.mark.parametrize("height, width", [(32, 32), (24, 40), (97, 13)])
def test_pixels_are_pillows(height, width, tmp_path):
    paths = write(tmp_path / "tree")
    (tmp_path / "tree" / "cat" / "notes.txt").write_text("not an image")
    subprocess.run([TOOL, "transform", "unit", "folder", tmp_path / "tree", "0", str(len(paths)), tmp_path / "out"],
                   check=True, env={**os.environ, "IMAGE_SIZE": f"{height}x{width}"})
    have = numpy.fromfile(tmp_path / "out", "float32").reshape(len(paths), height, width, 3) * 255
    for path, pixels in zip(paths, have):
        away = numpy.abs(numpy.rint(pixels) - wanted(path, height, width)).max()
        assert away == 0, f"{path.name}: {away}"
