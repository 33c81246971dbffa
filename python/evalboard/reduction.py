"""Reductions over runs: one curve of many repetitions, as tensorboard-reducer makes them."""
from __future__ import annotations

import fnmatch
import warnings
from typing import Any

import numpy as np

from evalboard._library import StrPath
from evalboard.reader import POINT, Log, Patterns, Series

__all__ = ["OPERATIONS", "reduce", "write_reduced"]

def _deviation(values: Any, axis: Any) -> Any:
    """Of the sample, as tensorboard-reducer and `eventlog export --format reduce` have it; NaN for a single run."""
    return np.nanstd(values, axis=axis, ddof=1) if values.shape[axis] > 1 else np.full(values.shape[0], np.nan)


def _strict_deviation(values: Any, axis: Any) -> Any:
    return np.std(values, axis=axis, ddof=1) if values.shape[axis] > 1 else np.full(values.shape[0], np.nan)


OPERATIONS = {"mean": np.nanmean, "std": _deviation, "min": np.nanmin, "max": np.nanmax, "median": np.nanmedian,
              "sum": np.nansum}
# The same for values of which none is left out.
_STRICT = {"mean": np.mean, "std": _strict_deviation, "min": np.min, "max": np.max, "median": np.median, "sum": np.sum}


def _table(series: list[Series], lax_steps: bool, duplicates: str | None) -> Any:
    """(steps, (steps, runs) of values) at the steps that all series have."""
    columns = []
    for s in series:
        steps, values = s.steps, s.values
        unique, first, counts = np.unique(steps, return_index=True, return_counts=True)
        if len(unique) != len(steps):
            if duplicates is None:
                raise ValueError(f"run {s.run!r} has {int((counts > 1).sum())} steps of tag {s.tag!r} more than once; say "
                                 "duplicates='keep-last', 'keep-first' or 'mean'")
            if duplicates == "keep-last":
                first = len(steps) - 1 - np.unique(steps[::-1], return_index=True)[1]
            if duplicates == "mean":
                place = np.searchsorted(unique, steps)
                columns.append((unique, np.bincount(place, values, len(unique)) / counts))
                continue
        columns.append((unique, values[first]))
    common = columns[0][0]
    for steps, _ in columns[1:]:
        common = np.intersect1d(common, steps, assume_unique=True)
    if not lax_steps and any(len(steps) != len(common) for steps, _ in columns):
        raise ValueError(f"the runs have different steps of tag {series[0].tag!r}, {len(common)} in common; say lax_steps=True "
                         "to reduce over these")
    return common, np.stack([values[np.searchsorted(steps, common)] for steps, values in columns], axis=1)


def reduce(log: Log, *operations: Any, runs: Patterns = None, lax_steps: bool = False,
           duplicates: str | None = None, nonfinite: str = "drop") -> dict[str, Log]:
    """{operation: Log} of curves reduced over runs, one for each tag, in a run named by the operation.

    operations: of OPERATIONS ("mean", "std", "min", "max", "median", "sum"; by default "mean" and "std", the latter as of a
    sample), or functions with an axis, such as numpy.ptp. runs: patterns, of which a run must match one. lax_steps:
    take the steps that all runs have; otherwise runs of different steps are a ValueError. duplicates: what counts if a run
    has a step twice: "keep-first", "keep-last", "mean". nonfinite: OPERATIONS leave out NaN, and a warning says how many
    there were; with "keep" a figure of values with a NaN is NaN, as functions of your own have it. Wall times are the means of those of the runs' first points.
    """
    patterns = [runs] if isinstance(runs, str) else runs
    by_tag: dict[str, list[Series]] = {}
    for (run, tag), series in log.items():
        if patterns is None or any(fnmatch.fnmatchcase(run, p) for p in patterns):
            by_tag.setdefault(tag, []).append(series)
    if not by_tag:
        raise ValueError("no run to reduce" if patterns is None else f"no run matches {runs!r}; there are "
                         + ", ".join(log.runs[:10]))
    if duplicates not in (None, "keep-first", "keep-last", "mean"):
        raise ValueError(f"duplicates={duplicates!r}; one of 'keep-first', 'keep-last', 'mean'")
    if nonfinite not in ("drop", "keep"):
        raise ValueError(f"nonfinite={nonfinite!r}; one of 'drop', 'keep'")
    known = OPERATIONS if nonfinite == "drop" else _STRICT
    leaves_out = nonfinite == "drop" and any(isinstance(operation, str) for operation in operations or ("mean",))
    left_out = 0
    reduced: dict[str, dict] = {}
    for tag, series in by_tag.items():
        steps, values = _table(series, lax_steps, duplicates)
        left_out += int(np.isnan(values).sum()) if leaves_out else 0
        for operation in operations or ("mean", "std"):
            name = operation if isinstance(operation, str) else getattr(operation, "__name__", str(operation))
            if isinstance(operation, str) and operation not in OPERATIONS:
                raise ValueError(f"no operation {operation!r}; one of {', '.join(OPERATIONS)}, or a function")
            function = known[operation] if isinstance(operation, str) else operation
            points = np.empty(len(steps), POINT)
            points["step"], points["value"] = steps, function(values, axis=1)
            points["wall_time"] = np.mean([s.wall_times[0] for s in series])
            reduced.setdefault(name, {})[name, tag] = Series(name, tag, points)
    if left_out:
        warnings.warn(f"reduce() left out {left_out} values that are NaN; with nonfinite='keep' they count as NaN", stacklevel=2)
    return {name: Log([name], series) for name, series in reduced.items()}


def write_reduced(reduced: dict[str, Log], logdir: StrPath) -> None:
    """Writes what reduce() returned as runs below logdir, each named by its operation, for TensorBoard."""
    import os

    from evalboard.writer import SummaryWriter

    for name, log in reduced.items():
        with SummaryWriter(os.path.join(os.fspath(logdir), name)) as writer:
            for (_, tag), series in log.items():
                for point in series.points.tolist():
                    writer.add_scalar(tag, point[2], point[0], point[1])
