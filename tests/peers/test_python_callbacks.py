"""Callbacks: a Keras training writes the tags and numbers that Keras's own TensorBoard callback writes."""
import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")
keras = pytest.importorskip("keras")

import evalboard  # noqa: E402


def test_keras(tmp_path):
    random = np.random.default_rng(1)
    x = random.random((64, 4)).astype("float32")
    y = (x.sum(axis=1) > 2).astype("int32")
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), ["accuracy"])
    model.fit(x, y, batch_size=16, validation_split=0.25, epochs=3, verbose=0, callbacks=[
        evalboard.callbacks.KerasCallback(tmp_path / "ours", update_freq=2, histogram_freq=2),
        keras.callbacks.TensorBoard(tmp_path / "theirs", update_freq="epoch", write_graph=False)])
    ours, theirs = evalboard.read(tmp_path / "ours"), evalboard.read(tmp_path / "theirs")
    compared = 0
    for (run, tag), series in theirs.items():
        if tag.startswith("epoch_") and tag != "epoch_learning_rate":
            assert ours[run, tag].steps.tolist() == series.steps.tolist()
            assert ours[run, tag].values.tolist() == series.values.tolist(), (run, tag)
            compared += 1
    assert compared == 4
    assert len(ours["train", "batch_loss"]) == 4 and ours["train", "epoch_learning_rate"].values[0] == pytest.approx(0.01)
    histograms = evalboard.read_histograms(tmp_path / "ours")
    assert [len(h) for h in histograms.values()] == [2, 2]
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        evalboard.callbacks.Nothing
