"""The callbacks for Lightning and Hugging Face, called as these call them: by doubles of the few classes that they take from
there, with the names and arguments of Lightning 2.6 and transformers 5.24, beside which they were tried by hand."""
import sys
import types

import pytest

import python_package  # noqa: F401

numpy = pytest.importorskip("numpy")

import evalboard  # noqa: E402


def module(monkeypatch, name, **contents):
    made = types.ModuleType(name)
    made.__dict__.update(contents)
    monkeypatch.setitem(sys.modules, name, made)


@pytest.fixture
def lightning(monkeypatch):
    class Logger:
        """lightning.pytorch.loggers.logger.Logger: nothing that ours does not replace."""

    def only_on_rank_zero(function):
        return function

    for name in ("lightning", "lightning.pytorch", "lightning.pytorch.loggers"):
        module(monkeypatch, name)
    module(monkeypatch, "lightning.pytorch.callbacks", Callback=type("Callback", (), {}))
    module(monkeypatch, "lightning.pytorch.loggers.logger", Logger=Logger, rank_zero_experiment=only_on_rank_zero)
    module(monkeypatch, "lightning.pytorch.utilities", rank_zero_only=only_on_rank_zero)
    monkeypatch.delitem(sys.modules, "evalboard.callbacks.lightning", raising=False)
    yield
    sys.modules.pop("evalboard.callbacks.lightning", None)


def test_lightning(tmp_path, lightning):
    """The order of Trainer.fit(): hyperparameters, metrics, save() after each checkpoint, finalize()."""
    for version in range(2):
        logger = evalboard.callbacks.LightningLogger(tmp_path)
        assert logger.version == version and logger.name == "lightning_logs" and logger.save_dir == str(tmp_path)
        logger.log_hyperparams({"rate": 0.5, "layers": [1, 2], "on": True})
        for step in range(3):
            logger.log_metrics({"train_loss": 1.0 / (step + 1), "epoch": 0}, step)
        logger.log_metrics({"both": {"a": 1.0, "b": 2.0}}, 2)
        logger.save()
        assert len(evalboard.read(logger.log_dir)[".", "train_loss"]) == 3  # before the end
        logger.experiment.add_text("note", "x")
        logger.finalize("success")
    log = evalboard.read(tmp_path)
    assert log["lightning_logs/version_1", "train_loss"].steps.tolist() == [0, 1, 2]
    assert log["lightning_logs/version_0/both_b", "both"].values.tolist() == [2]
    assert "lightning_logs/version_1/hparams" in log.runs


def test_lightning_checkpoints(tmp_path, lightning):
    """After every 2 steps and at the end, by rank 0; with gradients accumulated, batches without a step make none."""
    trainer = types.SimpleNamespace(global_step=0, is_global_zero=True)
    network = types.SimpleNamespace(state_dict=lambda: {"conv.weight": numpy.full((3, 2), trainer.global_step, "float32")})
    callback = evalboard.callbacks.LightningCheckpoint(tmp_path / "ckpt", every_n_train_steps=2)
    for batch, trainer.global_step in enumerate((0, 1, 1, 2, 2, 3, 4, 5)):
        callback.on_train_batch_end(trainer, network, None, None, batch)
    callback.on_train_end(trainer, network)
    trainer.is_global_zero, trainer.global_step = False, 8
    callback.on_train_end(trainer, network)
    assert sorted(path.name for path in (tmp_path / "ckpt").iterdir()) == [f"model-{n}.safetensors" for n in (2, 4, 5)]
    assert evalboard.checkpoint.load(tmp_path / "ckpt/model-4.safetensors")["conv.weight"].tolist() == [[4, 4]] * 3
    with pytest.raises(ValueError, match="every_n_train_steps is 0"):
        evalboard.callbacks.LightningCheckpoint(tmp_path, 0)


@pytest.fixture
def transformers(monkeypatch):
    module(monkeypatch, "transformers", TrainerCallback=type("TrainerCallback", (), {}))
    monkeypatch.delitem(sys.modules, "evalboard.callbacks.huggingface", raising=False)
    yield
    sys.modules.pop("evalboard.callbacks.huggingface", None)


def test_huggingface(tmp_path, transformers):
    """What Trainer passes: logs with a step each, those of an evaluation, a summary at the end; other ranks write nothing."""
    arguments = types.SimpleNamespace(output_dir=str(tmp_path / "out"), to_json_string=lambda: '{"lr": 1}')
    for zero in (True, False):
        state = types.SimpleNamespace(is_world_process_zero=zero, global_step=0)
        callback = evalboard.callbacks.HuggingFaceCallback()
        callback.on_train_begin(arguments, state, None, model=None)
        for state.global_step in (5, 10):
            callback.on_log(arguments, state, None, logs={"loss": 1.5, "learning_rate": 0.1, "epoch": 0.5, "text": "no"})
        callback.on_log(arguments, state, None, logs={"eval_loss": 1.25, "epoch": 1})
        assert len(evalboard.read(tmp_path)["out/runs", "train/loss"]) == 2
        callback.on_log(arguments, state, None, logs={"train_runtime": 3.0})
        callback.on_train_end(arguments, state, None)
    log = evalboard.read(tmp_path)
    assert {tag: s.steps.tolist() for (_, tag), s in log.items()} == {
        "eval/loss": [10], "train/epoch": [5, 10, 10], "train/learning_rate": [5, 10], "train/loss": [5, 10],
        "train/train_runtime": [10]}
    [texts] = evalboard.read_texts(tmp_path).values()
    assert '"lr": 1' in texts[0].texts[0]
