"""For Lightning 2, as the package `lightning` or `pytorch_lightning`."""
from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

try:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.loggers.logger import Logger, rank_zero_experiment
    from lightning.pytorch.utilities import rank_zero_only
except ImportError:
    from pytorch_lightning.callbacks import Callback
    from pytorch_lightning.loggers.logger import Logger, rank_zero_experiment
    from pytorch_lightning.utilities import rank_zero_only

from evalboard.checkpoint import save
from evalboard.writer import SummaryWriter


class LightningCheckpoint(Callback):
    """Writes the module's state to dirpath/model-STEP.safetensors, in PyTorch's names ("conv1.weight"), after every so many
    steps of the optimizer and at the end. It is for strategies in which rank 0 has all of the state, such as DDP."""

    def __init__(self, dirpath: str | os.PathLike[str], every_n_train_steps: int) -> None:
        if every_n_train_steps < 1:
            raise ValueError(f"every_n_train_steps is {every_n_train_steps}, but must be at least 1")
        self.dirpath, self.every, self._saved = os.fspath(dirpath), every_n_train_steps, 0

    def _save(self, trainer: Any, module: Any) -> None:
        self._saved = step = trainer.global_step
        if trainer.is_global_zero:
            save(os.path.join(self.dirpath, f"model-{step}.safetensors"), module.state_dict(),
                 {"format": "pt", "global_step": str(step)})

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: Any) -> None:
        if trainer.global_step >= self._saved + self.every:
            self._save(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        if trainer.global_step > self._saved:
            self._save(trainer, pl_module)


class LightningLogger(Logger):
    """A logger for Trainer(logger=...), with the directories of Lightning's TensorBoardLogger: save_dir/name/version_N."""

    def __init__(self, save_dir: str | os.PathLike, name: str | None = "lightning_logs", version: int | str | None = None,
                 prefix: str = "") -> None:
        super().__init__()
        self._save_dir, self._name, self._version, self._prefix = os.fspath(save_dir), name or "", version, prefix
        self._writer: SummaryWriter | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def save_dir(self) -> str:
        return self._save_dir

    @property
    def root_dir(self) -> str:
        return os.path.join(self._save_dir, self._name)

    @property
    def version(self) -> int | str:
        if self._version is None:
            names = os.listdir(self.root_dir) if os.path.isdir(self.root_dir) else []
            numbers = [int(n[8:]) for n in names if n.startswith("version_") and n[8:].isdigit()]
            self._version = max(numbers, default=-1) + 1
        return self._version

    @property
    def log_dir(self) -> str:
        version = self.version
        return os.path.join(self.root_dir, version if isinstance(version, str) else f"version_{version}")

    @property
    @rank_zero_experiment
    def experiment(self) -> SummaryWriter:
        """The SummaryWriter, for values of other kinds."""
        if self._writer is None:
            self._writer = SummaryWriter(self.log_dir)
        return self._writer

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, Any], step: int | None = None) -> None:
        for name, value in metrics.items():
            if isinstance(value, dict):
                self.experiment.add_scalars(self._prefix + name, value, step)
            else:
                self.experiment.add_scalar(self._prefix + name, value, step)

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, metrics: dict[str, Any] | None = None) -> None:
        settings = vars(params) if isinstance(params, Namespace) else dict(params or {})
        flat = {k: v if isinstance(v, (bool, int, float, str)) else str(v) for k, v in settings.items()}
        self.experiment.add_hparams(flat, metrics or {}, run_name="hparams")

    @rank_zero_only
    def save(self) -> None:
        if self._writer:
            self._writer.flush()

    @rank_zero_only
    def finalize(self, status: str) -> None:
        if self._writer:
            self._writer.close()
