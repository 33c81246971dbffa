"""TensorFlow reads our checkpoints, and we read TensorFlow's: every variable, value for value."""
import json
import os
import pathlib
import subprocess

import pytest

from waiting import DEADLINE

numpy = pytest.importorskip("numpy")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "tests/peers/bundle_tool"
FIXED = ["float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "qint8", "quint8",
         "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "uint32", "uint64",
         "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4"]
FOUR_BITS = ("int4", "uint4")


def tool(*arguments, wanted=0):
    run = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE)
    assert run.returncode == wanted, run.stderr
    return run.stdout if wanted == 0 else run.stderr


def dump(prefix, folder):
    """What our reader finds: name -> (DataType number, shape, bytes)."""
    out = folder / "dumped.bytes"
    rows, data, found, at = json.loads(tool("dump", prefix, out)), out.read_bytes(), {}, 0
    for row in rows:
        found[row["name"]] = (row["type"], tuple(row["shape"]), data[at:at + row["size"]])
        at += row["size"]
    assert at == len(data)
    return found


def varint(v):
    out = b""
    while v >= 0x80:
        out += bytes([v & 0x7F | 0x80])
        v >>= 7
    return out + bytes([v])


def write(prefix, tensors, folder):
    """Writes (name, DataType number, shape, bytes[, start, length]) with our writer."""
    lines, data = [], b""
    for name, number, shape, content, *part in tensors:
        numbers = [len(shape), *shape, *(n for p in part for n in p)]
        lines.append(f"{number} {len(data)} {len(content)} {name} {' '.join(map(str, numbers))}")
        data += content
    (folder / "list").write_text("\n".join(lines) + "\n")
    (folder / "bytes").write_bytes(data)
    tool("write", prefix, folder / "list", folder / "bytes")


def stored_strings(stored, count):
    lengths, at = [], 0
    for _ in range(count):
        length = shift = 0
        while True:
            byte = stored[at]
            at += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        lengths.append(length)
    at += 4
    out = []
    for length in lengths:
        out.append(stored[at:at + length])
        at += length
    return out


def same_as_tensorflow(prefix, folder, wanted=None):
    """Holds our reading of a checkpoint to TensorFlow's reading of it; returns how many variables there were."""
    ours, reader = dump(prefix, folder), tf.train.load_checkpoint(str(prefix))
    shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    assert set(ours) == set(shapes)
    for name, (number, shape, content) in ours.items():
        assert list(shape) == list(shapes[name]), name
        assert number == types[name].as_datatype_enum, name
        value = reader.get_tensor(name)
        if types[name] == tf.string:
            values = numpy.asarray(value, dtype=object).reshape(-1)
            assert stored_strings(content, len(values)) == list(values), name
        elif types[name].name in FOUR_BITS:
            low = numpy.asarray(value).astype(numpy.int8).view(numpy.uint8) & 15
            assert (numpy.frombuffer(content, numpy.uint8) & 15).tobytes() == low.tobytes(), name
        else:
            assert numpy.asarray(value).tobytes() == content, name
    if wanted is not None:
        assert set(wanted) <= set(ours)
    return len(ours)


def random_bytes(dtype, count, seed):
    rng = numpy.random.default_rng(seed)
    if dtype == tf.bool:
        return rng.integers(0, 2, count, dtype=numpy.uint8).tobytes()
    if dtype.name in FOUR_BITS:
        return rng.integers(0, 16, count, dtype=numpy.uint8).tobytes()
    return rng.bytes(count * dtype.size)


def test_every_type_of_ours(tmp_path):
    tensors = []
    for i, name in enumerate(FIXED):
        dtype = tf.as_dtype(name)
        for k, shape in enumerate([(), (3,), (2, 3, 4), (0,), (5, 0, 2), (1,) * 20]):
            count = int(numpy.prod(shape, dtype=numpy.int64))
            tensors.append((f"{name}/{k}", dtype.as_datatype_enum, shape, random_bytes(dtype, count, i)))
    words = [b"cat", b"", "\u00e4\u4e16".encode(), b"x" * 300, bytes(range(256)), b"end"]
    stored = b"".join(varint(len(w)) for w in words) + b"".join(words)
    tensors.append(("words", 7, (2, 3), stored))
    tensors.append(("no_words", 7, (0,), b""))
    prefix = tmp_path / "model.ckpt-7"
    write(prefix, tensors, tmp_path)
    assert same_as_tensorflow(prefix, tmp_path) == len(tensors)
    found = dump(prefix, tmp_path)
    for name, number, shape, content in tensors:
        assert found[name][:2] == (number, shape)
        if number != 7:
            assert found[name][2] == content, name
    reader = tf.train.load_checkpoint(str(prefix))
    assert list(reader.get_tensor("words").reshape(-1)) == words


def test_many_names_of_ours(tmp_path):
    rng = numpy.random.default_rng(1)
    names = {f"layer{i % 60}/block_{i // 7}/w{i}" for i in range(2900)}
    names |= {"a", "a/b", "a/b/c", "a.b", "~", "!", "\u00fc/\u4e16", "k" * 3000, "k" * 2999 + "j", "_CHECKPOINT", "A" * 700}
    names = list(names)
    rng.shuffle(names)
    values = {name: rng.standard_normal(int(rng.integers(0, 40))).astype(numpy.float32) for name in names}
    prefix = tmp_path / "model.ckpt-3000"
    write(prefix, [(n, 1, v.shape, v.tobytes()) for n, v in values.items()], tmp_path)
    assert same_as_tensorflow(prefix, tmp_path) == len(names)
    reader = tf.train.load_checkpoint(str(prefix))
    for name, value in values.items():
        assert (reader.get_tensor(name) == value).all()


def test_partitioned_of_ours(tmp_path):
    full = numpy.arange(24, dtype=numpy.float32).reshape(6, 4)
    prefix = tmp_path / "model.ckpt-1"
    write(prefix, [("rows", 1, (6, 4), full[:2].tobytes(), (0, 0), (2, -1)),
                   ("rows", 1, (6, 4), full[2:].tobytes(), (2, 0), (4, -1)),
                   ("columns", 1, (6, 4), full[:, :1].tobytes(), (0, 0), (6, 1)),
                   ("columns", 1, (6, 4), full[:, 1:].tobytes(), (0, 1), (6, 3))], tmp_path)
    reader = tf.train.load_checkpoint(str(prefix))
    assert (reader.get_tensor("rows") == full).all() and (reader.get_tensor("columns") == full).all()
    assert same_as_tensorflow(prefix, tmp_path) == 2


def test_saver_restores_ours(tmp_path):
    """A graph of TensorFlow 1 takes our checkpoint, found through a state file of the form we write."""
    weights = numpy.random.default_rng(2).standard_normal((5, 3)).astype(numpy.float32)
    write(tmp_path / "model.ckpt-12", [("w", 1, (5, 3), weights.tobytes()),
                                       ("global_step", 9, (), numpy.int64(12).tobytes())], tmp_path)
    (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-12"\n'
                                         'all_model_checkpoint_paths: "model.ckpt-12"\n')
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.compat.v1.get_variable("w", (5, 3))
        step = tf.compat.v1.train.get_or_create_global_step()
        tf.compat.v1.train.Saver().restore(session, tf.train.latest_checkpoint(str(tmp_path)))
        assert (session.run(w) == weights).all() and session.run(step) == 12


def save_with_saver(folder, **options):
    """A TensorFlow 1 saver's checkpoint: plain and partitioned variables, slots, an average, a global step."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        v1.get_variable("conv1/weights", (5, 5, 3, 8))
        v1.get_variable("odd", (7, 3), dtype=tf.float64)
        v1.get_variable("embedding", (10, 4), partitioner=v1.fixed_size_partitioner(3))
        v1.get_variable("wide", (4, 9), partitioner=v1.fixed_size_partitioner(2, axis=1))
        v1.get_variable("scalar", (), dtype=tf.int32, initializer=v1.constant_initializer(-7), use_resource=False)
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())
        saver = v1.train.Saver(**options)
        return saver.save(session, str(folder / "model.ckpt"), global_step=41)


@pytest.mark.parametrize("options", [{}, {"sharded": True}, {"pad_step_number": True}])
def test_saver_of_tensorflow(tmp_path, options):
    prefix = save_with_saver(tmp_path, **options)
    assert same_as_tensorflow(prefix, tmp_path, ["embedding", "wide", "global_step"]) == 6
    assert tool("newest", tmp_path).strip() == pathlib.Path(prefix).name


def test_snappy_index(tmp_path):
    prefix = pathlib.Path(save_with_saver(tmp_path))
    index = pathlib.Path(f"{prefix}.index")
    plain = dump(prefix, tmp_path)
    before = index.read_bytes()
    tool("snappy", index, index)
    assert index.read_bytes() != before
    assert dump(prefix, tmp_path) == plain
    assert same_as_tensorflow(prefix, tmp_path) == 6


def test_version_1(tmp_path):
    """The same values as in a V2 checkpoint."""
    for name in "new", "old":
        (tmp_path / name).mkdir()
    new = save_with_saver(tmp_path / "new")
    old = save_with_saver(tmp_path / "old", write_version=tf.compat.v1.train.SaverDef.V1)
    assert dump(old, tmp_path) == dump(new, tmp_path)


def test_several_shards(tmp_path):
    """Three bundles merged into one of three shards, as sharded savers on several hosts make them."""
    parts, values = [], {}
    for k in range(3):
        values[f"part{k}/w"] = numpy.random.default_rng(k).standard_normal((50, 3)).astype(numpy.float32)
        values[f"part{k}/n"] = numpy.arange(k, dtype=numpy.int64)
        part = str(tmp_path / f"model.ckpt-9_temp/part-{k}")
        names = [n for n in values if n.startswith(f"part{k}")]
        tf.raw_ops.SaveV2(prefix=part, tensor_names=names, shape_and_slices=[""] * len(names),
                          tensors=[values[n] for n in names])
        parts.append(part)
    prefix = tmp_path / "model.ckpt-9"
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(prefix))
    assert len(list(tmp_path.glob("model.ckpt-9.data-*-of-00003"))) == 3
    assert same_as_tensorflow(prefix, tmp_path) == 6
    os.remove(next(tmp_path.glob("model.ckpt-9.data-*-of-00003")))
    assert "No such file" in tool("dump", prefix, tmp_path / "x", wanted=1)


def test_object_checkpoint_of_tensorflow_2(tmp_path):
    step = tf.Variable(5, dtype=tf.int64)
    tree = tf.train.Checkpoint(step=step, w=tf.Variable(tf.random.normal((8, 3))), flag=tf.Variable(True),
                               half=tf.Variable(tf.random.normal((6,), dtype=tf.float16)))
    manager = tf.train.CheckpointManager(tree, str(tmp_path), max_to_keep=2)
    for number in (10, 20, 30):
        prefix = manager.save(checkpoint_number=number)
    found = same_as_tensorflow(prefix, tmp_path, ["w/.ATTRIBUTES/VARIABLE_VALUE", "_CHECKPOINTABLE_OBJECT_GRAPH"])
    assert found >= 5
    assert tool("newest", tmp_path).strip() == "ckpt-30"


def test_every_type_of_tensorflow(tmp_path):
    names, tensors = [], []
    for i, name in enumerate(FIXED):
        dtype = tf.as_dtype(name)
        if dtype.name in FOUR_BITS or dtype.is_quantized:
            continue  # no tensors of these can be made from bytes; ours of these types are read by TensorFlow above
        for k, shape in enumerate([(), (2, 3), (0, 4)]):
            count = int(numpy.prod(shape, dtype=numpy.int64))
            value = numpy.frombuffer(random_bytes(dtype, count, i), dtype.as_numpy_dtype).reshape(shape)
            names.append(f"{name}/{k}")
            tensors.append(tf.constant(value, dtype))
    names += ["words", "empty"]
    tensors += [tf.constant([b"cat", b"", b"x" * 500]), tf.constant([], tf.string)]
    prefix = tmp_path / "types"
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    assert same_as_tensorflow(prefix, tmp_path) == len(names)
    assert (tmp_path / "types.index").read_bytes() == rewritten_index(prefix, tmp_path, names)


def rewritten_index(prefix, folder, order):
    """The index our writer makes of the same tensors, added in TensorFlow's order: it must be the same file."""
    found, again = dump(prefix, folder), folder / "again"
    rows = []
    for name in order:
        number, shape, content = found[name]
        if number == 7:
            words = stored_strings(content, int(numpy.prod(shape, dtype=numpy.int64)))
            content = b"".join(varint(len(w)) for w in words) + b"".join(words)
        rows.append((name, number, shape, content))
    write(again, rows, folder)
    data = folder / "again.data-00000-of-00001"
    assert data.read_bytes() == pathlib.Path(f"{prefix}.data-00000-of-00001").read_bytes()
    return (folder / "again.index").read_bytes()


def test_large_index_of_tensorflow(tmp_path):
    """Several data blocks, and a key that gets a block to itself."""
    names = sorted([f"scope/{i % 90:03d}/weights_{i:05d}" for i in range(14000)])
    tensors = [tf.constant(numpy.full(i % 4, i, numpy.float32)) for i in range(len(names))]
    prefix = tmp_path / "many"
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * len(names), tensors=tensors)
    assert (tmp_path / "many.index").stat().st_size > 2 ** 18
    assert same_as_tensorflow(prefix, tmp_path) == len(names)
    assert (tmp_path / "many.index").read_bytes() == rewritten_index(prefix, tmp_path, names)
    names = ["a", "k" * 600_000, "z"]
    prefix = tmp_path / "long"
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[""] * 3, tensors=tensors[1:4])
    assert same_as_tensorflow(prefix, tmp_path) == 3


def test_damaged_index_is_refused(tmp_path):
    """Each byte of a TensorFlow index changed in turn: a sentence that names the file, never a tensor."""
    prefix = pathlib.Path(save_with_saver(tmp_path))
    index = pathlib.Path(f"{prefix}.index")
    good = index.read_bytes()
    for at in range(0, len(good), 7 if len(good) > 400 else 1):
        index.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1:])
        assert f"{index}: " in tool("dump", prefix, tmp_path / "x", wanted=1), at
    index.write_bytes(good)
    dump(prefix, tmp_path)
