"""evalboard.checkpoint beside TensorFlow's own reader and safetensors': the same names, shapes and bits."""
import numpy
import pytest

import python_package  # noqa: F401

np = numpy
tf = pytest.importorskip("tensorflow")
safetensors = pytest.importorskip("safetensors.numpy")

from evalboard import checkpoint  # noqa: E402


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    place = tmp_path_factory.mktemp("ckpt")
    variables = {f"v{i}": tf.Variable(tf.cast(tf.reshape(tf.range(6), (2, 3)), dtype)) for i, dtype in enumerate(
        (tf.float32, tf.float64, tf.float16, tf.bfloat16, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32,
         tf.uint64, tf.complex64, tf.complex128))}
    tree = tf.train.Checkpoint(flag=tf.Variable([True, False]), empty=tf.Variable(tf.zeros((0, 4))), one=tf.Variable(3.5),
                               text=tf.Variable([["", "ü" * 200], ["b", "c\0"]]), **variables)
    return tree.save(str(place / "model"))


def test_bundle(saved):
    theirs, ours = tf.train.load_checkpoint(saved), checkpoint.load(saved)
    assert ours.get_variable_to_shape_map() == theirs.get_variable_to_shape_map()
    assert checkpoint.list_variables(saved) == tf.train.list_variables(saved)
    assert ours.get_variable_to_dtype_map() == {n: d.name for n, d in theirs.get_variable_to_dtype_map().items()}
    everything = ours.read()
    assert list(everything) == list(ours) and len(ours) >= 19
    for name in ours:
        wanted = theirs.get_tensor(name)
        for found in (everything[name], ours.get_tensor(name)) if "v0" in name or "text" in name else (everything[name],):
            assert found.shape == np.shape(wanted), name
            if isinstance(wanted, bytes) or wanted.dtype == object:
                assert found.tolist() == (wanted if isinstance(wanted, bytes) else wanted.tolist())
            elif wanted.dtype.name == "bfloat16":
                assert found.dtype == np.float32 and found.tolist() == wanted.astype(np.float32).tolist()
            else:
                assert found.dtype == wanted.dtype and found.tobytes() == wanted.tobytes(), name


def test_names(saved, tmp_path):
    directory = saved.rpartition("/")[0]
    assert checkpoint.latest(directory) == tf.train.latest_checkpoint(directory)
    assert checkpoint.latest(tmp_path) is None
    assert checkpoint.load(directory).path == saved
    assert checkpoint.load_variable(saved, "one/.ATTRIBUTES/VARIABLE_VALUE") == 3.5
    ours = checkpoint.load_checkpoint(saved)
    assert ours.has_tensor("one/.ATTRIBUTES/VARIABLE_VALUE") and not ours.has_tensor("one")
    with pytest.raises(KeyError):
        ours["one"]
    with pytest.raises(checkpoint.CheckpointError, match="/nowhere: no such checkpoint"):
        checkpoint.load("/nowhere")


def test_names_that_are_patterns(tmp_path):
    prefix = str(tmp_path / "model")
    tf.raw_ops.SaveV2(prefix=prefix, tensor_names=["a*", "ab", "a[b]", "a?", "a\\b"], shape_and_slices=[""] * 5,
                      tensors=[tf.constant(float(i)) for i in range(5)])
    ours = checkpoint.load(prefix)
    assert {name: float(ours[name]) for name in ours} == {"a*": 0, "ab": 1, "a[b]": 2, "a?": 3, "a\\b": 4}


def test_damaged(saved, tmp_path):
    """It is not read."""
    for suffix in (".index", ".data-00000-of-00001"):
        data = bytearray(open(saved + suffix, "rb").read())
        if "data" in suffix:
            data[-1] ^= 1
        (tmp_path / f"model-1{suffix}").write_bytes(data)
    with pytest.raises(checkpoint.CheckpointError, match="CRC"):
        checkpoint.load(tmp_path / "model-1").read()


def test_safetensors(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(5, np.int64), "c": np.zeros((0, 2), np.float16),
              "d": np.array([True, False])}
    path = tmp_path / "model.safetensors"
    safetensors.save_file(arrays, path)
    ours = checkpoint.load(path)
    assert sorted(ours) == list("abcd")
    for name, wanted in arrays.items():
        assert ours[name].dtype == wanted.dtype and ours[name].shape == wanted.shape and ours[name].tobytes() == wanted.tobytes()
        assert not ours[name].flags.writeable
    whole = path.read_bytes()
    for wrong in (b"", whole[:5], whole[:30], whole[:-1], b"\xff" * 40, whole[:8] + b"x" + whole[9:],
                  whole.replace(b"[2,3]", b"[2,4]"), whole.replace(b"[2,3]", b"[-2,3]")[:len(whole)],
                  whole.replace(b'"I64"', b'"I99"')):
        path.write_bytes(wrong)
        with pytest.raises(ValueError):
            checkpoint.load(path).read()
