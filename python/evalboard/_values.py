"""What users hand in, as NumPy arrays: tensors of PyTorch and JAX, numbers, pictures in any order of dimensions; and the
bytes of pictures, sounds and films."""
from __future__ import annotations

import ctypes
import io
import sys
from typing import Any

import numpy as np

from evalboard import _wire
from evalboard._library import call, lib


def as_array(x: Any) -> np.ndarray:
    """A NumPy array of what has numbers: arrays, tensors of PyTorch on any device, JAX and others by __array__ or DLPack,
    Python's numbers and lists (a single number becomes an array of one)."""
    if isinstance(x, np.ndarray):
        return x
    if np.isscalar(x):
        return np.array([x])
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        x = x.detach()
        if x.dtype == torch.bfloat16:  # NumPy has none; half is what PyTorch's own writer takes
            x = x.to(torch.float16)
        return x.cpu().resolve_conj().resolve_neg().numpy() if x.is_complex() else x.cpu().numpy()
    if hasattr(x, "__array__"):
        return np.asarray(x)
    if hasattr(x, "__dlpack__"):
        return np.from_dlpack(x)
    if isinstance(x, (list, tuple)):
        return np.array([as_array(item) for item in x]) if x and not np.isscalar(x[0]) else np.array(x)
    raise NotImplementedError(f"got a {type(x).__name__}; a number, a NumPy array or a tensor is expected")


def as_number(x: Any) -> float:
    """The one number in x."""
    array = as_array(x).squeeze()
    if array.ndim != 0:
        raise AssertionError(f"a scalar has one element, not {array.size} in {array.ndim} dimensions")
    return float(array)


# ---- tensors ------------------------------------------------------------------------------------------------------------
def varints(numbers: np.ndarray) -> bytes:
    """Integers as packed varints, one after the other."""
    rest = numbers.reshape(-1).astype(np.int64).view(np.uint64)
    septets = rest[:, np.newaxis] >> np.arange(0, 70, 7, dtype=np.uint64)
    used = septets > 0
    used[:, 0] = True
    out = (septets & np.uint64(127)).astype(np.uint8)
    out[:, :-1] |= used[:, 1:].astype(np.uint8) << 7
    return out[used].tobytes()


# Where PyTorch's writer puts the elements, for the types of which TensorBoard reads that: the number of the field.
FIELDS = {"float32": 5, "float64": 6, "int32": 7, "int64": 10, "complex64": 9, "complex128": 12}


def tensor_elements(array: np.ndarray) -> bytes:
    """The field of a TensorProto that holds the elements."""
    if not array.size:
        return b""
    if array.dtype.name in ("int32", "int64"):
        return _wire.field(FIELDS[array.dtype.name], varints(array))
    return _wire.field(FIELDS.get(array.dtype.name, 4), array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes())


# ---- histograms ---------------------------------------------------------------------------------------------------------
def default_limits() -> np.ndarray:
    """TensorFlow's limits, by repeated multiplication as all writers have them, so that their bits are the same."""
    limits = []
    x = 1e-12
    while x < 1e20:
        limits.append(x)
        x *= 1.1
    return np.array([-y for y in reversed(limits)] + [0.0] + limits)


_default_limits: list[np.ndarray] = []


def default_histogram(values: np.ndarray) -> tuple:
    """(numpy.histogram(values, default limits)[0], values.min(), values.max()) of a float64 array that is not empty, in one
    pass; NumPy decides between 0 and -0."""
    limits = _default_limits[0]
    values = np.ascontiguousarray(values)
    counts = np.empty(limits.size - 1, np.int64)
    ends = ctypes.c_double(), ctypes.c_double()
    call(lib.eventlog_bucket_counts_range, values.ctypes.data, values.size, limits.ctypes.data, limits.size,
         counts.ctypes.data, *map(ctypes.byref, ends))
    low, high = (end.value for end in ends)
    return counts, low or values.min(), high or values.max()


ONE_THREAD = 10_000  # numbers that a BLAS multiplies in one thread


def squares(values: np.ndarray) -> float:
    """values.dot(values), of many values part by part: the threads of a BLAS wait for their next work awake, which costs more
    than the product, and how many they are decides the last bits of the sum."""
    if values.size <= ONE_THREAD:
        return values.dot(values)
    parts = [values[i:i + ONE_THREAD] for i in range(0, values.size, ONE_THREAD)]
    return sum(part.dot(part) for part in parts)


def histogram(values: Any, bins: Any = "tensorflow", max_bins: int | None = None) -> Any:
    """(min, max, number, sum, sum of squares, right limits, counts) of a HistogramProto, as PyTorch computes them."""
    values = as_array(values).astype(float, copy=False).reshape(-1)
    if values.size == 0:
        raise ValueError("The input has no element.")
    if isinstance(bins, str) and bins == "tensorflow":
        if not _default_limits:
            _default_limits.append(default_limits())
        limits = _default_limits[0]
        counts, low, high = default_histogram(values)
    else:
        counts, limits = np.histogram(values, bins=bins)
        low, high = values.min(), values.max()
    if max_bins is not None and len(counts) > max_bins:
        joined = len(counts) // max_bins
        if len(counts) % joined:
            counts = np.pad(counts, (0, joined - len(counts) % joined))
        counts = counts.reshape(-1, joined).sum(axis=-1)
        fewer = np.empty(counts.size + 1, limits.dtype)
        fewer[:-1], fewer[-1] = limits[:-1:joined], limits[-1]
        limits = fewer
    filled = np.flatnonzero(counts)
    if not filled.size:
        raise ValueError("no value of the histogram is within its limits")
    # Only right limits are stored: an empty bucket on the left carries the left limit of the first one.
    start, end = int(filled[0]), int(filled[-1]) + 1
    counts = counts[start - 1:end] if start > 0 else np.concatenate([[0], counts[:end]])
    limits = limits[start:end + 1]
    return (low, high, len(values), values.sum(), squares(values), limits.tolist(), counts.tolist())


# ---- pictures -----------------------------------------------------------------------------------------------------------
def grid(images: np.ndarray, columns: int = 8) -> np.ndarray:
    """(N, 1 or 3, H, W) as one picture (3, rows * H, columns * W)."""
    if images.ndim != 4 or images.shape[1] not in (1, 3):
        raise AssertionError("a batch of pictures has four dimensions and 1 or 3 channels")
    if images.shape[1] == 1:
        images = np.concatenate([images] * 3, 1)
    n, _, height, width = images.shape
    columns = min(n, columns)
    rows = -(-n // columns)
    canvas = np.zeros((3, height * rows, width * columns), images.dtype)
    for i in range(n):
        y, x = divmod(i, columns)
        canvas[:, y * height:(y + 1) * height, x * width:(x + 1) * width] = images[i]
    return canvas


def to_hwc(array: np.ndarray, order: str) -> np.ndarray:
    """A picture, or a batch of them as a grid, with its dimensions named by `order` ("CHW", "NCHW", "HW", ...), as (height,
    width, channels)."""
    order = order.upper()
    if len(set(order)) != len(order):
        raise AssertionError(f"a dimension is named twice in {order!r}")
    if array.ndim != len(order):
        raise AssertionError(f"the tensor's shape {array.shape} does not match the dimensions {order!r}")
    if sorted(order) != sorted("NCHW"[4 - len(order):]):
        raise AssertionError(f"the dimensions {order!r} are not those of NCHW, CHW or HW in another order")
    if len(order) == 4:
        return grid(array.transpose([order.find(c) for c in "NCHW"])).transpose(1, 2, 0)
    if len(order) == 3:
        array = array.transpose([order.find(c) for c in "HWC"])
        return np.concatenate([array] * 3, 2) if array.shape[2] == 1 else array
    if len(order) == 2:
        return np.stack([array.transpose([order.find(c) for c in "HW"])] * 3, 2)
    raise AssertionError(f"{order!r} does not name the dimensions of a picture")


def to_pixels(array: np.ndarray) -> np.ndarray:
    """8 bits a channel: uint8 as it is, everything else from 0 to 1."""
    if array.dtype == np.uint8:
        return array
    return (array.astype(np.float32) * 255).clip(0, 255).astype(np.uint8)


def png(pixels: np.ndarray) -> bytes:
    """A PNG file of (height, width, 1 to 4 channels) of 8 bits."""
    pixels = np.ascontiguousarray(pixels, np.uint8)
    data, length = ctypes.c_void_p(), ctypes.c_size_t()
    call(lib.eventlog_png, pixels.ctypes.data, *pixels.shape, ctypes.byref(data), ctypes.byref(length))
    try:
        return ctypes.string_at(data, length.value)
    finally:
        lib.eventlog_free(data)


def picture(array: Any, order: str, rescale: float = 1, boxes: Any = None, labels: Any = None) -> Any:
    """(height, width, channels, PNG) of a picture; with boxes (x, y, x, y) drawn on it. Boxes and a scale take Pillow."""
    pixels = to_pixels(to_hwc(as_array(array), order))
    height, width, channels = pixels.shape
    if boxes is None and rescale == 1:
        return height, width, channels, png(pixels)
    from PIL import Image

    shown = Image.fromarray(np.ascontiguousarray(pixels))
    for i, box in enumerate(as_array(boxes) if boxes is not None else ()):
        draw_box(shown, box, labels[i] if labels is not None else None)
    shown = shown.resize((int(width * rescale), int(height * rescale)), Image.Resampling.LANCZOS)
    return height, width, channels, png(np.asarray(shown))


def draw_box(image: Any, box: Any, label: Any) -> None:
    """A red box of two pixels on an image of Pillow's, with its label at its lower left corner."""
    from PIL import ImageDraw, ImageFont

    draw, font = ImageDraw.Draw(image), ImageFont.load_default()
    left, top, right, bottom = (float(x) for x in box)
    draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=2, fill="Red")
    if label:
        x0, y0, x1, y1 = font.getbbox(label)
        width, height = x1 - x0, y1 - y0
        margin = np.ceil(0.05 * height)
        draw.rectangle([(left, bottom - height - 2 * margin), (left + width, bottom)], fill="Red")
        draw.text((left + margin, bottom - height - margin), label, fill="black", font=font)


def figure_pixels(figures: Any, close: bool = True) -> np.ndarray:
    """A matplotlib figure as (3, H, W), a list of them as (N, 3, H, W)."""
    for figure in figures if isinstance(figures, list) else [figures]:
        if not hasattr(figure, "set_canvas"):
            raise TypeError(f"got a {type(figure).__name__}; a figure of matplotlib or a list of them is expected")
    import matplotlib.backends.backend_agg as agg
    import matplotlib.pyplot as pyplot

    def render(figure: Any) -> Any:
        canvas = agg.FigureCanvasAgg(figure)
        canvas.draw()
        pixels = np.asarray(canvas.buffer_rgba())[:, :, :3]
        if close:
            pyplot.close(figure)
        return np.moveaxis(pixels, 2, 0)

    return np.stack([render(figure) for figure in figures]) if isinstance(figures, list) else render(figures)


def gif(frames: np.ndarray, fps: float) -> bytes:
    """A GIF file that repeats (frames, height, width, 1 or 3 channels) of 8 bits; takes Pillow."""
    from PIL import Image

    images = [Image.fromarray(frame[:, :, 0] if frame.shape[2] == 1 else frame) for frame in frames]
    out = io.BytesIO()
    images[0].save(out, "GIF", save_all=True, append_images=images[1:], duration=1000 / fps, loop=0)
    return out.getvalue()


def video_frames(array: Any, order: str = "NTCHW") -> np.ndarray:
    """A batch of films as one: (frames, rows * height, columns * width, channels) of 8 bits."""
    film = as_array(array)
    order = order.upper()
    if film.ndim != 5 or sorted(order) != sorted("NTCHW"):
        raise AssertionError(f"a batch of films has five dimensions, N, T, C, H and W; got {film.shape} as {order!r}")
    film = to_pixels(film.transpose([order.find(c) for c in "NTCHW"]))
    n, frames, channels, height, width = film.shape
    full = 1 << (n - 1).bit_length()
    film = np.concatenate([film, np.zeros((full - n, *film.shape[1:]), film.dtype)])
    rows = 1 << ((n.bit_length() - 1) // 2)
    film = film.reshape(rows, full // rows, frames, channels, height, width).transpose(2, 0, 4, 1, 5, 3)
    return film.reshape(frames, rows * height, full // rows * width, channels)


def wav(array: Any, sample_rate: int, several: bool = False) -> Any:
    """(frames, channels, WAV file of 16 bits) of samples between -1 and 1: (frames,); several: or (frames, 1 or 2 channels).
    """
    import wave

    samples = as_array(array)
    if samples.size and abs(samples).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        samples = samples.clip(-1, 1)
    if not several:
        samples = samples.squeeze()
        if samples.ndim != 1:
            raise AssertionError("input tensor should be 1 dimensional.")
    if samples.ndim == 1:
        samples = samples[:, np.newaxis]
    if samples.ndim != 2 or samples.shape[1] not in (1, 2):
        raise AssertionError("a sound has the shape (frames,) or (frames, 1 or 2 channels)")
    samples = (samples * np.iinfo(np.int16).max).astype("<i2")
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    return (*samples.shape, out.getvalue())


# ---- precision and recall -----------------------------------------------------------------------------------------------
def pr_curve(labels: Any, predictions: Any, thresholds: int, weights: Any = None) -> np.ndarray:
    """(6, thresholds): true and false positives, true and false negatives, precision, recall, as PyTorch computes them."""
    labels, predictions = as_array(labels), as_array(predictions)
    if labels.shape != predictions.shape:
        raise ValueError(f"labels has shape {labels.shape}, predictions {predictions.shape}; both must be the same")
    weights = 1.0 if weights is None else weights
    places = np.int32(np.floor(predictions * (thresholds - 1)))
    truth = labels.astype(np.float64)
    bounds = (0, thresholds - 1)
    positive, _ = np.histogram(places, thresholds, bounds, weights=truth * weights)
    negative, _ = np.histogram(places, thresholds, bounds, weights=(1.0 - truth) * weights)
    tp, fp = np.cumsum(positive[::-1])[::-1], np.cumsum(negative[::-1])[::-1]
    tn, fn = fp[0] - fp, tp[0] - tp
    return np.stack((tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / np.maximum(1e-7, tp + fn)))
