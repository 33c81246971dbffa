"""For Keras 3 and tf.keras."""
from __future__ import annotations

import os
from typing import Any

import keras

from evalboard.checkpoint import save
from evalboard.writer import SummaryWriter


class KerasCallback(keras.callbacks.Callback):
    """Writes what fit() reports: runs log_dir/train and log_dir/validation, with the tags of Keras's own TensorBoard callback:
    epoch_loss and so on at each epoch, and, with update_freq "batch" or a number of batches, batch_loss and so on.
    histogram_freq: write the weights' histograms after each so many epochs; 0: never.

    checkpoint_dir: write the weights to checkpoint_dir/model-STEP.safetensors, under Keras's names ("conv1/kernel"), after each
    epoch, or after each so many batches with checkpoint_freq; STEP counts batches."""

    def __init__(self, log_dir: str | os.PathLike[str] = "logs", update_freq: str | int = "epoch", histogram_freq: int = 0,
                 checkpoint_dir: str | os.PathLike[str] | None = None, checkpoint_freq: str | int = "epoch") -> None:
        super().__init__()
        self.log_dir, self.histogram_freq = os.fspath(log_dir), histogram_freq
        self.every = 0 if update_freq == "epoch" else 1 if update_freq == "batch" else int(update_freq)
        self._writers: dict[str, SummaryWriter] = {}
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_every = 0 if checkpoint_freq == "epoch" else int(checkpoint_freq)
        self._batches = 0

    def _write(self, run: str, tag: str, value: Any, step: int) -> None:
        if run not in self._writers:
            self._writers[run] = SummaryWriter(os.path.join(self.log_dir, run))
        self._writers[run].add_scalar(tag, value, step)

    def _write_logs(self, prefix: str, logs: dict | None, step: int) -> None:
        for name, value in (logs or {}).items():
            run, name = ("validation", name[4:]) if name.startswith("val_") else ("train", name)
            self._write(run, prefix + name, value, step)

    def _rate(self) -> Any:
        optimizer = getattr(self.model, "optimizer", None)
        rate = getattr(optimizer, "learning_rate", None)
        return None if rate is None else float(keras.ops.convert_to_numpy(rate))

    def on_train_batch_end(self, batch: Any, logs: Any = None) -> None:
        self._batches += 1
        if self.every and self._batches % self.every == 0:
            self._write_logs("batch_", logs, self._batches)
        if self.checkpoint_every and self._batches % self.checkpoint_every == 0:
            self._save()

    def _save(self) -> None:
        if self.checkpoint_dir is None:
            return
        prefix = self.model.name + "/"
        tensors = {}
        for weight in self.model.weights:
            name = getattr(weight, "path", weight.name)
            tensors[name[len(prefix):] if name.startswith(prefix) else name] = keras.ops.convert_to_numpy(weight)
        save(os.path.join(self.checkpoint_dir, f"model-{self._batches}.safetensors"), tensors,
             {"global_step": str(self._batches)})

    def on_epoch_end(self, epoch: Any, logs: Any = None) -> None:
        if not self.checkpoint_every:
            self._save()
        self._write_logs("epoch_", logs, epoch)
        if (rate := self._rate()) is not None:
            self._write("train", "epoch_learning_rate", rate, epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for weight in self.model.weights:
                values = keras.ops.convert_to_numpy(weight)
                if values.size:
                    self._writers["train"].add_histogram(getattr(weight, "path", weight.name) + "/histogram", values, epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_train_end(self, logs: Any = None) -> None:
        for writer in self._writers.values():
            writer.close()
