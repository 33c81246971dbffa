"""Event files made of others: merged, repaired; and curves of fewer points."""
from __future__ import annotations

import ctypes
import operator
import os
from typing import TYPE_CHECKING, NamedTuple, Sequence

from evalboard import _library
from evalboard._library import call, lib

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

__all__ = ["Merged", "Repaired", "downsample", "merge", "repair"]

OVERLAPS = ("last", "first", "keep", "error")  # enum eventlog_overlap


class Merged(NamedTuple):
    """What merge() has done. files: read; records, values, bytes: of the new file; restarts: pairs of series and file with a
    restart, restarted: values left out because of them; doubled: values left out as their series has another at the same step;
    repeated: graphs, hyperparameters, layouts left out beyond the one that a run can have; interleaved: pairs of files with the
    same series at overlapping times; damaged: places and records left out as they are damaged; torn: bytes of incomplete last
    records, left out."""
    files: int
    records: int
    values: int
    bytes: int
    restarts: int
    restarted: int
    doubled: int
    repeated: int
    interleaved: int
    damaged: int
    torn: int


class Repaired(NamedTuple):
    """What repair() has done. changed: False if the file was sound, and was left as it is (only in place); size: of the damaged
    file, in bytes; records, bytes: of the repaired one; places: where the framing of records is broken; refused: records left out
    although their CRCs are right, as TensorBoard gives up at them; cut: bytes of an incomplete last record."""
    changed: bool
    size: int
    records: int
    bytes: int
    places: int
    refused: int
    cut: int


def merge(paths: str | os.PathLike | Sequence[str | os.PathLike], directory: str | os.PathLike, *, overlap: str = "last",
          prefix: bool = False, join: bool = False, force: bool = False) -> Merged:
    """Merges all event files that the paths lead to (directories, files, archives; compressed or not) into one in `directory`,
    sorted by step, so that TensorBoard drops no points. Values stay bit for bit; the files that are read stay as they are.

    overlap: where steps go back from one file of a run to the next, as after a restart: "last" keeps the later points, "first"
    the earlier ones, "keep" both, "error" raises. prefix: tags become RUN/TAG, for runs with the same tags. join: the runs are
    parts of one that was resumed in new directories. force: also if the directory holds event files.

    Raises EventLogArgumentError if there are no event files, two runs have the same tag (see prefix and join), or the directory
    holds event files; EventLogCorruptError if a file changes meanwhile. Nothing is written after an error."""
    if overlap not in OVERLAPS:
        raise ValueError(f"overlap={overlap!r}; one of {', '.join(OVERLAPS)}")
    names = [paths] if isinstance(paths, (str, bytes, os.PathLike)) else list(paths)
    options = _library.MergeOptions(overlap=OVERLAPS.index(overlap), prefix=prefix, join=join, force=force)
    told = _library.Merged()
    call(lib.eventlog_merge, (ctypes.c_char_p * len(names))(*map(os.fsencode, names)), len(names), os.fsencode(directory),
         ctypes.byref(options), ctypes.byref(told))
    return Merged(*(getattr(told, name) for name in Merged._fields))


def repair(path: str | os.PathLike, to: str | os.PathLike | None = None, *, force: bool = False) -> Repaired:
    """Repairs an event file: keeps every sound record, byte for byte and in order, and leaves out the rest.

    to: the repaired copy appears there; what is there is replaced with force. `path` may then be compressed, or still grow.
    None: the file is repaired in place, and the old one stays beside it as NAME.bak, with every `tfevents` in NAME changed to
    `tf-events`, so that TensorBoard does not read it.

    Raises EventLogArgumentError if `to` exists, or, in place, somebody writes to the file or there is a backup already;
    EventLogCorruptError if nothing can be kept. Nothing has changed after an error."""
    told = _library.Repair()
    call(lib.eventlog_repair, os.fsencode(path), None if to is None else os.fsencode(to), force, ctypes.byref(told))
    return Repaired(bool(told.changed), *(getattr(told, name) for name in Repaired._fields[1:]))


def downsample(values: "ArrayLike", most: int, x: "ArrayLike | None" = None) -> "np.ndarray":
    """Chooses at most `most` (at least 2) points of a curve, so that it looks the same: largest triangle three buckets
    (Steinarsson, 2013). values: (n,); x: (n,) steps or times in any order, by default evenly spaced. Returns a mask (n,) of bool,
    True for the points to keep; the first and the last are kept. Series and Log have it as a method."""
    import numpy as np

    most = operator.index(most)
    y = np.ascontiguousarray(values, np.float64)
    at = np.arange(y.size, dtype=np.float64) if x is None else np.ascontiguousarray(x, np.float64)
    if y.ndim != 1 or at.shape != y.shape:
        raise ValueError(f"values and x are of one dimension and length, not {y.shape} and {at.shape}")
    keep = np.zeros(len(y), np.uint8)
    call(lib.eventlog_downsample, at.ctypes.data, y.ctypes.data, len(y), most, keep.ctypes.data)
    return keep.view(bool)
