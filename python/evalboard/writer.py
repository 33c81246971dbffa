"""SummaryWriter: what torch.utils.tensorboard and tensorboardX have under this name, over libeventlog."""
from __future__ import annotations

import functools
import json
import os
import struct
import sys
import time
from typing import TYPE_CHECKING, Any, Sequence

from evalboard import _file, _wire
from evalboard._file import HOLD_POINTS, POINT, EventFile
from evalboard._library import EventLogError, StrPath

if TYPE_CHECKING:
    from evalboard.output import Open

__all__ = ["FileWriter", "SummaryWriter"]

_pack = POINT.pack


def _number(x: Any) -> float:
    if type(x) in (int, bool) or getattr(x, "ndim", None) == 0:
        # float() of a loss that is still to be differentiated warns.
        return float(x.detach() if getattr(x, "requires_grad", False) else x)
    from evalboard._values import as_number

    return as_number(x)


def _slowly_packed(number: int, step: Any, walltime: Any, value: float) -> bytes:
    """A point whose step or time is no plain number: of NumPy, of PyTorch, or a mistake, which is named."""
    try:
        step = 0 if step is None else int(step)
    except (TypeError, ValueError) as error:
        raise type(error)(f"global_step is an integer, not {step!r}") from None
    if not -1 << 63 <= step < 1 << 63:
        raise OverflowError(f"global_step is {step}, which 64 bits do not hold")
    try:
        walltime = float(walltime)
    except (TypeError, ValueError) as error:
        raise type(error)(f"walltime is a number of seconds since 1970, not {walltime!r}") from None
    return _pack(number, step, walltime, value)


def _serialized(message: Any) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()


def _output_of(log_dir: StrPath, output: "Open | None") -> "Open | None":
    """What is given, or for s3://bucket/run and the like what opens this."""
    if output is None and "://" in str(log_dir):
        from evalboard.output import is_url, open_url

        return open_url if is_url(log_dir) else None
    return output


class FileWriter:
    """An event file in log_dir, with the methods of PyTorch's FileWriter: for messages that are made elsewhere. Messages are
    protobuf objects or their bytes. output, rotate_bytes, rotate_seconds: as of SummaryWriter."""

    def __init__(self, log_dir: StrPath, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
                 purge_step: int | None = None, *, output: "Open | None" = None, rotate_bytes: int = 0,
                 rotate_seconds: float = 0) -> None:
        self._log_dir = str(log_dir)
        output = _output_of(log_dir, output)
        self.file = EventFile(self._log_dir, filename_suffix, flush_secs, purge_step, output=output,
                              rotate_bytes=rotate_bytes, rotate_seconds=rotate_seconds)
        self.file.open()
        self._defaults: dict[str, Any] = {}

    def get_logdir(self) -> str:
        """The directory of the file."""
        return self._log_dir

    @property
    def event_writer(self) -> "FileWriter":
        """Itself: programs look for the name of the file at writer.file_writer.event_writer._ev_writer._file_name."""
        return self

    _ev_writer = event_writer
    _file_name = property(lambda self: self.file.path)

    def add_event(self, event: Any, step: int | None = None, walltime: float | None = None) -> None:
        """Writes an Event, at wall time `walltime` or now, at its own step or `step`."""
        step = self._defaults.get("global_step") if step is None else step
        wall = self._defaults.get("walltime") if walltime is None else walltime
        later = _wire.double(1, time.time() if wall is None else float(wall))  # of two fields the last one counts
        self.file.put_event(_serialized(event) + later + (_wire.varint(2 << 3) + _wire.varint(int(step))
                                                          if step is not None else b""))

    def add_summary(self, summary: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """Writes a Summary."""
        self._put(_wire.field(5, _serialized(summary)), global_step, walltime)

    def _put(self, body: bytes, step: int | None = None, walltime: float | None = None) -> None:
        defaults = self._defaults
        if defaults:
            step = defaults.get("global_step") if step is None else step
            walltime = defaults.get("walltime") if walltime is None else walltime
        self.file.put(body, step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Writes (GraphDef, RunMetadata)."""
        graph, statistics = graph_profile
        self.file.put(_wire.field(4, _serialized(graph)), None, walltime)
        tagged = _wire.text(1, "step1") + _wire.field(2, _serialized(statistics))
        self.file.put(_wire.field(8, tagged), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Writes a GraphDef."""
        self.file.put(_wire.field(4, _serialized(graph)), None, walltime)

    add_openvino_graph = add_onnx_graph

    def flush(self) -> None:
        """Passes everything to the operating system, so that readers see it."""
        self.file.flush()

    def close(self) -> None:
        """Flushes, and closes the file. A later value makes another one."""
        self.file.close()

    def reopen(self) -> None:
        """Makes another file, if this one is closed."""
        self.file.open()


class SummaryWriter:
    """Writes event files that TensorBoard shows. A drop-in for torch.utils.tensorboard.SummaryWriter; the signatures of
    tensorboardX, where they differ, are those of evalboard.tensorboardX.SummaryWriter.

    Tensors are anything with numbers: NumPy, PyTorch on any device, JAX, lists. global_step: an integer, by default 0.
    walltime: seconds since 1970, by default now.

    log_dir: the directory of the run, by default runs/TIME_HOST and `comment`; s3://bucket/run and the like take fsspec. purge_step: the training restarts at this
    step, so points of older files of the run from there on are hidden. max_queue, flush_secs: points are written ten at
    a time, and half a second after the call at the latest; to an output 2.5 seconds after it, or flush_secs + 0.5, if that is
    less. filename_suffix: added to the names of the files.

    output: a function that is called with a path, log_dir/NAME, and opens what the bytes go to instead of a file, such as
    fsspec's open(path, "wb"), or a MemoryOutput; see evalboard.output.Stream. rotate_bytes, rotate_seconds: complete a file
    that has reached this size or age, and begin another, so that an object store shows what is written before the end; 0: one
    file. TensorBoard shows one curve across them.

    Errors of writing (a full disk, a directory that is gone) are raised as evalboard.EventLogError by the call that meets
    them, or by flush() and close(); points that wait are tried again. May be used from any thread, and
    from signal handlers, which may raise: the point whose call they interrupt is written once or not at all, all others once.
    In a forked child, as of multiprocessing or a DataLoader, it writes to a file of its own. At the end of the interpreter
    everything is written.
    """

    def __init__(self, log_dir: str | os.PathLike | None = None, comment: str = "", purge_step: int | None = None,
                 max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "", *, output: "Open | None" = None,
                 rotate_bytes: int = 0, rotate_seconds: float = 0) -> None:
        if not log_dir:
            import socket
            from datetime import datetime

            log_dir = os.path.join("runs", datetime.now().strftime("%b%d_%H-%M-%S") + "_" + socket.gethostname() + comment)
        self.log_dir = log_dir
        self.purge_step, self.max_queue, self.flush_secs = purge_step, max_queue, flush_secs
        self.filename_suffix = filename_suffix
        self._where = {"output": _output_of(log_dir, output), "rotate_bytes": rotate_bytes, "rotate_seconds": rotate_seconds}
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self._embeddings: list[dict] = []
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        return next(iter(self._of_all().values()))

    def _of_all(self) -> dict[str, FileWriter]:
        """The writers by their directories, of which the first is the run's; a signal handler may close them meanwhile."""
        writers = self.all_writers
        if writers is None or self.file_writer is None:
            writer = self._new_file(str(self.log_dir), self.purge_step)
            self.all_writers = writers = {writer.get_logdir(): writer}
            self.file_writer = writer
            self.purge_step = None
        return writers

    def _file_of(self, directory: str) -> FileWriter:
        """The writer of a run below."""
        writers = self._of_all()
        if directory not in writers:
            writers[directory] = self._new_file(directory)
        return writers[directory]

    def _new_file(self, directory: str, purge_step: int | None = None) -> FileWriter:
        return FileWriter(directory, self.max_queue, self.flush_secs, self.filename_suffix, purge_step, **self._where)

    def _put(self, *values: bytes, step: int | None = None, walltime: float | None = None) -> None:
        self._get_file_writer()._put(_wire.summary(*values), step, walltime)

    def __reduce__(self) -> Any:
        return functools.partial(type(self), **self._where), (str(self.log_dir), "", None, self.max_queue, self.flush_secs,
                                                              self.filename_suffix)

    def get_logdir(self) -> str:
        """The directory of the run."""
        return str(self.log_dir)

    # ---- numbers --------------------------------------------------------------------------------------------------------
    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   new_style: bool = False, double_precision: bool = False, display_name: str = "",
                   summary_description: str = "") -> None:
        """One point of the curve `tag`. scalar_value: one number.

        new_style: stored as a tensor of the scalars plugin, with double_precision of 64 bits, which TensorBoard reads as 32
        all the same, but evalboard.read() does not. display_name, summary_description: shown with the curve."""
        if new_style or display_name or summary_description or walltime == 0:
            self._put(self._scalar_value(tag, _number(scalar_value), new_style, double_precision, display_name,
                                         summary_description), step=global_step, walltime=walltime)
            return
        if type(scalar_value) is not float:
            scalar_value = _number(scalar_value)
        writer = self.file_writer or self._get_file_writer()
        if writer._defaults:
            global_step = writer._defaults.get("global_step") if global_step is None else global_step
            walltime = writer._defaults.get("walltime") if walltime is None else walltime
        file = writer.file
        number = file.series.get(tag)
        if number is None:
            number = file.number_of(tag)
        if walltime is None:
            walltime = time.time()
        try:
            point = _pack(number, global_step, walltime, scalar_value)
        except struct.error:
            point = _slowly_packed(number, global_step, walltime, scalar_value)
        file.append(point)
        if len(file.points) > HOLD_POINTS:
            file.drain()
        elif file.asked != _file.passer.round:
            _file.passer.want(file)

    @staticmethod
    def _scalar_value(tag: str, number: Any, new_style: bool, double_precision: bool, display_name: str,
                      description: str) -> bytes:
        if not new_style:
            meta = _wire.metadata("", b"", display_name, description) if display_name or description else b""
            return _wire.simple_value(tag, number, meta)
        if double_precision:
            tensor = _wire.tensor(2, _wire.field(6, struct.pack("<d", number)))
        else:
            tensor = _wire.tensor(1, _wire.field(5, _wire.simple_value("", number)[1:]))
        return _wire.text(1, tag) + tensor + _wire.metadata("scalars", b"", display_name, description)

    def add_scalars(self, main_tag: str, tag_scalar_dict: dict, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Several curves in one chart: each key of tag_scalar_dict is a run of its own, log_dir/main_tag_KEY."""
        if not hasattr(tag_scalar_dict, "items"):
            raise TypeError(f"tag_scalar_dict is a dict of numbers by tag, not a {type(tag_scalar_dict).__name__}")
        walltime = time.time() if walltime is None else walltime
        base = str(self._get_file_writer().get_logdir())
        for tag, value in tag_scalar_dict.items():
            writer = self._file_of(base + "/" + main_tag.replace("/", "_") + "_" + tag)
            writer._put(_wire.summary(_wire.simple_value(main_tag, _number(value))), global_step, walltime)

    def add_tensor(self, tag: str, tensor: Any, global_step: int | None = None, walltime: float | None = None) -> None:
        """An array of any shape of numbers, which evalboard.read_tensors() returns. TensorBoard itself does not show it."""
        from evalboard._values import as_array, tensor_elements

        dtype = str(getattr(tensor, "dtype", ""))
        array = as_array(tensor.detach().view(sys.modules["torch"].int16) if dtype == "torch.bfloat16" else tensor)
        if array.nbytes >= 1 << 31:
            raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
        number = _wire.DTYPES.get("bfloat16" if dtype in ("torch.bfloat16", "bfloat16") else array.dtype.name)
        if number is None:
            raise ValueError(f"{tag} has unsupported tensor dtype {array.dtype}")
        shape = getattr(tensor, "shape", array.shape)
        content = _wire.field(4, array.tobytes()) if number == _wire.DTYPES["bfloat16"] else tensor_elements(array)
        self._put(_wire.text(1, tag) + _wire.tensor(number, content, shape) + _wire.metadata("tensor"), step=global_step,
                  walltime=walltime)

    # ---- distributions --------------------------------------------------------------------------------------------------
    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """The distribution of values of any shape. bins: "tensorflow" (limits 10 % apart), or what numpy.histogram() takes;
        max_bins: join buckets until there are at most about so many."""
        from evalboard._values import histogram

        self._put(_wire.histogram(tag, *histogram(values, bins, max_bins)), step=global_step, walltime=walltime)

    def add_histogram_raw(self, tag: str, min: Any, max: Any, num: Any, sum: Any, sum_squares: Any, bucket_limits: Any,
                          bucket_counts: Any,
                          global_step: int | None = None, walltime: float | None = None) -> None:
        """A histogram that is counted already: bucket_counts[i] values up to bucket_limits[i]."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._put(_wire.histogram(tag, float(min), float(max), float(num), float(sum), float(sum_squares),
                                  [float(x) for x in bucket_limits], [float(x) for x in bucket_counts]),
                  step=global_step, walltime=walltime)

    # ---- pictures -------------------------------------------------------------------------------------------------------
    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """A picture with 1 (grey), 3 or 4 channels: uint8, or numbers from 0 to 1. dataformats names its dimensions: "CHW",
        "HWC", "HW"; "NCHW" and so on make a grid."""
        from evalboard._values import picture

        self._put(_wire.image(tag, *picture(img_tensor, dataformats)), step=global_step, walltime=walltime)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """A batch of pictures, as a grid of eight columns."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
                             walltime: float | None = None, rescale: float = 1, dataformats: str = "CHW",
                             labels: Sequence[str] | str | None = None) -> None:
        """A picture with boxes: box_tensor (N, 4) of x0, y0, x1, y1; labels: N texts. Takes Pillow."""
        from evalboard._values import picture

        labels = [labels] if isinstance(labels, str) else labels
        if labels is not None and len(labels) != box_tensor.shape[0]:
            labels = None
        self._put(_wire.image(tag, *picture(img_tensor, dataformats, rescale, box_tensor, labels)), step=global_step,
                  walltime=walltime)

    def add_figure(self, tag: str, figure: Any, global_step: int | None = None, close: bool = True,
                   walltime: float | None = None) -> None:
        """A figure of matplotlib, or a list of them as a grid. close: close it afterwards."""
        from evalboard._values import figure_pixels

        pixels = figure_pixels(figure, close)
        self.add_image(tag, pixels, global_step, walltime, "NCHW" if isinstance(figure, list) else "CHW")

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None, dataformats: str = "NTCHW") -> None:
        """A batch of films as one animated GIF: (N, frames, channels, H, W), uint8 or from 0 to 1. Takes Pillow."""
        from evalboard._values import gif, video_frames

        frames = video_frames(vid_tensor, dataformats)
        self._put(_wire.image(tag, *frames.shape[1:], gif(frames, fps)), step=global_step, walltime=walltime)

    # ---- sounds and texts -----------------------------------------------------------------------------------------------
    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """A sound of one channel: (frames,) or (1, frames) between -1 and 1; sample_rate in Hz."""
        from evalboard._values import wav

        frames, channels, encoded = wav(snd_tensor, sample_rate)
        self._put(_wire.audio(tag, sample_rate, channels, frames, encoded), step=global_step, walltime=walltime)

    def add_text(self, tag: str, text_string: str, global_step: int | None = None, walltime: float | None = None) -> None:
        """A text in Markdown."""
        if not isinstance(text_string, str):
            raise TypeError(f"text_string is a str, not a {type(text_string).__name__}")
        self._put(_wire.text(1, tag + "/text_summary") + _wire.tensor(_wire.STRING, _wire.strings([text_string.encode()]), [1]) +
                  _wire.metadata("text"), step=global_step, walltime=walltime)

    # ---- graphs ---------------------------------------------------------------------------------------------------------
    def add_graph(self, model: Any, input_to_model: Any = None, verbose: bool = False,
                  use_strict_trace: bool = True) -> None:
        """The graph of a PyTorch model, traced by PyTorch's own torch.utils.tensorboard, which takes TensorBoard."""
        from torch.utils.tensorboard._pytorch_graph import graph

        self._get_file_writer().add_graph(graph(model, input_to_model, verbose, use_strict_trace))

    def add_onnx_graph(self, prototxt: StrPath) -> None:
        """The graph of an ONNX file; takes the packages onnx and torch with TensorBoard."""
        from torch.utils.tensorboard._onnx_graph import load_onnx_graph

        self._get_file_writer().add_onnx_graph(load_onnx_graph(prototxt))

    # ---- embeddings -----------------------------------------------------------------------------------------------------
    @staticmethod
    def _encode(rawstr: str) -> str:
        return rawstr.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")

    def add_embedding(self, mat: Any, metadata: Sequence | None = None, label_img: Any = None,
                      global_step: int | None = None,
                      tag: str = "default", metadata_header: Sequence[str] | None = None) -> None:
        """Points for the projector, (N, dimensions), as files in log_dir/STEP/TAG and projector_config.pbtxt. metadata: N
        labels, or N lists of them with metadata_header; label_img: N pictures (N, C, H, W)."""
        from evalboard import _projector

        self._embeddings = _projector.add(str(self._get_file_writer().get_logdir()), self._embeddings, mat, metadata, label_img,
                                          0 if global_step is None else global_step, tag, self._encode(tag),
                                          metadata_header, self._where["output"])

    # ---- classification -------------------------------------------------------------------------------------------------
    def add_pr_curve(self, tag: str, labels: Any, predictions: Any, global_step: int | None = None,
                     num_thresholds: int = 127,
                     weights: Any = None, walltime: float | None = None) -> None:
        """Precision and recall over thresholds. labels: 0 or 1; predictions: 0 to 1; both (N,)."""
        from evalboard._values import pr_curve

        thresholds = min(num_thresholds, 127)
        self._put_pr_curve(tag, pr_curve(labels, predictions, thresholds, weights), thresholds, global_step, walltime)

    def add_pr_curve_raw(self, tag: str, true_positive_counts: Any, false_positive_counts: Any, true_negative_counts: Any,
                         false_negative_counts: Any, precision: Any, recall: Any, global_step: int | None = None,
                         num_thresholds: int = 127, weights: Any = None, walltime: float | None = None) -> None:
        """The same from counts, each (num_thresholds,)."""
        import numpy as np

        from evalboard._values import as_array

        rows = [as_array(x) for x in (true_positive_counts, false_positive_counts, true_negative_counts,
                                      false_negative_counts, precision, recall)]
        self._put_pr_curve(tag, np.stack(rows), min(num_thresholds, 127), global_step, walltime)

    def _put_pr_curve(self, tag: str, rows: Any, thresholds: Any, step: int | None, walltime: float | None) -> None:
        content = _wire.floats(rows.astype("<f4").tobytes())
        self._put(_wire.text(1, tag) + _wire.tensor(1, content, rows.shape) +
                  _wire.metadata("pr_curves", _wire.integer(2, thresholds)), step=step, walltime=walltime)

    # ---- the custom scalars page ----------------------------------------------------------------------------------------
    def add_custom_scalars_multilinechart(self, tags: Sequence[str], category: str = "default",
                                          title: str = "untitled") -> None:
        """A layout of one chart with these curves."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags: Sequence[str], category: str = "default",
                                       title: str = "untitled") -> None:
        """A layout of one chart with a curve and a band: tags of value, lower, upper."""
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: dict[str, dict[str, list]]) -> None:
        """A layout {category: {title: ["Multiline" or "Margin", tags]}}; the last one of a run counts."""
        self._put(_wire.text(1, "custom_scalars__config__") +
                  _wire.tensor(_wire.STRING, _wire.strings([_wire.layout(layout)]), []) + _wire.metadata("custom_scalars"))

    # ---- meshes ---------------------------------------------------------------------------------------------------------
    def add_mesh(self, tag: str, vertices: Any, colors: Any = None, faces: Any = None, config_dict: dict | None = None,
                 global_step: int | None = None, walltime: float | None = None) -> None:
        """Meshes or point clouds: vertices (B, N, 3), colors (B, N, 3) from 0 to 255, faces (B, M, 3); config_dict: camera,
        lights and material of three.js."""
        self._put(*self._mesh(tag, vertices, colors, faces, config_dict), step=global_step, walltime=walltime)

    @staticmethod
    def _mesh(tag: str, vertices: Any, colors: Any, faces: Any, config_dict: Any, display_name: str = "",
              description: str = "") -> list[bytes]:
        from evalboard._values import as_array

        config = json.dumps(config_dict, sort_keys=True) if config_dict is not None else "{}"
        parts = [(number, name, as_array(x)) for number, name, x in ((1, "VERTEX", vertices), (2, "FACE", faces),
                                                                    (3, "COLOR", colors)) if x is not None]
        for number, name, array in parts:
            if array.ndim != 3 or array.shape[2] != 3:
                what = {1: "vertices", 2: "faces", 3: "colors"}[number]
                raise ValueError(f"{what} has shape {array.shape}; (batch, number, 3) is expected")
        components = sum(1 << number for number, _, _ in parts)
        values = []
        for number, name, array in parts:
            content = _wire.text(2, tag) + _wire.integer(3, number) + _wire.text(5, config) + \
                _wire.field(6, b"".join(_wire.varint(n) for n in array.shape)) + _wire.integer(7, components)
            values.append(_wire.text(1, f"{tag}_{name}") +
                          _wire.tensor(1, _wire.floats(array.astype("<f4").tobytes()), array.shape) +
                          _wire.metadata("mesh", content, display_name, description))
        return values

    # ---- hyperparameters ------------------------------------------------------------------------------------------------
    def add_hparams(self, hparam_dict: dict, metric_dict: dict, hparam_domain_discrete: dict | None = None,
                    run_name: str | None = None, global_step: int | None = None) -> None:
        """A row of the table of hyperparameters: settings (numbers, texts, bools) and the metrics that they led to, as a run
        log_dir/run_name, by default named by the time. hparam_domain_discrete: values that a setting can have."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        infos, start = self._hparams(hparam_dict, hparam_domain_discrete or {})
        self._put_hparams(infos, start, metric_dict, run_name or str(time.time()), global_step, global_step)

    @staticmethod
    def _hparams(hparams: dict, domains: dict) -> Any:
        """(HParamInfos, (name, type, value) of each) as PyTorch has them: a bool counts as a number."""
        if not isinstance(domains, dict):
            raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
        for name, domain in domains.items():
            if name not in hparams or not isinstance(domain, list) or \
                    not all(isinstance(value, type(hparams[name])) for value in domain):
                raise TypeError(f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                                f"hparam_dict[{name}].")
        infos, start = [], []
        for name, value in hparams.items():
            if value is None:
                continue
            if isinstance(value, str):
                kind = _wire.TYPE_STRING
            elif isinstance(value, (int, float)):
                kind, value = _wire.TYPE_NUMBER, float(value)
            elif hasattr(value, "detach") or hasattr(value, "__array__"):
                from evalboard._values import as_array

                kind, value = _wire.TYPE_NUMBER, float(as_array(value).reshape(-1)[0])
            else:
                raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
            infos.append(_wire.hparam_info(name, kind, domains.get(name)))
            start.append((name, kind, value))
        return infos, start

    def _put_hparams(self, infos: Any, start: Any, metrics: dict, name: str, step: int | None, point_step: Any) -> None:
        writer = self._new_file(os.path.join(self._get_file_writer().get_logdir(), name))
        try:
            for tag, content in (("experiment", _wire.experiment(infos, metrics)),
                                 ("session_start_info", _wire.session_start(start)),
                                 ("session_end_info", _wire.session_end())):
                writer._put(_wire.summary(_wire.hparams_value("_hparams_/" + tag, content)), step)
            for tag, value in metrics.items():
                writer._put(_wire.summary(_wire.simple_value(tag, _number(value))), point_step)
        finally:
            writer.close()

    # ---- the whole ------------------------------------------------------------------------------------------------------
    def flush(self) -> None:
        """Passes everything to the operating system, so that readers see it."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Flushes and closes all files. A later value makes new ones."""
        first = None
        for writer in list((self.all_writers or {}).values()):
            try:
                writer.close()
            except Exception as error:  # noqa: BLE001, the others are closed all the same
                first = first or error
        try:
            if first is None or isinstance(first, EventLogError):  # else a signal handler's: call again
                self.file_writer = self.all_writers = None
            if first:
                raise first
        finally:
            del first  # or the exception would keep the writers

    def __enter__(self) -> "SummaryWriter":
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self.close()
