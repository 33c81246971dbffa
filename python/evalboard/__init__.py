"""evalboard: event files that TensorBoard shows, written and read by libeventlog.

    with evalboard.SummaryWriter("runs/mine") as writer:          # as of torch.utils.tensorboard
        writer.add_scalar("loss", 0.5, 10)

    log = evalboard.read("runs", tags="loss*")                    # of any writer
    log["mine", "loss"].values                                    # a NumPy array
    log.to_pandas()

read_histograms(), read_images(), read_audio(), read_texts() and read_tensors() return values of other kinds, follow()
yields points as they come, reduce() makes one curve of many runs. merge() and repair() make event files of others,
downsample() makes curves of fewer points. SummaryWriter(..., output=...) writes into memory (MemoryOutput), or what a function
of yours opens. evalboard.checkpoint reads TensorFlow's checkpoints and
safetensors; evalboard.callbacks has callbacks for Keras, Lightning and Hugging Face. `python -m evalboard` is the program
`eventlog`.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalboard import callbacks, checkpoint, summary
    from evalboard.errors import (EventLogArgumentError, EventLogCorruptError, EventLogError, EventLogMemoryError,
                                  EventLogOSError)
    from evalboard.output import MemoryOutput
    from evalboard.reader import (Audio, DamageWarning, Histogram, Image, Log, Point, Series, TensorValue, Text, follow, read,
                                  read_audio, read_histograms, read_images, read_tensors, read_texts)
    from evalboard.reduction import reduce, write_reduced
    from evalboard.rewriting import Merged, Repaired, downsample, merge, repair
    from evalboard.writer import FileWriter, SummaryWriter

    __version__: str

# Where each name is: modules are imported when they are used, so that `import evalboard` takes no NumPy.
_NAMES = {
    "errors": ["EventLogArgumentError", "EventLogCorruptError", "EventLogError", "EventLogMemoryError", "EventLogOSError"],
    "output": ["MemoryOutput"],
    "reader": ["Audio", "DamageWarning", "Histogram", "Image", "Log", "Point", "Series", "TensorValue", "Text", "follow",
               "read", "read_audio", "read_histograms", "read_images", "read_tensors", "read_texts"],
    "reduction": ["reduce", "write_reduced"],
    "rewriting": ["Merged", "Repaired", "downsample", "merge", "repair"],
    "writer": ["FileWriter", "SummaryWriter"],
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
_SUBMODULES = ("callbacks", "checkpoint", "summary")
# As a list, so that type checkers know what is exported.
__all__ = [
    "Audio", "DamageWarning", "EventLogArgumentError", "EventLogCorruptError", "EventLogError",
    "EventLogMemoryError", "EventLogOSError", "FileWriter", "Histogram", "Image", "Log", "MemoryOutput", "Merged",
    "Point", "Repaired", "Series", "SummaryWriter", "TensorValue", "Text", "callbacks", "checkpoint", "downsample",
    "follow", "merge", "read", "read_audio", "read_histograms", "read_images", "read_tensors", "read_texts",
    "reduce", "repair", "summary", "write_reduced",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from evalboard._library import lib

        return lib.eventlog_version().decode()
    if name in _SUBMODULES:
        return importlib.import_module(f"evalboard.{name}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'evalboard' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"evalboard.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
