"""Reading logs: all points at once as NumPy arrays, values of other kinds one after the other, and what is added."""
from __future__ import annotations

import ctypes
import os
import time
import warnings
from collections.abc import Mapping
from typing import Any, Iterator, NamedTuple, Sequence, Union

import numpy as np

from evalboard import _library
from evalboard._library import StrPath, call, lib

__all__ = ["Audio", "Histogram", "Image", "Log", "Point", "Series", "TensorValue", "Text", "follow", "read", "read_audio",
           "read_histograms", "read_images", "read_tensors", "read_texts"]

Patterns = Union[str, Sequence[str], None]

POINT = np.dtype([("step", "<i8"), ("wall_time", "<f8"), ("value", "<f8")])
VIEWS = {"all": _library.VIEW_ALL, "tensorboard": _library.VIEW_TENSORBOARD, "session": _library.VIEW_SESSION}
DTYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 8: "<c8", 9: "<i8", 10: "?", 17: "<u2", 18: "<c16",
          19: "<f2", 22: "<u4", 23: "<u8"}
BFLOAT16 = 14


class DamageWarning(UserWarning):
    """A log is damaged; what is sound was read."""


def _patterns(given: Any) -> tuple[Any, int]:
    """An array of C strings and its length."""
    if given is None:
        return None, 0
    names = [given] if isinstance(given, str) else list(given) if hasattr(given, "__iter__") else [given]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"runs and tags are a pattern or a list of patterns, of str; got {name!r}")
    return (ctypes.c_char_p * len(names))(*[name.encode() for name in names]), len(names)


def _options(runs: Patterns, tags: Any, steps: Any = None, numbers_only: Any = False) -> _library.ReaderOptions:
    options = _library.ReaderOptions(numbers_only=numbers_only)
    for name, given in (("runs", runs), ("tags", tags)):
        array, count = _patterns(given)
        if array is not None:
            setattr(options, name, array)
            setattr(options, name[:-1] + "_count", count)
    if steps is not None:
        if not isinstance(steps, (tuple, list)) or len(steps) != 2:
            raise TypeError(f"steps is a pair, (first, last), of which either may be None; got {steps!r}")
        first, last = steps
        if first is not None:
            options.has_first_step, options.first_step = 1, int(first)
        if last is not None:
            options.has_last_step, options.last_step = 1, int(last)
    return options


def _text(value: bytes | None) -> str:
    return value.decode("utf-8", "surrogateescape") if value else ""


def _tag(series: _library.Series) -> str:
    return _text(ctypes.string_at(series.tag, series.tag_length))


# ---- all points ---------------------------------------------------------------------------------------------------------
class _Points:
    """The library's memory, freed with the last array that shows it."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __del__(self, free: Any = lib.eventlog_points_free) -> None:
        free(self.handle)


class _Memory:
    """Makes an array of memory that belongs to `owner`, without copying it."""

    def __init__(self, owner: _Points, address: int, count: int) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (count * POINT.itemsize,), "typestr": "|u1", "data": (address, True)}


class Series:
    """The points of a tag of a run.

    run, tag: names; a log directory's own run is ".". points: a read-only array of the fields step, wall_time (seconds since
    1970) and value, in the library's memory. steps, wall_times, values: views of these, (n,) of int64 and float64.
    plugin, display_name, description: what the log says of the tag."""

    def __init__(self, run: str, tag: str, points: np.ndarray, plugin: str = "", display_name: str = "",
                 description: str = "") -> None:
        self.run, self.tag, self.points = run, tag, points
        self.plugin, self.display_name, self.description = plugin, display_name, description

    @property
    def steps(self) -> np.ndarray:
        return self.points["step"]

    @property
    def wall_times(self) -> np.ndarray:
        return self.points["wall_time"]

    @property
    def values(self) -> np.ndarray:
        return self.points["value"]

    def __len__(self) -> int:
        return len(self.points)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype) if copy or dtype else self.values

    def __repr__(self) -> str:
        return f"<Series {self.run} {self.tag}: {len(self)} points>"

    def downsample(self, most: int) -> "Series":
        """At most `most` of the points, chosen so that the curve looks the same; see evalboard.downsample()."""
        from evalboard.rewriting import downsample

        return Series(self.run, self.tag, self.points[downsample(self.values, most, self.steps)], self.plugin,
                      self.display_name, self.description)

    def to_pandas(self) -> Any:
        """A pandas.Series of the values, indexed by step."""
        import pandas

        return pandas.Series(self.values, index=pandas.Index(self.steps, name="step"), name=self.tag)


class Log(Mapping):
    """All scalar series of a log: a mapping from (run, tag) to Series, by run and tag. A key may also be a tag alone, if one
    run has it.

    runs: names of all runs, also of those without points. damaged: how many places of the files were skipped because they
    are damaged."""

    def __init__(self, runs: list[str], series: dict[tuple[str, str], Series], damaged: int = 0) -> None:
        self.runs, self._series, self.damaged = runs, series, damaged

    def __getitem__(self, key: Any) -> Series:
        if isinstance(key, tuple):
            return self._series[key]
        found = [series for (_, tag), series in self._series.items() if tag == key]
        if len(found) > 1:
            raise KeyError(f"{len(found)} runs have the tag {key!r}: use log[run, tag] with a run of log.runs")
        if not found:
            raise KeyError(key)
        return found[0]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._series)

    def __len__(self) -> int:
        return len(self._series)

    def __repr__(self) -> str:
        return f"<Log of {len(self.runs)} runs, {len(self)} series, {sum(map(len, self.values()))} points>"

    @property
    def tags(self) -> list[str]:
        """All tags, sorted."""
        return sorted({tag for _, tag in self._series})

    def downsample(self, most: int) -> "Log":
        """The log with at most `most` points of each series; see evalboard.downsample()."""
        return Log(self.runs, {key: series.downsample(most) for key, series in self._series.items()}, self.damaged)

    def to_pandas(self, wide: bool = False) -> Any:
        """A pandas.DataFrame of all points: run, tag, step, wall_time, value; run and tag are categories. wide: one row for a
        run and step, one column for each tag; of several points at a step the last."""
        import pandas

        keys = list(self._series)
        lengths = [len(self._series[key]) for key in keys]
        points = np.concatenate([self._series[key].points for key in keys]) if keys else np.empty(0, POINT)

        def names(which: str) -> Any:
            values = sorted({key[which] for key in keys})
            place = {value: i for i, value in enumerate(values)}
            codes = np.repeat(np.array([place[key[which]] for key in keys], np.int32), lengths)
            return pandas.Categorical.from_codes(codes, values)

        frame = pandas.DataFrame({"run": names(0), "tag": names(1), "step": points["step"],
                                  "wall_time": points["wall_time"], "value": points["value"]})
        if not wide:
            return frame
        last = frame.drop_duplicates(["run", "tag", "step"], keep="last")
        return last.set_index(["run", "step", "tag"])["value"].unstack("tag").sort_index()

    def to_polars(self) -> Any:
        """A polars.DataFrame of all points: run, tag, step, wall_time, value; run and tag are categories."""
        import polars

        from evalboard import _arrow

        return polars.DataFrame(_arrow.Table(self))

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """For pyarrow.table(log), DuckDB and others: run, tag, step, wall_time, value, as of to_pandas(); the columns are
        copied, a batch at a time."""
        from evalboard import _arrow

        return _arrow.stream(list(self._series), [series.points for series in self._series.values()])

    def reduce(self, *operations: str, runs: Patterns = None, nonfinite: str = "drop") -> Any:
        """The series of several runs as one; see evalboard.reduce()."""
        from evalboard.reduction import reduce

        return reduce(self, *operations, runs=runs, nonfinite=nonfinite)


def read(logdir: StrPath, tags: Patterns = None, runs: Patterns = None, steps: tuple | None = None,
         view: str = "all") -> Log:
    """Reads the points of all scalar series, of any writer, into NumPy arrays without copying them: 24 bytes a point.

    logdir: a log directory, an event file, a tar or zip file of these; also compressed ones. tags, runs: patterns as of
    the shell, of which one must match ('*' also matches '/'). steps: (first, last), both inclusive, either may be None. view:
    "all" points in the order of the files; "tensorboard": those that TensorBoard would show, without what a restart has
    replaced; "session": without what a session start removed.

    Damage is skipped, counted in Log.damaged, and warned of (DamageWarning). Raises EventLogOSError if a file cannot be read.
    """
    if view not in VIEWS:
        raise ValueError(f"view={view!r}; one of {', '.join(VIEWS)}")
    handle = ctypes.c_void_p()
    call(lib.eventlog_points_read, ctypes.byref(handle), os.fsencode(logdir), VIEWS[view],
         ctypes.byref(_options(runs, tags, steps, numbers_only=True)))
    owner = _Points(handle)
    names, series = [], {}
    while (name := lib.eventlog_points_run(handle, len(names))) is not None:
        names.append(_text(name))
    index = 0
    while found := lib.eventlog_points_series(handle, index):
        count = ctypes.c_size_t()
        address = lib.eventlog_points_of(handle, index, ctypes.byref(count))
        index += 1
        if not count.value:
            continue
        s = found.contents
        points = np.asarray(_Memory(owner, address, count.value)).view(POINT)
        made = Series(_text(s.run), _tag(s), points, _text(s.plugin), _text(s.display_name), _text(s.description))
        series[made.run, made.tag] = made
    damaged = lib.eventlog_points_damaged(handle)
    if damaged:
        warnings.warn(f"{os.fspath(logdir)}: {damaged} damaged places were skipped; 'python -m evalboard verify' shows them",
                      DamageWarning, stacklevel=2)
    return Log(names, series, damaged)


# ---- values of other kinds ----------------------------------------------------------------------------------------------
class Histogram(NamedTuple):
    """counts[i] values between edges[i] and edges[i + 1]; all float64, edges (n + 1,), counts (n,)."""
    step: int
    wall_time: float
    edges: np.ndarray
    counts: np.ndarray


class Image(NamedTuple):
    """files: encoded pictures (PNG, JPEG, GIF, ...), of width x height pixels as the log says."""
    step: int
    wall_time: float
    files: list[bytes]
    width: int
    height: int

    def pixels(self, sample: int = 0) -> np.ndarray:
        """(height, width) or (height, width, channels) of uint8; takes Pillow."""
        import io

        from PIL import Image as pillow

        return np.asarray(pillow.open(io.BytesIO(self.files[sample])))


class Audio(NamedTuple):
    """files: WAV files."""
    step: int
    wall_time: float
    files: list[bytes]

    def samples(self, clip: int = 0) -> tuple[np.ndarray, int]:
        """((frames, channels) of float32 between -1 and 1, sample rate in Hz) of a file with 16 bits a sample."""
        import io
        import wave

        with wave.open(io.BytesIO(self.files[clip])) as file:
            if file.getsampwidth() != 2:
                raise ValueError(f"{8 * file.getsampwidth()} bits a sample; only 16 are read")
            data = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels())
            return data.astype(np.float32) / 32767, file.getframerate()


class Text(NamedTuple):
    """texts: the cells of a table row by row; one for a single text."""
    step: int
    wall_time: float
    texts: list[str]


class TensorValue(NamedTuple):
    """value: an array of any shape and type; bfloat16 as float32, strings as bytes."""
    step: int
    wall_time: float
    value: np.ndarray


class Point(NamedTuple):
    """A point of a curve."""
    run: str
    tag: str
    step: int
    wall_time: float
    value: float


class _Reader:
    """eventlog_reader."""

    def __init__(self, logdir: StrPath, options: _library.ReaderOptions) -> None:
        self.handle = ctypes.c_void_p()
        self.path = os.fspath(logdir)
        call(lib.eventlog_reader_open, ctypes.byref(self.handle), os.fsencode(logdir), ctypes.byref(options))
        self.names: dict[int, tuple[str, str]] = {}

    def __del__(self, close: Any = lib.eventlog_reader_close) -> None:
        close(self.handle)

    def next(self) -> int:
        """What eventlog_reader_next() found; damage is warned of."""
        found = call(lib.eventlog_reader_next, self.handle)
        if found == _library.READ_DAMAGE:
            event, damage = lib.eventlog_reader_event(self.handle).contents, lib.eventlog_reader_damage(self.handle).contents
            warnings.warn(f"{_text(event.file)}: {_text(damage.text)}", DamageWarning, stacklevel=4)
        elif found == _library.READ_RESTARTED:
            self.names.clear()
        return found

    def values(self) -> Iterator[_library.Value]:
        """The values of the event that next() has found."""
        while value := lib.eventlog_reader_value(self.handle):
            yield value.contents

    def name(self, value: _library.Value) -> tuple[str, str]:
        """(run, tag)."""
        address = ctypes.addressof(value.series.contents)
        if address not in self.names:
            series = value.series.contents
            self.names[address] = _text(series.run), _tag(series)
        return self.names[address]


def _array(tensor: _library.Tensor) -> np.ndarray:
    shape = [tensor.shape[i] for i in range(tensor.rank)]
    if tensor.strings:
        texts = [ctypes.string_at(s.data, s.length) for s in tensor.strings[:tensor.string_count]]
        return np.array(texts, object).reshape(shape)
    data = ctypes.string_at(tensor.data, tensor.bytes) if tensor.bytes else b""
    if tensor.dtype == BFLOAT16:
        return (np.frombuffer(data, "<u2").astype("<u4") << 16).view("<f4").reshape(shape)
    if tensor.dtype not in DTYPES:
        raise _library.EventLogCorruptError(f"a tensor has the type {tensor.dtype} of TensorFlow, which NumPy has not")
    return np.frombuffer(data, DTYPES[tensor.dtype]).reshape(shape)


def _content(reader: _Reader, value: _library.Value) -> Any:
    """The NamedTuple of a value; None for a scalar or one that no plugin shows."""
    step, wall = value.step, value.wall_time
    if value.kind == _library.KIND_HISTOGRAM:
        rows, count = ctypes.c_void_p(), ctypes.c_size_t()
        call(lib.eventlog_reader_histogram, reader.handle, ctypes.byref(rows), ctypes.byref(count))
        table = np.frombuffer(ctypes.string_at(rows, 24 * count.value), "<f8").reshape(-1, 3)
        return Histogram(step, wall, np.append(table[:1, 0], table[:, 1]), table[:, 2])
    if value.kind in (_library.KIND_IMAGE, _library.KIND_AUDIO, _library.KIND_TEXT):
        blobs = _library.Blobs()
        call(lib.eventlog_reader_blobs, reader.handle, ctypes.byref(blobs))
        files = [ctypes.string_at(item.data, item.length) for item in blobs.items[:blobs.count]]
        if value.kind == _library.KIND_IMAGE:
            return Image(step, wall, files, blobs.width, blobs.height)
        if value.kind == _library.KIND_AUDIO:
            return Audio(step, wall, files)
        return Text(step, wall, [file.decode("utf-8", "replace") for file in files])
    if value.kind == _library.KIND_TENSOR:
        tensor = _library.Tensor()
        call(lib.eventlog_reader_tensor, reader.handle, ctypes.byref(tensor))
        return TensorValue(step, wall, _array(tensor))
    return None


def _read_kind(kind: int, logdir: StrPath, tags: Any, runs: Patterns, steps: Any) -> dict[tuple[str, str], list]:
    reader = _Reader(logdir, _options(runs, tags, steps))
    found: dict[tuple[str, str], list] = {}
    while (what := reader.next()) != _library.READ_END:
        if what == _library.READ_RESTARTED:
            run = _text(lib.eventlog_reader_event(reader.handle).contents.run)
            found = {key: values for key, values in found.items() if key[0] != run}
        if what != _library.READ_EVENT:
            continue
        for value in reader.values():
            if value.kind == kind:
                found.setdefault(reader.name(value), []).append(_content(reader, value))
    return found


def read_histograms(logdir: StrPath, tags: Patterns = None, runs: Patterns = None,
                    steps: tuple | None = None) -> dict[tuple[str, str], list[Histogram]]:
    """{(run, tag): histograms} of a log; the parameters are those of read()."""
    return _read_kind(_library.KIND_HISTOGRAM, logdir, tags, runs, steps)


def read_images(logdir: StrPath, tags: Patterns = None, runs: Patterns = None,
                steps: tuple | None = None) -> dict[tuple[str, str], list[Image]]:
    """{(run, tag): pictures} of a log; the parameters are those of read()."""
    return _read_kind(_library.KIND_IMAGE, logdir, tags, runs, steps)


def read_audio(logdir: StrPath, tags: Patterns = None, runs: Patterns = None,
               steps: tuple | None = None) -> dict[tuple[str, str], list[Audio]]:
    """{(run, tag): sounds} of a log; the parameters are those of read()."""
    return _read_kind(_library.KIND_AUDIO, logdir, tags, runs, steps)


def read_texts(logdir: StrPath, tags: Patterns = None, runs: Patterns = None,
               steps: tuple | None = None) -> dict[tuple[str, str], list[Text]]:
    """{(run, tag): texts} of a log; the parameters are those of read()."""
    return _read_kind(_library.KIND_TEXT, logdir, tags, runs, steps)


def read_tensors(logdir: StrPath, tags: Patterns = None, runs: Patterns = None,
                 steps: tuple | None = None) -> dict[tuple[str, str], list[TensorValue]]:
    """{(run, tag): arrays} of a log that are of no other kind, PR curves and meshes among them; the parameters are those of
    read()."""
    return _read_kind(_library.KIND_TENSOR, logdir, tags, runs, steps)


def follow(logdir: StrPath, tags: Patterns = None, runs: Patterns = None, steps: tuple | None = None,
           timeout: float | None = None, new_only: bool = False) -> Iterator[Point]:
    """Yields every point of a log, and then those that are added, as they come: of new files and runs, too. Ends when nothing
    has come for `timeout` seconds; None: never. new_only: only points that come after the call. The other parameters are
    those of read(). Points of a file that is truncated or replaced come again.
    """
    reader = _Reader(logdir, _options(runs, tags, steps, numbers_only=True))
    quiet, old = time.monotonic(), new_only
    while True:
        what = reader.next()
        if what == _library.READ_EVENT:
            if old:
                continue
            for value in reader.values():
                if value.kind == _library.KIND_SCALAR:
                    yield Point(*reader.name(value), value.step, value.wall_time, value.number)
            quiet = time.monotonic()
        elif what == _library.READ_END:
            old = False
            left = 1.0 if timeout is None else timeout - (time.monotonic() - quiet)
            if left <= 0:
                return
            try:
                call(lib.eventlog_reader_wait, reader.handle, min(left, 1.0))
            except _library.EventLogOSError:
                pass  # a signal: Python handles it here, and then goes on
