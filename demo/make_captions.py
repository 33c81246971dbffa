#!/usr/bin/env python3
"""Makes images with captions, laid out as COCO is, of the items of
Fashion-MNIST or MNIST: something small for `trainer --model show_and_tell
--data captions` to learn from.

Puts DIR/annotations/captions_train.json and captions_val.json, DIR/train and
DIR/val. An image has items in the cells of a grid, and five captions tell them
by a small grammar: 'A bag above a shirt.' Items of val images are from the test
part. The same seed gives the same images.

  python3 demo/make_captions.py captions
  python3 demo/make_captions.py captions --data mnist --data-dir mnist --grid 3
"""
import argparse
import gzip
import itertools
import json
import pathlib
import random
import re
import struct
import sys
import zlib

SIDE = 28
NAMES = {"fashion-mnist": ["a t-shirt", "a trouser", "a pullover", "a dress", "a coat", "a sandal", "a shirt", "a sneaker",
                           "a bag", "an ankle boot"],
         "mnist": ["a zero", "a one", "a two", "a three", "a four", "a five", "a six", "a seven", "an eight", "a nine"]}
ROWS = {1: [""], 2: ["top", "bottom"], 3: ["top", "middle", "bottom"]}
COLUMNS = {1: [""], 2: ["left", "right"], 3: ["left", "center", "right"]}


def idx(directory, name):
    """The bytes after the header of an idx file."""
    for path in (directory / f"{name}{end}" for end in ("", ".gz")):
        for one in (path, path.with_name(path.name.replace("-idx", ".idx"))):
            if one.exists():
                data = one.read_bytes()
                data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
                return data[4 + 4 * data[3]:]
    sys.exit(f"make_captions.py: {directory}/{name}.gz: no such file; --data-dir names the directory of the data set")


def png(rows):
    """A grey picture of these rows of bytes, as RGB."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = b"".join(b"\0" + bytes(itertools.chain.from_iterable(zip(row, row, row))) for row in rows)
    size = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")


def seen_from(a, b):
    """Where cell a is, seen from cell b."""
    words = [{-1: "above", 1: "below"}.get((a[0] > b[0]) - (a[0] < b[0])),
             {-1: "left of", 1: "right of"}.get((a[1] > b[1]) - (a[1] < b[1]))]
    return " and ".join(word for word in words if word)


def sentences(cells, names, grid):
    """Five captions of the same items."""
    where = [" ".join(filter(None, (ROWS[grid[0]][row], COLUMNS[grid[1]][column]))) for row, column in cells]
    placed = [f"{name} at the {at}" if at else name for name, at in zip(names, where)]

    def listed(items):
        return " and ".join(filter(None, (", ".join(items[:-1]), items[-1])))

    if len(cells) == 1:
        said = [placed[0], f"there is {placed[0]}", f"the {where[0]} has {names[0]}" if where[0] else f"this is {names[0]}",
                f"a picture of {placed[0]}", f"at the {where[0]} is {names[0]}" if where[0] else f"here is {names[0]}"]
    elif len(cells) == 2:
        first, second = (f"{names[i]} {seen_from(cells[i], cells[1 - i])} {names[1 - i]}" for i in (0, 1))
        said = [first, f"there is {first}", second, f"a picture of {second}", listed(placed)]
    else:
        said = [listed(names), f"there are {listed(names)}", f"a picture of {listed(names)}", f"{listed(names)} in a picture",
                listed(placed)]
    return [text[0].upper() + text[1:] + "." for text in said]


def make_part(options, part, count):
    kind = {"train": "train", "val": "t10k"}[part]
    images, labels = idx(options.data_dir, f"{kind}-images-idx3-ubyte"), idx(options.data_dir, f"{kind}-labels-idx1-ubyte")
    rows, columns = options.grid
    draw = random.Random(f"{options.seed} {part}")
    listed, annotations = [], []
    (options.directory / part).mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        cells = sorted(draw.sample([(r, c) for r in range(rows) for c in range(columns)],
                                   draw.randint(1, min(options.items, rows * columns))))
        picture = [bytearray(SIDE * columns) for _ in range(SIDE * rows)]
        samples = [draw.randrange(len(labels)) for _ in cells]
        for (row, column), sample in zip(cells, samples):
            for y in range(SIDE):
                at = (sample * SIDE + y) * SIDE
                picture[row * SIDE + y][column * SIDE:(column + 1) * SIDE] = images[at:at + SIDE]
        name = f"made_{part}_{number:012d}.png"
        (options.directory / part / name).write_bytes(png(picture))
        listed.append({"id": number, "file_name": name, "width": SIDE * columns, "height": SIDE * rows})
        for caption in sentences(cells, [NAMES[options.data][labels[sample]] for sample in samples], options.grid):
            annotations.append({"id": len(annotations) + 1, "image_id": number, "caption": caption})
    path = options.directory / f"annotations/captions_{part}.json"
    path.with_suffix(".part").write_text(json.dumps({"images": listed, "annotations": annotations}, indent=0))
    path.with_suffix(".part").rename(path)


def grid(text):
    match = re.fullmatch(r"([1-3])(?:x([1-3]))?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"{text}: must be ROWSxCOLUMNS, each 1 to 3, or one number for both")
    return int(match[1]), int(match[2] or match[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", metavar="DIR", type=pathlib.Path)
    parser.add_argument("--data", choices=NAMES, default="fashion-mnist", help="take items from this data set (fashion-mnist)")
    parser.add_argument("--data-dir", type=pathlib.Path, metavar="DIR", help="find its files in DIR, as trainer does")
    parser.add_argument("--train", type=int, default=6000, metavar="N", help="images for training (6000)")
    parser.add_argument("--val", type=int, default=1000, metavar="N", help="images for evaluation (1000)")
    parser.add_argument("--grid", type=grid, default=(2, 2), metavar="ROWSxCOLUMNS", help="up to 3x3 (2)")
    parser.add_argument("--items", type=int, default=2, metavar="N", help="put 1 to N items in an image (2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="draw other images than with another N (1)")
    options = parser.parse_args()
    options.data_dir = options.data_dir or pathlib.Path("/usr/share/datasets", options.data)
    if options.items < 1:
        parser.error("--items: at least 1")
    (options.directory / "annotations").mkdir(parents=True, exist_ok=True)
    for part in ("train", "val"):
        if (path := options.directory / f"annotations/captions_{part}.json").exists():
            parser.error(f"{path} exists; make captions in another directory, or remove this one")
    for part in ("train", "val"):
        make_part(options, part, getattr(options, part))
    print(f"{options.directory}: {options.train} images for training, {options.val} for evaluation, with 5 captions each")


if __name__ == "__main__":
    main()
