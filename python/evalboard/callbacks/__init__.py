"""Callbacks that write what Keras, Lightning and Hugging Face's Trainer log. Each imports its library when it is used:

    model.fit(..., callbacks=[evalboard.callbacks.KerasCallback("runs/mine")])
    lightning.Trainer(logger=evalboard.callbacks.LightningLogger("runs"))
    lightning.Trainer(callbacks=[evalboard.callbacks.LightningCheckpoint("ckpt", every_n_train_steps=100)])
    transformers.Trainer(..., callbacks=[evalboard.callbacks.HuggingFaceCallback("runs/mine")])

KerasCallback("runs/mine", checkpoint_dir="ckpt") and LightningCheckpoint write safetensors files, model-STEP.safetensors, which
`evaluator` reads with a model file; the Trainer of Hugging Face writes such files itself.
"""
from __future__ import annotations

import importlib
from typing import Any

_MODULES = {"KerasCallback": "keras", "LightningLogger": "lightning",
            "LightningCheckpoint": "lightning", "HuggingFaceCallback": "huggingface"}
__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'evalboard.callbacks' has no attribute {name!r}")
    return getattr(importlib.import_module(f"evalboard.callbacks.{_MODULES[name]}"), name)
