"""SummaryWriter with the signatures of tensorboardX, where these differ from PyTorch's: change `from tensorboardX import
SummaryWriter` into `from evalboard.tensorboardX import SummaryWriter`."""
from __future__ import annotations

import contextlib
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Iterator

from evalboard import _wire
from evalboard._file import EventFile
from evalboard._library import StrPath
from evalboard.writer import FileWriter as _FileWriter
from evalboard.writer import SummaryWriter as _SummaryWriter
from evalboard.writer import _number

if TYPE_CHECKING:
    from evalboard.output import Open

__all__ = ["FileWriter", "GlobalSummaryWriter", "SummaryWriter"]

_NOT_IN_TAGS = re.compile(r"[^-/\w.]")


def _clean(tag: str) -> str:
    """tensorboardX replaces what TensorFlow 1 did not allow in names."""
    return _NOT_IN_TAGS.sub("_", tag).lstrip("/")


class _NoFile(EventFile):
    def _open(self) -> None:
        return None

    def _drain(self) -> None:
        self.points[1:] = ()

    def put_event(self, event: bytes) -> None:
        pass


class FileWriter(_FileWriter):
    """Like evalboard.FileWriter, with tensorboardX's parameters."""

    def __init__(self, logdir: StrPath, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = "",
                 purge_step: int | None = None, **where: Any) -> None:
        super().__init__(logdir, max_queue, flush_secs, filename_suffix, purge_step, **where)

    @contextlib.contextmanager
    def use_metadata(self, *, global_step: int | None = None, walltime: float | None = None) -> "Iterator[FileWriter]":
        """Within it, global_step and walltime are what values have that say none."""
        if self._defaults:
            raise AssertionError("Default metadata is already set.")
        if global_step is None and walltime is None:
            raise AssertionError("At least one of `global_step` or `walltime` must be provided.")
        self._defaults = {"global_step": global_step, "walltime": walltime}
        try:
            yield self
        finally:
            self._defaults = {}


class _Nowhere(FileWriter):
    """Writes nothing, for write_to_disk=False."""

    def __init__(self, logdir: StrPath) -> None:
        self._log_dir, self._defaults, self.file = str(logdir), {}, _NoFile(str(logdir))


class SummaryWriter(_SummaryWriter):
    """Like evalboard.SummaryWriter, with tensorboardX's parameters. write_to_disk=False: everything is checked, and nothing
    written. comet_config has no effect. Tags of scalars, histograms, pictures and films are cleaned: what is not a letter,
    digit, '-', '_', '.' or '/' becomes '_'."""

    def __init__(self, logdir: StrPath | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: float = 120, filename_suffix: str = "", write_to_disk: bool = True, log_dir: StrPath | None = None,
                 comet_config: dict | None = None, *, output: "Open | None" = None, rotate_bytes: int = 0,
                 rotate_seconds: float = 0, **kwargs: Any) -> None:
        self._write_to_disk = write_to_disk
        self.scalar_dict: dict[str, list] = {}
        super().__init__(logdir if logdir is not None else log_dir, comment, purge_step, max_queue, flush_secs,
                         filename_suffix, output=output, rotate_bytes=rotate_bytes, rotate_seconds=rotate_seconds)
        self.logdir = self.log_dir

    def _new_file(self, directory: str, purge_step: int | None = None) -> FileWriter:
        if not self._write_to_disk:
            return _Nowhere(directory)
        return FileWriter(directory, self.max_queue, self.flush_secs, self.filename_suffix, purge_step, **self._where)

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, walltime: float | None = None,
                   display_name: str = "", summary_description: str = "") -> None:
        """One point of the curve `tag`; display_name and summary_description are shown with it."""
        super().add_scalar(_clean(tag), scalar_value, global_step, walltime, display_name=display_name,
                           summary_description=summary_description)

    def add_scalars(self, main_tag: str, tag_scalar_dict: Any, global_step: int | None = None,
                    walltime: float | None = None) -> None:
        """Several curves in one chart: each key of tag_scalar_dict is a run of its own, logdir/main_tag/KEY."""
        walltime = time.time() if walltime is None else walltime
        base = str(self._get_file_writer().get_logdir())
        for tag, value in tag_scalar_dict.items():
            directory = os.path.join(base, main_tag, tag)
            number = _number(value)
            self._file_of(directory)._put(_wire.summary(_wire.simple_value(_clean(main_tag), number)), global_step, walltime)
            self.scalar_dict.setdefault(directory, []).append([walltime, global_step, number])

    def export_scalars_to_json(self, path: StrPath) -> None:
        """Writes the points of add_scalars() so far to a file, {directory: [[wall time, step, value], ...]}, and forgets them."""
        with open(path, "w") as file:
            json.dump(self.scalar_dict, file)
        self.scalar_dict = {}

    def add_histogram(self, tag: str, values: Any, global_step: int | None = None, bins: Any = "tensorflow",
                      walltime: float | None = None, max_bins: int | None = None) -> None:
        """The distribution of values of any shape; see evalboard.SummaryWriter."""
        super().add_histogram(_clean(tag), values, global_step, bins, walltime, max_bins)

    def add_image(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                  dataformats: str = "CHW") -> None:
        """A picture; see evalboard.SummaryWriter."""
        super().add_image(_clean(tag), img_tensor, global_step, walltime, dataformats)

    def add_images(self, tag: str, img_tensor: Any, global_step: int | None = None, walltime: float | None = None,
                   dataformats: str = "NCHW") -> None:
        """A batch of pictures, or a list of them with dataformats "CHW" or "HWC"."""
        if isinstance(img_tensor, list):
            if dataformats.upper() not in ("CHW", "HWC"):
                print("A list of image is passed, but the dataformat is neither CHW nor HWC.\nNothing is written.")
                return
            import numpy as np

            from evalboard._values import as_array

            img_tensor, dataformats = np.stack([as_array(image) for image in img_tensor]), "N" + dataformats
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(self, tag: str, img_tensor: Any, box_tensor: Any, global_step: int | None = None,
                             walltime: float | None = None, dataformats: str = "CHW",
                             labels: Any = None, rescale: float = 1) -> None:
        """A picture with boxes; see evalboard.SummaryWriter."""
        super().add_image_with_boxes(_clean(tag), img_tensor, box_tensor, global_step, walltime, rescale, dataformats, labels)

    def add_video(self, tag: str, vid_tensor: Any, global_step: int | None = None, fps: float = 4,
                  walltime: float | None = None, dataformats: str = "NTCHW") -> None:
        """A batch of films; see evalboard.SummaryWriter."""
        super().add_video(_clean(tag), vid_tensor, global_step, fps, walltime, dataformats)

    def add_audio(self, tag: str, snd_tensor: Any, global_step: int | None = None, sample_rate: int = 44100,
                  walltime: float | None = None) -> None:
        """A sound: (frames,) or (frames, 1 or 2 channels) between -1 and 1; sample_rate in Hz."""
        from evalboard._values import wav

        frames, channels, encoded = wav(snd_tensor, sample_rate, several=True)
        self._put(_wire.audio(tag, sample_rate, channels, frames, encoded), step=global_step, walltime=walltime)

    def add_openvino_graph(self, xmlname: StrPath) -> None:
        """The graph of an OpenVINO model; takes tensorboardX itself."""
        from tensorboardX.openvino_graph import load_openvino_graph

        self._get_file_writer().add_openvino_graph(load_openvino_graph(xmlname))

    def add_hparams(self, hparam_dict: Any, metric_dict: Any, name: str | None = None,
                    global_step: int | None = None) -> None:
        """A row of the table of hyperparameters, as a run logdir/name; see evalboard.SummaryWriter."""
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        infos, start = [], []
        for key, value in hparam_dict.items():
            if value is None:
                continue
            if callable(value):
                value = getattr(value, "__name__", str(value))
            for types, kind in ((str, _wire.TYPE_STRING), (bool, _wire.TYPE_BOOL), ((int, float), _wire.TYPE_NUMBER)):
                if isinstance(value, types):
                    start.append((key, kind, value))
                    infos.append(_wire.hparam_info(key, kind))
                    break
            else:
                infos.append(_wire.hparam_info(key, 0))
        self._put_hparams(infos, start, metric_dict, name or str(time.time()), None, global_step)

    @contextlib.contextmanager
    def use_metadata(self, *, global_step: int | None = None, walltime: float | None = None) -> "Iterator[SummaryWriter]":
        """Within it, global_step and walltime are what values have that say none."""
        writer = self._get_file_writer()
        assert isinstance(writer, FileWriter)
        with writer.use_metadata(global_step=global_step, walltime=walltime):
            yield self


class GlobalSummaryWriter:
    """One writer for many modules and processes, which counts steps itself: the n-th value of a tag, of whichever process of
    `multiprocessing`, has step n - 1. All write to files of their own in one directory, that of the SummaryWriter with these
    parameters; readers see one run. coalesce_process has no effect, as in tensorboardX.

    Make it before the processes, and pass it to them or let them inherit it. It may be used from any thread."""

    def __init__(self, logdir: StrPath | None = None, comment: str = "", purge_step: int | None = None, max_queue: int = 10,
                 flush_secs: float = 120, filename_suffix: str = "", write_to_disk: bool = True, log_dir: StrPath | None = None,
                 coalesce_process: bool = True, **kwargs: Any) -> None:
        import multiprocessing

        self.smw = SummaryWriter(logdir, comment, purge_step, max_queue, flush_secs, filename_suffix, write_to_disk, log_dir)
        self._manager = multiprocessing.Manager()  # a process of its own, which ends with this one
        self._steps, self.lock = self._manager.dict(), self._manager.Lock()

    def __getstate__(self) -> Any:
        return {name: value for name, value in self.__dict__.items() if name != "_manager"}

    def _next(self, kind: str, tag: str) -> int:
        with self.lock:
            self._steps[kind, tag] = step = self._steps.get((kind, tag), -1) + 1
        return step

    def add_scalar(self, tag: str, scalar_value: Any, walltime: float | None = None) -> None:
        """The next point of the curve `tag`."""
        self.smw.add_scalar(tag, scalar_value, self._next("scalar", tag), walltime)

    def add_image(self, tag: str, img_tensor: Any, walltime: float | None = None, dataformats: str = "CHW") -> None:
        """The next picture; see SummaryWriter."""
        self.smw.add_image(tag, img_tensor, self._next("image", tag), walltime, dataformats)

    def add_text(self, tag: str, text_string: str, walltime: float | None = None) -> None:
        """The next text."""
        self.smw.add_text(tag, text_string, self._next("text", tag), walltime)

    @staticmethod
    def getSummaryWriter() -> "GlobalSummaryWriter":  # noqa: N802, tensorboardX's name
        """The one of this process, which the first call makes."""
        global _global
        if _global is None:
            _global = GlobalSummaryWriter()
        print("Using the global logger in:", _global.file_writer.get_logdir())
        return _global

    @property
    def file_writer(self) -> Any:
        """The FileWriter of this process."""
        return self.smw._get_file_writer()

    def close(self) -> None:
        """Flushes, and closes the file of this process."""
        self.smw.close()


_global: GlobalSummaryWriter | None = None
