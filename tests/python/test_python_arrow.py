"""A log as a stream of Arrow's C data interface, taken by a consumer that follows its rules: every struct is released once,
parts may be moved out, and then nothing is held."""
import ctypes
import gc

import pytest

import python_package  # noqa: F401

np = pytest.importorskip("numpy")

import evalboard  # noqa: E402
from evalboard import _arrow  # noqa: E402

address_in = ctypes.pythonapi.PyCapsule_GetPointer
address_in.restype, address_in.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def log_of(directory, lengths):
    for run, tags in lengths.items():
        with evalboard.SummaryWriter(directory / run) as w:
            for tag, count in tags.items():
                for i in range(count):
                    w.add_scalar(tag, i / 2, 10 * i, 1e9 + i)
    return evalboard.read(directory)


def numbers(array, dtype):
    data = ctypes.string_at(array.buffers[1], array.length * np.dtype(dtype).itemsize)
    return np.frombuffer(data, dtype).tolist()


def words(array):
    """Of a dictionary's column."""
    texts = array.dictionary.contents
    offsets = np.frombuffer(ctypes.string_at(texts.buffers[1], 4 * (texts.length + 1)), np.int32)
    data = ctypes.string_at(texts.buffers[2], int(offsets[-1]))
    names = [data[a:b].decode() for a, b in zip(offsets, offsets[1:])]
    return [names[i] for i in numbers(array, np.int32)]


def batches(stream):
    while True:
        array = _arrow.Array()
        assert stream.get_next(ctypes.addressof(stream), ctypes.addressof(array)) == 0
        if not array.release:
            return
        yield array


def test_stream(tmp_path):
    log = log_of(tmp_path, {"a": {"x": 3, "yü": 2}, "b/c": {"x": 1}})
    capsule = log.__arrow_c_stream__()
    stream = _arrow.Stream.from_address(address_in(capsule, b"arrow_array_stream"))
    schema = _arrow.Schema()
    assert stream.get_schema(ctypes.addressof(stream), ctypes.addressof(schema)) == 0
    columns = [schema.children[i].contents for i in range(schema.n_children)]
    assert [(c.name, c.format) for c in columns] == [(b"run", b"i"), (b"tag", b"i"), (b"step", b"l"), (b"wall_time", b"g"),
                                                     (b"value", b"g")]
    assert schema.format == b"+s" and columns[0].dictionary.contents.format == b"u"
    [batch] = batches(stream)
    run, tag, step, wall, value = (batch.children[i].contents for i in range(5))
    assert words(run) == ["a"] * 5 + ["b/c"] and words(tag) == ["x"] * 3 + ["yü"] * 2 + ["x"]
    assert numbers(step, "<i8") == [0, 10, 20, 0, 10, 0] and numbers(value, "<f8") == [0, 0.5, 1, 0, 0.5, 0]
    assert numbers(wall, "<f8")[:3] == [1e9, 1e9 + 1, 1e9 + 2] and batch.length == step.length == 6
    moved = _arrow.Array.from_buffer_copy(step)  # a consumer that keeps one column
    step.release = _arrow.Release()
    for struct in (batch, schema, stream):
        struct.release(ctypes.addressof(struct))
        assert not struct.release
    assert numbers(moved, "<i8") == [0, 10, 20, 0, 10, 0]
    moved.release(ctypes.addressof(moved))
    del capsule
    gc.collect()
    assert not _arrow._held and not _arrow._streams


def test_batches(tmp_path):
    """Series are put together up to a size; a longer one is alone. A capsule that nobody opens holds nothing."""
    size = _arrow.BATCH
    log = log_of(tmp_path, {"r": {"a": 10, "b": size + 5, "c": 20, "d": 30}})
    capsule = log.__arrow_c_stream__()
    stream = _arrow.Stream.from_address(address_in(capsule, b"arrow_array_stream"))
    lengths = []
    for batch in batches(stream):
        lengths.append(batch.length)
        batch.release(ctypes.addressof(batch))
    assert lengths == [10, size + 5, 50]
    del capsule
    assert not _arrow._held and not _arrow._streams
    empty = evalboard.read(tmp_path, tags="none").__arrow_c_stream__()
    assert list(batches(_arrow.Stream.from_address(address_in(empty, b"arrow_array_stream")))) == []
