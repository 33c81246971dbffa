"""For Hugging Face's transformers.Trainer."""
from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from evalboard.writer import SummaryWriter


class HuggingFaceCallback(TrainerCallback):
    """Writes what the Trainer logs, with the tags of its own TensorBoardCallback: train/loss, eval/loss, ...; its arguments as
    a text. log_dir: by default the Trainer's logging directory. Use it with report_to="none"."""

    def __init__(self, log_dir: str | os.PathLike | None = None) -> None:
        self.log_dir = log_dir
        self._writer: SummaryWriter | None = None

    @staticmethod
    def _tag(name: str) -> str:
        for prefix in ("eval_", "test_"):
            if name.startswith(prefix):
                return prefix[:-1] + "/" + name[len(prefix):]
        return "train/" + name

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        directory = self.log_dir or getattr(args, "logging_dir", None) or os.path.join(args.output_dir, "runs")
        self._writer = SummaryWriter(directory)
        self._writer.add_text("args", "```\n" + args.to_json_string() + "\n```")

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **kwargs: Any) -> None:
        if not state.is_world_process_zero:
            return
        if self._writer is None:
            self.on_train_begin(args, state, control)
        for name, value in (logs or {}).items():
            if isinstance(value, (int, float)):
                self._writer.add_scalar(self._tag(name), value, state.global_step)
        self._writer.flush()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if self._writer:
            self._writer.close()
            self._writer = None
