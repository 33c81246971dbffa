"""The functions of torch.utils.tensorboard.summary: each makes the message that a method of SummaryWriter writes, for
FileWriter.add_summary():

    experiment, start, end = evalboard.summary.hparams({"rate": 0.1}, {"accuracy": 0.9})
    writer.file_writer.add_summary(experiment)
"""
from __future__ import annotations

import struct
from typing import Any

from evalboard import _wire
from evalboard.writer import SummaryWriter

__all__ = ["Summary", "audio", "custom_scalars", "half_to_int", "histogram", "histogram_raw", "hparams", "image", "image_boxes",
           "int_to_half", "mesh", "pr_curve", "pr_curve_raw", "scalar", "tensor_proto", "text", "video"]


class Summary:
    """A serialized Summary message. Its members, such as `value`, are those of TensorBoard's class, which they take."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def SerializeToString(self) -> bytes:  # noqa: N802, protobuf's name
        """The bytes of the message."""
        return self._data

    def message(self) -> Any:
        """The message as an object of tensorboard.compat.proto.summary_pb2; takes TensorBoard."""
        from tensorboard.compat.proto.summary_pb2 import Summary as Message

        return Message.FromString(self._data)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.message(), name)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, Summary):
            return self._data == other._data
        return self.message() == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        try:
            return str(self.message())
        except ImportError:
            return f"<Summary of {len(self._data)} bytes>"


class _Taker(SummaryWriter):
    """Keeps what a method would write."""

    def __init__(self) -> None:
        self.taken = b""

    def _put(self, *values: bytes, step: int | None = None, walltime: float | None = None) -> None:
        self.taken += b"".join(_wire.field(1, value) for value in values)


def _summary(method: str, *arguments: Any, **named: Any) -> Summary:
    taker = _Taker()
    getattr(taker, method)(*arguments, **named)
    return Summary(taker.taken)


def _calc_scale_factor(tensor: Any) -> int:
    """By what add_image() multiplies such pixels; PyTorch's function, which its tests call."""
    from evalboard._values import as_array

    return 1 if as_array(tensor).dtype == "uint8" else 255


def scalar(name: str, tensor: Any, collections: Any = None, new_style: bool = False,
           double_precision: bool = False) -> Summary:
    """A point of a curve; see SummaryWriter.add_scalar()."""
    from evalboard._values import as_number

    value = SummaryWriter._scalar_value(name, as_number(tensor), new_style, double_precision, "", "")
    return Summary(_wire.field(1, value))


def tensor_proto(tag: str, tensor: Any) -> Summary:
    """An array; see SummaryWriter.add_tensor()."""
    return _summary("add_tensor", tag, tensor)


def histogram_raw(name: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
                  bucket_counts: Any) -> Summary:
    """A histogram that is counted already; see SummaryWriter.add_histogram_raw()."""
    return _summary("add_histogram_raw", name, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Summary:
    """A distribution; see SummaryWriter.add_histogram()."""
    return _summary("add_histogram", name, values, bins=bins, max_bins=max_bins)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Summary:
    """A picture, scaled by `rescale`; see SummaryWriter.add_image()."""
    from evalboard._values import picture

    return Summary(_wire.field(1, _wire.image(tag, *picture(tensor, dataformats, rescale))))


def image_boxes(tag: str, tensor_image: Any, tensor_boxes: Any, rescale: float = 1, dataformats: str = "CHW",
                labels: Any = None) -> Summary:
    """A picture with boxes; see SummaryWriter.add_image_with_boxes()."""
    return _summary("add_image_with_boxes", tag, tensor_image, tensor_boxes, rescale=rescale, dataformats=dataformats,
                    labels=labels)


def video(tag: str, tensor: Any, fps: float = 4) -> Summary:
    """Films; see SummaryWriter.add_video()."""
    return _summary("add_video", tag, tensor, fps=fps)


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Summary:
    """A sound; see SummaryWriter.add_audio()."""
    return _summary("add_audio", tag, tensor, sample_rate=sample_rate)


def custom_scalars(layout: Any) -> Summary:
    """A layout of charts; see SummaryWriter.add_custom_scalars()."""
    return _summary("add_custom_scalars", layout)


def text(tag: str, text: Any) -> Summary:
    """A text; see SummaryWriter.add_text()."""
    return _summary("add_text", tag, text)


def pr_curve_raw(tag: str, tp: Any, fp: Any, tn: Any, fn: Any, precision: Any, recall: Any, num_thresholds: int = 127,
                 weights: Any = None) -> Summary:
    """Precision and recall from counts; see SummaryWriter.add_pr_curve_raw()."""
    return _summary("add_pr_curve_raw", tag, tp, fp, tn, fn, precision, recall, num_thresholds=num_thresholds)


def pr_curve(tag: str, labels: Any, predictions: Any, num_thresholds: int = 127, weights: Any = None) -> Summary:
    """Precision and recall; see SummaryWriter.add_pr_curve()."""
    return _summary("add_pr_curve", tag, labels, predictions, num_thresholds=num_thresholds, weights=weights)


def mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: str | None = None,
         description: str | None = None) -> Summary:
    """Meshes; see SummaryWriter.add_mesh()."""
    values = SummaryWriter._mesh(tag, vertices, colors, faces, config_dict, display_name or "", description or "")
    return Summary(b"".join(_wire.field(1, value) for value in values))


def hparams(hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None) -> tuple[Summary,
            Summary, Summary]:
    """(the experiment, the start of the session, its end); see SummaryWriter.add_hparams()."""
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            raise TypeError(f"parameter: {name} should be a dictionary, nothing logged.")
    infos, start = SummaryWriter._hparams(hparam_dict, hparam_domain_discrete or {})
    parts = (("experiment", _wire.experiment(infos, metric_dict)), ("session_start_info", _wire.session_start(start)),
             ("session_end_info", _wire.session_end()))
    made = [Summary(_wire.field(1, _wire.hparams_value("_hparams_/" + tag, content))) for tag, content in parts]
    return made[0], made[1], made[2]


def half_to_int(f: float) -> int:
    """The bits of a float32 as an integer."""
    return struct.unpack("i", struct.pack("f", f))[0]


def int_to_half(i: int) -> float:
    """The float32 of these bits."""
    return struct.unpack("f", struct.pack("i", i))[0]
