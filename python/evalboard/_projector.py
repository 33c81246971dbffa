"""Files for the embedding projector, in the layout of PyTorch's and tensorboardX's add_embedding()."""
from __future__ import annotations

import math
import os

import numpy as np

from evalboard._values import as_array, grid, png


def _replace(path: str, data: bytes) -> None:
    """The file appears whole."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _quoted(text: str) -> str:
    """A string of protobuf's text format."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _sprite(images: np.ndarray) -> bytes:
    """Pictures (N, C, H, W) side by side in a square, as PNG."""
    canvas = grid(images, math.ceil(len(images) ** 0.5)).transpose(1, 2, 0)
    square = np.zeros((canvas.shape[1], canvas.shape[1], 3))
    square[:canvas.shape[0]] = canvas[:square.shape[0]]
    return png(np.uint8((square * 255).clip(0, 255)))


def _labels(metadata, header) -> bytes:
    if not header:
        lines = [str(x) for x in metadata]
    else:
        if len(header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        lines = ["\t".join(str(x) for x in row) for row in [header, *metadata]]
    return ("\n".join(lines) + "\n").encode()


def _put(output, path: str, data: bytes) -> None:
    """Into a file, or what the output opens."""
    if output is None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _replace(path, data)
        return
    stream = output(path)
    try:
        stream.write(data)
    finally:
        stream.close()


def add(directory: str, known: list[dict], mat, metadata, label_img, step: int, tag: str, folder: str, header,
        output=None) -> list[dict]:
    """Writes an embedding below `directory` and the configuration with those already known. Returns all of them."""
    mat = as_array(mat)
    below = f"{str(step).zfill(5)}/{folder}"
    place = os.path.join(directory, below)
    if output is not None:
        pass
    elif os.path.isdir(place):
        print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
    elif os.path.exists(place):
        raise NotADirectoryError(f"Path: `{place}` exists, but is a file. Cannot proceed.")
    if mat.ndim != 2:
        raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
    for what, given in (("labels", metadata), ("images", label_img)):
        if given is not None and len(given) != len(mat):
            raise AssertionError(f"#{what} should equal with #data points")
    entry = {"tensor_name": f"{tag}:{str(step).zfill(5)}", "tensor_path": f"{below}/tensors.tsv"}
    if metadata is not None:
        _put(output, os.path.join(place, "metadata.tsv"), _labels(metadata, header))
        entry["metadata_path"] = f"{below}/metadata.tsv"
    if label_img is not None:
        images = as_array(label_img)
        if images.shape[2] != images.shape[3]:
            raise AssertionError("Image should be square, see tensorflow/tensorboard#670")
        _put(output, os.path.join(place, "sprite.png"), _sprite(images))
        entry["sprite"] = f"{below}/sprite.png"
        entry["size"] = images.shape[3], images.shape[2]
    _put(output, os.path.join(place, "tensors.tsv"),
         "".join("\t".join(map(str, row)) + "\n" for row in mat.tolist()).encode())
    known = [*known, entry]
    _put(output, os.path.join(directory, "projector_config.pbtxt"), "".join(map(_config, known)).encode())
    return known


def _config(entry: dict) -> str:
    lines = [f"  {name}: {_quoted(entry[name])}" for name in ("tensor_name", "tensor_path", "metadata_path") if name in entry]
    if "sprite" in entry:
        lines += ["  sprite {", f"    image_path: {_quoted(entry['sprite'])}",
                  *(f"    single_image_dim: {n}" for n in entry["size"]), "  }"]
    return "embeddings {\n" + "\n".join(lines) + "\n}\n"
