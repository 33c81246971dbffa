"""The tool `checkpoint` on what TensorFlow and safetensors write, held to their values and numpy's arithmetic."""
import faulthandler
import json
import os
import subprocess

import pytest

from checkpoint_files import BUILD, as_json, checkpoint, write_index
from checksum import masked_crc32c

numpy = pytest.importorskip("numpy")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

TYPES = ["float32", "float64", "int32", "uint8", "int16", "int8", "complex64", "int64", "bool", "bfloat16", "uint16",
         "complex128", "float16", "uint32", "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz",
         "float8_e4m3b11fnuz", "float8_e5m2fnuz"]
QUANTIZED = {"qint8": numpy.int8, "quint8": numpy.uint8, "qint32": numpy.int32, "qint16": numpy.int16,
             "quint16": numpy.uint16}


def tensors_of(prefix, *options):
    return {row["name"]: row for row in as_json("inspect", prefix, *options)["tensors"]}


def save(prefix, tensors, parts=None):
    """SaveV2 of {name: tensor or array}; parts: {name: shape_and_slice}."""
    names = sorted(tensors)
    tf.raw_ops.SaveV2(prefix=str(prefix), tensor_names=names, shape_and_slices=[(parts or {}).get(n, "") for n in names],
                      tensors=[tensors[n] for n in names])
    return prefix


def samples(name, count, seed):
    dtype = tf.as_dtype(name)
    rng = numpy.random.default_rng(seed)
    if name == "bool":
        return rng.integers(0, 2, count).astype(bool)
    return numpy.frombuffer(rng.bytes(count * dtype.size), dtype.as_numpy_dtype)


def all_types(shapes=((), (2, 3), (0, 4), (1,) * 8)):
    tensors = {}
    for i, name in enumerate(TYPES):
        for k, shape in enumerate(shapes):
            count = int(numpy.prod(shape, dtype=numpy.int64))
            tensors[f"{name}/{k}"] = tf.constant(samples(name, count, 97 * i + k).reshape(shape), tf.as_dtype(name))
        tensors[f"{name}/many"] = tf.constant(samples(name, 5000, i), tf.as_dtype(name))
    for i, (name, plain) in enumerate(QUANTIZED.items()):
        values = numpy.frombuffer(numpy.random.default_rng(i).bytes(24 * numpy.dtype(plain).itemsize), plain)
        tensors[name] = tf.bitcast(tf.constant(values), tf.as_dtype(name))
    tensors["words"] = tf.constant([[b"cat", b""], [b"x" * 70000, b"\xff\0"]])
    tensors["no_words"] = tf.constant([], tf.string)
    return tensors


def numbers(tensor):
    """What statistics are taken of: float64 values, magnitudes of complex ones."""
    values = tf.bitcast(tensor, tf.as_dtype(QUANTIZED[tensor.dtype.name])) if tensor.dtype.is_quantized else tensor
    values = values.numpy() if hasattr(values, "numpy") else numpy.asarray(values)
    if numpy.iscomplexobj(values):
        bad = numpy.isnan(values.real) | numpy.isnan(values.imag)
        return numpy.where(bad, numpy.nan, numpy.hypot(*(p.astype(numpy.float64) for p in (values.real, values.imag))))
    return values.astype(numpy.float64)


def same(got, wanted, tolerance=1e-9):
    if isinstance(got, str):
        return float(got.replace("Infinity", "inf")) == wanted
    return got == pytest.approx(float(wanted), rel=tolerance, abs=1e-300)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_inspect_every_type(tmp_path):
    tensors = all_types()
    save(tmp_path / "types-12", tensors)
    report = as_json("inspect", tmp_path / "types-12")
    assert report["step"] == 12 and [row["name"] for row in report["tensors"]] == sorted(tensors)
    for row in report["tensors"]:
        tensor = tensors[row["name"]]
        assert row["dtype"] == tensor.dtype.name.replace("half", "float16"), row
        assert row["shape"] == tensor.shape.as_list(), row
        if tensor.dtype == tf.string:
            continue
        assert row["bytes"] == row["elements"] * tensor.dtype.size
        values = numbers(tensor).reshape(-1)
        finite = values[numpy.isfinite(values)]
        assert row["nan"] == numpy.isnan(values).sum(), row
        assert row["inf"] == numpy.isinf(values).sum(), row
        if not len(finite):
            assert row["mean"] is row["std"] is row["min"] is row["max"] is None
            continue
        if numpy.abs(finite).max() < 1e150:  # beyond, squares are no doubles
            assert same(row["mean"], finite.mean(), 1e-6), row
            assert same(row["std"], finite.std(), 1e-6) or finite.std() < 1e-9 * abs(finite.mean()), row
        if tensor.dtype.is_integer and not tensor.dtype.is_quantized:
            assert (row["min"], row["max"]) == (int(tensor.numpy().min()), int(tensor.numpy().max())), row
        else:
            assert same(row["min"], finite.min(), 1e-6) and same(row["max"], finite.max(), 1e-6), row
    words = tensors_of(tmp_path / "types-12", "--tensor", "*words")
    assert (words["words"]["shortest"], words["words"]["longest"], words["words"]["length"]) == (0, 70000, 70005)
    assert set(words) == {"words", "no_words"}
    assert report["total"]["tensors"] == len(tensors)
    table = checkpoint("inspect", tmp_path / "types-12").splitlines()
    assert len(table) == len(tensors) + 3 and table[-1].startswith(f"total: {len(tensors)} tensors, ")


def partitioned(folder):
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(3)
        rows = v1.get_variable("rows", (1000, 40), partitioner=v1.fixed_size_partitioner(3))
        columns = v1.get_variable("columns", (400, 9), partitioner=v1.fixed_size_partitioner(2, axis=1))
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())
        values = {"rows": session.run(tf.convert_to_tensor(rows)), "columns": session.run(tf.convert_to_tensor(columns))}
        return v1.train.Saver(sharded=True).save(session, str(folder / "model.ckpt"), global_step=41), values


def test_partitioned_variables(tmp_path):
    prefix, values = partitioned(tmp_path)
    found = tensors_of(tmp_path)  # a directory: its newest
    assert found["rows"]["slices"] == 3 and found["columns"]["slices"] == 2
    for name, value in values.items():
        assert found[name]["shape"] == list(value.shape)
        assert same(found[name]["mean"], value.astype(float).mean(), 1e-7)
        assert same(found[name]["std"], value.astype(float).std(), 1e-7)
    checkpoint("verify", tmp_path, status=0)
    whole = save(tmp_path / "whole-41", {**values, "global_step": numpy.int64(0)})
    assert as_json("compare", prefix, whole)["total"]["equal"] == 2
    changed = {name: value.copy() for name, value in values.items()}
    changed["rows"][701, 3] += 0.5
    changed["columns"][2, 8] = numpy.nan
    other = save(tmp_path / "other-41", {**changed, "global_step": numpy.int64(0)})
    rows = {row["name"]: row for row in as_json("compare", prefix, other, status=1)["tensors"]}
    assert rows["rows"]["first"]["index"] == 701 * 40 + 3 and rows["rows"]["different"] == 1
    assert numpy.float32(rows["rows"]["first"]["a"]) == values["rows"][701, 3]
    assert numpy.float32(rows["rows"]["first"]["b"]) == changed["rows"][701, 3]
    assert rows["columns"]["first"]["index"] == 2 * 9 + 8 and rows["columns"]["absolute"] == "Infinity"
    assert "1 of 40000" in checkpoint("compare", prefix, other, status=1) and "[701, 3]" in checkpoint("compare", prefix, other, status=1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_values_are_those_of_tensorflow(tmp_path):
    """--values --json of every type, exactly."""
    tensors = {name: tensor for name, tensor in all_types().items() if name.split("/")[0] not in QUANTIZED}
    rows = tensors_of(save(tmp_path / "types-12", tensors), "--values", "--limit", 10**9)

    def flat(values):
        return [v for part in values for v in flat(part)] if isinstance(values, list) else [values]

    for name, tensor in tensors.items():
        got, wanted = rows[name]["values"], numpy.asarray(tensor.numpy())
        assert numpy.shape(got) == wanted.shape or not wanted.size, name
        if tensor.dtype == tf.string:
            assert flat(got) == [text.decode(errors="replace") for text in flat(wanted.tolist())], name
        elif numpy.iscomplexobj(wanted):
            values = numpy.array([complex(v.replace("i", "j").replace("jnf", "inf")) for v in flat(got)], wanted.dtype)
            assert numpy.array_equal(values, wanted.reshape(-1), equal_nan=True), name
        else:
            values = numpy.array([float(v) if isinstance(v, str) else v for v in flat(got)], dtype=None if wanted.size else float)
            values, wanted = values.astype(wanted.dtype), wanted.reshape(-1)
            same = values.astype(float) == wanted.astype(float)
            assert (same | (numpy.isnan(values.astype(float)) & numpy.isnan(wanted.astype(float)))).all(), name


def test_compare_differences(tmp_path):
    rng = numpy.random.default_rng(8)
    one = {"same": rng.standard_normal(3000), "near": rng.standard_normal(5000).astype(numpy.float32),
           "integers": rng.integers(-2**62, 2**62, 50), "shape": numpy.zeros((2, 3)), "dtype": numpy.zeros(3, numpy.int32),
           "words": numpy.array([b"a", b"bc"]), "nan": numpy.array([numpy.nan, numpy.inf, 0.0]), "one": numpy.ones(1),
           "complex": rng.standard_normal(4) + 1j}
    two = {**one, "shape": numpy.zeros((3, 2)), "dtype": numpy.zeros(3, numpy.int64), "two": numpy.ones(1),
           "words": numpy.array([b"a", b"bd"]), "nan": numpy.array([numpy.nan, numpy.inf, -0.0])}
    del two["one"]
    two["near"] = (one["near"] * (1 + 1e-5 * rng.standard_normal(5000))).astype(numpy.float32)
    two["integers"] = one["integers"].copy()
    two["integers"][[7, 9]] += [1, -3]
    two["complex"] = one["complex"] + [0, 0, 3e-9 + 4e-9j, 0]
    save(tmp_path / "a", one)
    save(tmp_path / "b", two)
    report = as_json("compare", tmp_path / "a", tmp_path / "b", status=1)
    rows = {row["name"]: row for row in report["tensors"]}
    verdicts = {name: row["result"] for name, row in rows.items()}
    assert verdicts == {"same": "equal", "near": "different", "integers": "different", "shape": "shape", "dtype": "dtype",
                        "words": "different", "nan": "equal", "one": "only_a", "two": "only_b", "complex": "different"}
    a, b = one["near"].astype(float), two["near"].astype(float)
    assert same(rows["near"]["absolute"], numpy.abs(a - b).max())
    largest = numpy.maximum(numpy.abs(a), numpy.abs(b))
    assert same(rows["near"]["relative"], (numpy.abs(a - b) / largest).max())
    assert rows["near"]["first"]["index"] == numpy.flatnonzero(a != b)[0]
    assert rows["near"]["different"] == (a != b).sum()
    assert rows["integers"]["absolute"] == 3 and rows["integers"]["first"]["index"] == 7
    assert int(rows["integers"]["first"]["b"]) - int(rows["integers"]["first"]["a"]) == 1
    assert same(rows["complex"]["absolute"], 5e-9, 1e-6)
    assert rows["words"]["first"] == {"index": 1, "a": '"bc"', "b": '"bd"'}
    only = ["--tensor", "near", "--tensor", "s*e", "--tensor", "complex"]
    checkpoint("compare", tmp_path / "a", tmp_path / "a")
    checkpoint("compare", tmp_path / "a", tmp_path / "b", *only[:4], "--tolerance", "1e-4", status=1)  # "shape" too
    relaxed = as_json("compare", tmp_path / "a", tmp_path / "b", "--tensor", "near", "--tensor", "complex",
                      "--tolerance", "1e-4")
    assert relaxed["total"]["within"] == 2 and relaxed["equal"]
    limit = (numpy.abs(a - b) > 1e-6 + 1e-6 * largest).sum()
    strict = as_json("compare", tmp_path / "a", tmp_path / "b", "--tensor", "near", "--tolerance", "1e-6", "--absolute",
                     "1e-6", status=1)
    assert strict["tensors"][0]["outside"] == limit > 0
    assert "no such checkpoint" in checkpoint("compare", tmp_path / "a", tmp_path / "nothing", status=2)


def merged(folder):
    """Three bundles merged into one of three shards."""
    parts = []
    for k in range(3):
        part = str(folder / f"model.ckpt-9_temp/part-{k}")
        save(part, {f"part{k}/w": numpy.random.default_rng(k).standard_normal((50, 3)), f"part{k}/s": tf.constant(["x"])})
        parts.append(part)
    tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=parts, destination_prefix=str(folder / "model.ckpt-9"))
    return folder / "model.ckpt-9"


def test_verify_says_all_that_is_wrong(tmp_path):
    prefix = merged(tmp_path)
    assert ": ok, 6 tensors, 3.53 KiB\n" in checkpoint("verify", prefix)
    shards = sorted(tmp_path.glob("model.ckpt-9.data-*-of-00003"))
    contents = [shard.read_bytes() for shard in shards]
    shards[0].unlink()
    shards[1].write_bytes(contents[1][:-1])
    shards[2].write_bytes(contents[2][:5] + b"\x99" + contents[2][6:])
    findings = as_json("verify", prefix, status=1)["checkpoints"][0]["findings"]
    assert len(findings) == 3, findings
    assert f"{shards[0]}: cannot open" in findings[0]
    assert f"{shards[1]}: not complete" in findings[1]
    assert f"{shards[2]}: tensor part" in findings[2] and "byte" in findings[2]
    assert "no such checkpoint" in checkpoint("verify", tmp_path / "nothing", status=2)


def test_verify_finds_each_flipped_byte(tmp_path):
    save(tmp_path / "m-1", {"w": numpy.arange(5, dtype=numpy.float32), "s": tf.constant(["ab", "c" * 200]), "n": numpy.int64(3)})
    checkpoint("verify", tmp_path / "m-1")
    for name in ("m-1.index", "m-1.data-00000-of-00001"):
        path = tmp_path / name
        good = path.read_bytes()
        for at in range(len(good)):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << at % 8]) + good[at + 1:])
            assert f"{path}: " in checkpoint("verify", tmp_path / "m-1", status=1), at
        path.write_bytes(good)


def test_six_thousand_tensors(tmp_path):
    """An index of many blocks; and a byte flipped anywhere in it, or in the data, is found."""
    rng = numpy.random.default_rng(6)
    tensors = {f"layer_{i % 97}/block_{i}/w": rng.standard_normal(i % 7).astype(numpy.float32) for i in range(6000)}
    prefix = save(tmp_path / "many-6000", tensors)
    found = {row["name"]: row for row in as_json("inspect", prefix)["tensors"]}
    assert list(found) == sorted(tensors)
    assert all(row["shape"] == list(tensors[name].shape) for name, row in found.items())
    checkpoint("convert", prefix, tmp_path / "copy-6000")
    reader = tf.train.load_checkpoint(str(tmp_path / "copy-6000"))
    assert all(reader.get_tensor(name).tobytes() == value.tobytes() for name, value in tensors.items())
    assert as_json("compare", prefix, tmp_path / "copy-6000")["total"]["equal"] == 6000
    for name in ("many-6000.index", "many-6000.data-00000-of-00001"):
        path = tmp_path / name
        good = path.read_bytes()
        for at in sorted(rng.choice(len(good), 40, replace=False)):
            path.write_bytes(good[:at] + bytes([good[at] ^ 1 << int(at) % 8]) + good[at + 1:])
            assert f"{path}: " in checkpoint("verify", prefix, status=1), at
        path.write_bytes(good)
    checkpoint("verify", prefix)


HEADER, SMALL = bytes.fromhex("08011a020801"), numpy.array([1, 2], numpy.float32).tobytes()
END = bytes.fromhex("1204120208022808") + b"\x35" + masked_crc32c(SMALL)  # shape [2], 8 bytes, the CRC
ENTRY = b"\x08\x01" + END
ODD = {  # header and entry of the only tensor
    "as it should be": (HEADER, ENTRY), "unknown field": (HEADER, ENTRY + b"\x78\x01"),
    "unknown field of 8 bytes": (HEADER, ENTRY + b"\x79" + bytes(8)), "last field": (HEADER, ENTRY + b"\xf8\xff\xff\xff\x0f\x01"),
    "field 0": (HEADER, ENTRY + b"\0\0"), "field 0 in two bytes": (HEADER, ENTRY + b"\x80\0\0"),
    "field 0 in three": (HEADER, ENTRY + b"\x80\x80\0\0"), "field 0 with a length": (HEADER, ENTRY + b"\x82\0\0"),
    "field 0 in a dimension": (HEADER, b"\x08\x01" + bytes.fromhex("12071205080280000028083500000000")),
    "field 2^29": (HEADER, ENTRY + b"\x80\x80\x80\x80\x10\x01"), "wire type 6": (HEADER, ENTRY + b"\x7e\0"),
    "field 0 in the header": (HEADER + b"\x80\0\0", ENTRY), "field 0 in the version": (b"\x08\x01\x1a\x05\x08\x01\x80\0\0", ENTRY),
    "dtype 20": (HEADER, b"\x08\x14" + END), "dtype 31": (HEADER, b"\x08\x1f" + END), "dtype 33": (HEADER, b"\x08\x21" + END),
    "dtype 34": (HEADER, b"\x08\x22" + END), "dtype 99": (HEADER, b"\x08\x63" + END), "dtype 199": (HEADER, b"\x08\xc7\x01" + END),
}


def tensorflow_reads(prefix):
    """In a child, because TensorFlow aborts at some of what is wrong."""
    child = os.fork()
    if not child:
        faulthandler.disable()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            reader = tf.train.load_checkpoint(str(prefix))
            os._exit(0 if reader.get_variable_to_dtype_map() and reader.get_tensor("w").tobytes() == SMALL else 1)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def test_odd_indexes_beside_tensorflow(tmp_path):
    """verify finds nothing wrong exactly where TensorFlow reads the tensor, whatever its CRCs say of the index."""
    (tmp_path / "m-1.data-00000-of-00001").write_bytes(SMALL)
    for name, (header, entry) in ODD.items():
        write_index(tmp_path / "m-1.index", {b"": header, b"w": entry})
        reads = tensorflow_reads(tmp_path / "m-1")
        assert reads == (name in ("as it should be", "unknown field", "unknown field of 8 bytes", "last field")), name
        checkpoint("verify", tmp_path / "m-1", status=0 if reads else 1)
    write_index(tmp_path / "m-1.index", {b"": HEADER, b"w": b"\x08\x63" + END})
    assert "m-1.index: tensor w: dtype 99 (unknown) cannot be stored in a checkpoint" in checkpoint("verify", tmp_path / "m-1",
                                                                                                  status=1)


def test_verify_finds_overlaps(tmp_path):
    """Two tensors of the same zeros, the second moved into the first: every CRC is right, the place is not."""
    save(tmp_path / "m-2", {"a": numpy.zeros(4, numpy.float32), "b": numpy.zeros(4, numpy.float32)})
    index = tmp_path / "m-2.index"
    content = bytearray(index.read_bytes())
    at = content.index(bytes([0x20, 16]))  # offset 16
    content[at + 1] = 12
    end = content.index(bytes([0, 0, 0, 0, 1, 0, 0, 0]), at) + 8  # of the block: one restart, at 0
    content[end + 1:end + 5] = masked_crc32c(content[:end + 1])
    index.write_bytes(content)
    told = checkpoint("verify", tmp_path / "m-2", status=1)
    assert f"{tmp_path}/m-2.data-00000-of-00001: tensor b begins at byte 12, inside tensor a, which ends at 16" in told


def test_state_file_and_directory(tmp_path):
    tree = tf.train.Checkpoint(w=tf.Variable(tf.random.normal((8, 3))), step=tf.Variable(5, dtype=tf.int64))
    manager = tf.train.CheckpointManager(tree, str(tmp_path), max_to_keep=3)
    for number in (10, 20, 30):
        manager.save(checkpoint_number=number)
    checkpoint("verify", tmp_path)
    assert as_json("inspect", tmp_path)["step"] == 30
    data = tmp_path / "ckpt-20.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:-3])
    listed = as_json("inspect", tmp_path, "--all")["checkpoints"]
    assert [(row["step"], row["whole"]) for row in listed] == [(10, True), (20, False), (30, True)]
    assert "not complete" in listed[1]["why"] and all(0 <= row["age"] < 600 for row in listed)
    size = sum(p.stat().st_size for p in tmp_path.glob("ckpt-10.*"))
    assert listed[0]["bytes"] == size
    assert "3 checkpoints, 2 complete" in checkpoint("inspect", tmp_path, "--all")
    assert "ckpt-20.data-00000-of-00001: not complete" in checkpoint("verify", tmp_path, status=1)
    for path in tmp_path.glob("ckpt-20.*"):
        path.unlink()
    assert "lists ckpt-20, which has no index" in checkpoint("verify", tmp_path, status=1)
    (tmp_path / "checkpoint").write_text("model_checkpoint_path: ")
    assert f"{tmp_path}/checkpoint" in checkpoint("verify", tmp_path, status=1)


def test_usage():
    assert "did you mean inspect" in checkpoint("inspekt", status=2)
    assert "examples:" in checkpoint("--help")
    for command in ("inspect", "verify", "compare", "convert"):
        assert "examples:" in checkpoint(command, "--help")
        assert "--help' for help" in checkpoint(command, status=2)


# ---- convert ----

def same_tensors(prefix, tensors):
    """TensorFlow reads the same bytes of the same types from a bundle."""
    reader = tf.train.load_checkpoint(str(prefix))
    types = reader.get_variable_to_dtype_map()
    assert set(types) == set(tensors)
    for name, tensor in tensors.items():
        assert types[name] == tensor.dtype, name
        value = reader.get_tensor(name)
        if tensor.dtype == tf.string:
            assert numpy.array_equal(numpy.asarray(value, dtype=object), tensor.numpy()), name
        else:
            wanted = tensor
            if tensor.dtype.is_quantized:
                wanted = tf.bitcast(tensor, tf.as_dtype(QUANTIZED[tensor.dtype.name]))
            assert numpy.asarray(value).tobytes() == wanted.numpy().tobytes(), name


def test_convert_every_type_both_ways(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    tensors = all_types()
    prefix, file, back = save(tmp_path / "types-12", tensors), tmp_path / "types.safetensors", tmp_path / "back-12"
    assert f"{len(tensors)} tensors" in checkpoint("convert", prefix, file)
    checkpoint("verify", file)
    report = as_json("compare", prefix, file)
    assert report["total"]["equal"] == len(tensors) and report["equal"]
    checkpoint("convert", file, back)
    checkpoint("verify", back)
    same_tensors(back, tensors)
    again = tmp_path / "again.safetensors"
    said = json.loads(checkpoint("convert", "--json", file, again))
    assert said["output"] == str(again) and said["format"] == "safetensors" and said["tensors"] == len(tensors)
    assert said["source"] == str(file) and said["left_out"] == 0 and said["bytes"] > 0
    assert again.read_bytes() == file.read_bytes()
    with safetensors.safe_open(str(file), "numpy") as opened:  # the reference reader takes all of it
        assert set(opened.keys()) == set(tensors)
        assert opened.metadata()["tensorflow.dtype/words"] == "string[2, 2]"
        for name in ("float32/many", "int64/0", "float16/1", "bool/many", "uint8/3", "int32/2"):
            value = opened.get_tensor(name)
            assert value.dtype == tensors[name].dtype.as_numpy_dtype and value.tobytes() == tensors[name].numpy().tobytes()
            assert list(value.shape) == tensors[name].shape.as_list()


def test_convert_what_the_reference_writes(tmp_path):
    """Without metadata the same bytes as its own file; and the way through a bundle back to the same file."""
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    rng = numpy.random.default_rng(5)
    arrays = {"w": rng.standard_normal((70, 3, 1000)).astype(numpy.float32), "b": rng.standard_normal(3), "step": numpy.int64(7),
              "h\u00e4 \"x\"\n": rng.standard_normal(5).astype(numpy.float16), "flag": numpy.array([True, False]),
              "none": numpy.zeros((0, 4), numpy.uint8), "i": rng.integers(0, 9, (2, 2), dtype=numpy.int8)}
    arrays = {name: numpy.asarray(value) for name, value in arrays.items()}
    file, prefix, back = tmp_path / "a.safetensors", tmp_path / "m-7", tmp_path / "back.safetensors"
    safetensors_numpy.save_file(arrays, file)
    checkpoint("verify", file)
    checkpoint("convert", file, prefix)
    reader = tf.train.load_checkpoint(str(prefix))
    for name, value in arrays.items():
        assert reader.get_tensor(name).tobytes() == value.tobytes() and reader.get_tensor(name).shape == value.shape
    checkpoint("convert", prefix, back)
    assert back.read_bytes() == file.read_bytes()
    rows = {row["name"]: row for row in as_json("inspect", file)["tensors"]}
    assert same(rows["w"]["mean"], arrays["w"].astype(float).mean(), 1e-7) and list(rows) == sorted(arrays)
    checkpoint("convert", prefix, back, status=2)
    checkpoint("convert", prefix, back, "--force", "--tensor", "[wb]")
    assert set(safetensors_numpy.load_file(back)) == {"w", "b"}
    safetensors_numpy.save_file(arrays, file, metadata={"format": "np"})
    checkpoint("convert", file, back, "-f")
    assert back.read_bytes() == file.read_bytes()


def test_hints_that_do_not_fit(tmp_path):
    """What the metadata says of a tensor counts only where its bytes can be that."""
    safetensors_numpy = pytest.importorskip("safetensors.numpy")
    bytes_, doubles = numpy.arange(6, dtype=numpy.uint8), numpy.arange(6.0).reshape(2, 3)
    cases = {"string[2": bytes_, "string[2]]": bytes_, "string[2,3]": bytes_, "string[-1]": bytes_, "string": bytes_,
             "string[7]": bytes_, "string[4611686018427387904, 4]": bytes_, "string[2]": bytes_.reshape(2, 3),
             "complex128": doubles, "qint8": doubles, "float32": bytes_, "": bytes_}
    file = tmp_path / "hints.safetensors"
    safetensors_numpy.save_file({f"t{i}": value for i, value in enumerate(cases.values())}, file,
                                metadata={f"tensorflow.dtype/t{i}": hint for i, hint in enumerate(cases)})
    rows = tensors_of(file)
    for i, (hint, value) in enumerate(cases.items()):
        assert (rows[f"t{i}"]["dtype"], rows[f"t{i}"]["shape"]) == (str(value.dtype), list(value.shape)), hint
    fits = {"qint8": numpy.arange(4, dtype=numpy.int8), "complex128": numpy.arange(8.0).reshape(4, 2)}
    safetensors_numpy.save_file(fits, file, metadata={f"tensorflow.dtype/{name}": name for name in fits})
    assert {name: (row["dtype"], row["shape"]) for name, row in tensors_of(file).items()} == {
        name: (name, [4]) for name in fits}


def test_convert_torch(tmp_path):
    torch = pytest.importorskip("torch")
    safetensors_torch = pytest.importorskip("safetensors.torch")
    torch.manual_seed(4)
    tensors = {"w": torch.randn(4, 3).bfloat16(), "f8": torch.randn(9).to(torch.float8_e4m3fn),
               "e8": torch.arange(5, dtype=torch.uint8).view(torch.float8_e8m0fnu), "c": torch.randn(3, dtype=torch.complex64)}
    file, back = tmp_path / "t.safetensors", tmp_path / "back.safetensors"
    safetensors_torch.save_file(tensors, file)
    checkpoint("convert", file, back)
    assert back.read_bytes() == file.read_bytes()
    mean = float(tensors["w"].double().mean())
    assert same(tensors_of(file)["w"]["mean"], mean)
    left_out = checkpoint("convert", file, tmp_path / "m-1", status=1)  # bundles have no F8_E8M0
    assert "3 tensors" in left_out
    reader = tf.train.load_checkpoint(str(tmp_path / "m-1"))
    assert reader.get_tensor("w").tobytes() == tensors["w"].view(torch.int16).numpy().tobytes()


def test_torch_in_parts(tmp_path):
    """As huggingface_hub.save_torch_state_dict() lays them out: parts that safetensors writes, and their index."""
    torch = pytest.importorskip("torch")
    safetensors_torch = pytest.importorskip("safetensors.torch")
    torch.manual_seed(5)
    tensors = {f"layer.{i}.weight": torch.randn(3 + i, 4).to(dtype) for i, dtype in enumerate(
        (torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.float8_e4m3fn, torch.float32))}
    names = list(tensors)
    places = {name: f"model-{i // 2 + 1:05}-of-00003.safetensors" for i, name in enumerate(names)}
    for part in sorted(set(places.values())):
        safetensors_torch.save_file({name: tensors[name] for name in names if places[name] == part}, tmp_path / part,
                                    metadata={"format": "pt"})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": sum(t.numel() * t.element_size() for t in tensors.values())},
                                 "weight_map": places}, indent=2) + "\n")
    single, back = tmp_path / "single.safetensors", tmp_path / "back.safetensors"
    safetensors_torch.save_file(tensors, single, metadata={"format": "pt"})
    checkpoint("convert", index, back)
    assert back.read_bytes() == single.read_bytes()
    assert checkpoint("verify", index) == f"{index}: ok, 6 tensors, {os.path.getsize(single) - int.from_bytes(single.read_bytes()[:8], 'little') - 8} B\n"
    assert checkpoint("compare", index, single).endswith("bit for bit\n")
    for name, row in tensors_of(index).items():
        assert same(row["mean"], float(tensors[name].double().mean()))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_convert_to_numpy(tmp_path):
    tensors = all_types()
    prefix, folder = save(tmp_path / "types-12", tensors), tmp_path / "deep/arrays/"
    checkpoint("convert", prefix, f"{folder}/", status=1)  # NumPy drops the end of one string
    assert len(list(folder.iterdir())) == len(tensors)
    for name, tensor in tensors.items():
        value = numpy.load(folder / f"{name.replace('/', '.')}.npy")
        assert list(value.shape) == tensor.shape.as_list(), name
        if tensor.dtype == tf.string:
            assert value.tolist() == [[b"cat", b""], [b"x" * 70000, b"\xff"]] or not value.size
        elif name.startswith(("bfloat16", "float8")):
            assert value.dtype == numpy.float32
            assert numpy.array_equal(value, numpy.asarray(tensor.numpy()).astype(numpy.float32), equal_nan=True), name
        else:
            wanted = tf.bitcast(tensor, tf.as_dtype(QUANTIZED[tensor.dtype.name])) if tensor.dtype.is_quantized else tensor
            assert value.tobytes() == wanted.numpy().tobytes() and value.dtype == wanted.numpy().dtype, name
    checkpoint("convert", prefix, folder, status=2)
    checkpoint("convert", prefix, folder, "-f", status=1)
    clash = save(tmp_path / "clash", {"a/b": numpy.ones(1), "a.b": numpy.ones(1)})
    assert "two tensors" in checkpoint("convert", clash, f"{tmp_path}/clash.d/", status=2)
    assert not (tmp_path / "clash.d").exists()


def test_convert_partitioned_and_object_graph(tmp_path):
    prefix, values = partitioned(tmp_path)
    checkpoint("convert", prefix, tmp_path / "whole-41")
    reader = tf.train.load_checkpoint(str(tmp_path / "whole-41"))
    for name, value in values.items():
        assert (reader.get_tensor(name) == value).all()
    checkpoint("compare", prefix, tmp_path / "whole-41")
    tree = tf.train.Checkpoint(w=tf.Variable(tf.random.normal((8, 3))), step=tf.Variable(5, dtype=tf.int64))
    saved = tree.save(str(tmp_path / "tree/ckpt"))
    checkpoint("convert", saved, tmp_path / "tree.safetensors")
    checkpoint("convert", tmp_path / "tree.safetensors", tmp_path / "again/ckpt-1", status=2)  # no such directory
    checkpoint("convert", tmp_path / "tree.safetensors", tmp_path / "tree/again-1")
    other = tf.train.Checkpoint(w=tf.Variable(tf.zeros((8, 3))), step=tf.Variable(0, dtype=tf.int64))
    other.restore(str(tmp_path / "tree/again-1")).assert_existing_objects_matched()
    assert (other.w.numpy() == tree.w.numpy()).all() and int(other.step) == 5


def test_damaged_sources_are_not_converted(tmp_path):
    prefix = save(tmp_path / "m-1", {"w": numpy.arange(50.0), "s": tf.constant(["abc", "d"])})
    data = tmp_path / "m-1.data-00000-of-00001"
    good = data.read_bytes()
    data.write_bytes(good[:100] + b"\x99" + good[101:])
    for to in ("x.safetensors", "copy", "arrays/"):
        assert "CRC mismatch" in checkpoint("convert", prefix, f"{tmp_path}/{to}", status=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arrays", data.name, "m-1.index"]
    data.write_bytes(good)
    file = tmp_path / "x.safetensors"
    checkpoint("convert", prefix, file)
    content = file.read_bytes()
    for at in range(42):
        file.write_bytes(content[:at])
        assert f"{file}: " in checkpoint("verify", file, status=1)
    length = int.from_bytes(content[:8], "little")
    header = content[8:8 + length].replace(b'"U8"', b'"U8\\u0000"')
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length:])
    assert "its dtype U8 is no name of a type" in checkpoint("verify", file, status=1)
    strings = content.index(b"abcd")
    file.write_bytes(content[:strings - 1] + b"\0" + content[strings:])
    assert "tensor s: CRC mismatch of the string lengths" in checkpoint("verify", file, status=1)


def test_names_do_not_reach_the_terminal_raw(tmp_path):
    prefix = save(tmp_path / "m-1", {"a\x1b[31m\u00e9": numpy.arange(3.0)})
    data = tmp_path / "m-1.data-00000-of-00001"
    assert "a\\x1b[31m\u00e9" in checkpoint("inspect", prefix)
    assert list(tensors_of(prefix)) == ["a\x1b[31m\u00e9"]
    data.write_bytes(bytes(24))
    run = subprocess.run([BUILD / "bin/checkpoint", "inspect", prefix], capture_output=True)
    assert run.returncode == 1 and b"tensor a\\x1b[31m" in run.stderr and b"\x1b" not in run.stdout + run.stderr
    assert "tensor a\\x1b[31m" in checkpoint("verify", prefix, status=1)


def test_version_1(tmp_path):
    """Every type that TensorFlow saves as V1, partitioned variables, one file and shards: the bits of the V2 checkpoint of
    the same session."""
    v1, random = tf.compat.v1, numpy.random.default_rng(1)
    types = (tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.complex64, tf.complex128, tf.int64, tf.float16,
             tf.uint16)
    with tf.Graph().as_default(), v1.Session() as session:
        for kind in types:
            values = random.integers(0, 100, (3, 2)) - (0 if kind.is_unsigned else 50)
            v1.get_variable(f"v/{kind.name}", initializer=tf.cast(tf.constant(values), kind))
        v1.get_variable("bool", initializer=tf.constant([True, False, True]))
        v1.get_variable("text", initializer=tf.constant(["cat", "horse", ""]))
        v1.get_variable("empty", initializer=tf.zeros((0, 3)))
        v1.get_variable("part", (7, 3), partitioner=v1.fixed_size_partitioner(3))
        v1.train.get_or_create_global_step()
        session.run(v1.global_variables_initializer())

        def save(name, version, sharded):
            saver = v1.train.Saver(write_version=version, sharded=sharded)
            return saver.save(session, str(tmp_path / name), global_step=0, write_meta_graph=False)

        new = save("new", v1.train.SaverDef.V2, False)
        old = save("old", v1.train.SaverDef.V1, False)
        shards = save("shards", v1.train.SaverDef.V1, True).replace("?????", "00000")
    for prefix in old, shards:
        assert checkpoint("compare", prefix, new).endswith("equal: 15 tensors, 93 values, bit for bit\n")
        assert ": ok, " in checkpoint("verify", prefix)
