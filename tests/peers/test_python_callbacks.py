"""The callback for Keras writes the tags of Keras's own TensorBoard callback, with the numbers that fit() reports."""
import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")
keras = pytest.importorskip("keras")

import evalboard  # noqa: E402


def test_keras(tmp_path):
    """Called as fit() calls it."""
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.optimizer = keras.optimizers.SGD(0.25)
    callback = evalboard.callbacks.KerasCallback(tmp_path, update_freq=2, histogram_freq=2)
    callback.set_model(model)
    callback.on_train_begin()
    for epoch in range(3):
        for batch in range(4):
            callback.on_train_batch_end(batch, {"loss": batch + epoch / 4})
        callback.on_epoch_end(epoch, {"loss": 1.0 / (epoch + 1), "val_loss": 2.0, "val_accuracy": np.float32(0.5)})
    callback.on_train_end()
    log = evalboard.read(tmp_path)
    assert {key: series.values.tolist() for key, series in log.items()} == {
        ("train", "batch_loss"): [1, 3, 1.25, 3.25, 1.5, 3.5], ("train", "epoch_learning_rate"): [0.25] * 3,
        ("train", "epoch_loss"): [1, 0.5, np.float32(1 / 3)], ("validation", "epoch_accuracy"): [0.5] * 3,
        ("validation", "epoch_loss"): [2] * 3}
    assert log["train", "batch_loss"].steps.tolist() == [2, 4, 6, 8, 10, 12]
    histograms = evalboard.read_histograms(tmp_path)
    assert [[h.step for h in values] for values in histograms.values()] == [[0, 2], [0, 2]]
    assert sorted(values[0].counts.sum() for values in histograms.values()) == [2, 8]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        evalboard.callbacks.Nothing


def test_keras_checkpoints(tmp_path):
    """The weights of each second batch, and of each epoch, in Keras's names and order of dimensions."""
    layers = keras.layers
    for frequency, wanted in ((2, [2, 4]), ("epoch", [5])):
        model = keras.Sequential([layers.Input((4, 4, 1)), layers.Conv2D(2, 3, name="conv"), layers.BatchNormalization(name="norm"),
                                  layers.Flatten(), layers.Dropout(0.5), layers.Dense(3, name="last")])
        callback = evalboard.callbacks.KerasCallback(tmp_path / "log", checkpoint_dir=tmp_path / "ckpt", checkpoint_freq=frequency)
        callback.set_model(model)
        for batch in range(5):
            callback.on_train_batch_end(batch, {"loss": 1})
        callback.on_epoch_end(0, {"loss": 1})
        callback.on_train_end()
        files = sorted((tmp_path / "ckpt").iterdir())
        assert [path.name for path in files] == [f"model-{step}.safetensors" for step in wanted]
        saved = evalboard.checkpoint.load(files[-1])
        assert sorted(saved) == ["conv/bias", "conv/kernel", "last/bias", "last/kernel", "norm/beta", "norm/gamma",
                                 "norm/moving_mean", "norm/moving_variance"]
        assert (saved["conv/kernel"] == model.get_layer("conv").get_weights()[0]).all()
        for path in files:
            path.unlink()


def test_beside_keras(tmp_path):
    """The same training, with both callbacks."""
    random = np.random.default_rng(1)
    x = random.random((64, 4)).astype("float32")
    y = (x.sum(axis=1) > 2).astype("int32")
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    model.fit(x, y, batch_size=16, validation_split=0.25, epochs=3, verbose=0, callbacks=[
        evalboard.callbacks.KerasCallback(tmp_path / "ours"),
        keras.callbacks.TensorBoard(tmp_path / "theirs", write_graph=False)])
    ours, theirs = evalboard.read(tmp_path / "ours"), evalboard.read(tmp_path / "theirs")
    compared = [key for key in theirs if key[1] in ("epoch_loss", "epoch_accuracy")]
    assert len(compared) == 4
    for key in compared:
        assert ours[key].steps.tolist() == theirs[key].steps.tolist()
        assert ours[key].values.tolist() == theirs[key].values.tolist(), key
