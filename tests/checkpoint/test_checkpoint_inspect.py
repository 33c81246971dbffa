"""`checkpoint inspect` without a framework: bookkeeping as text, --values, --tree."""
import json
import math
import struct

import pytest

from checkpoint_files import as_json, checkpoint, run, tensor, text, write_bundle, write_safetensors


def lines(*words, status=0):
    return checkpoint(*words, status=status).splitlines()


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    top = tmp_path_factory.mktemp("inspect")
    tensors = {
        "conv1/biases": tensor("F32", [0.1, -2, 1e-10]),
        "conv1/weights": tensor("F64", range(12), [2, 2, 3]),
        "conv1/weights/Momentum": tensor("F32", [0] * 2000, [40, 50]),
        "conv2/block_1/w": tensor("I32", range(9), [9]),
        "evalboard/run_option": text("mpi"),
        "evalboard/note": tensor("U8", [7, 200, 1]),
        "evalboard/world_size": tensor("I64", 2, []),
        "global_step": tensor("I64", 7, []),
    }
    return write_bundle(top / "model.ckpt-7", tensors)


def test_bookkeeping_is_shown_by_value(training):
    out = [" ".join(line.split()) for line in lines("inspect", training)]
    assert out[0] == f"{training}: TensorFlow checkpoint, step 7" and out[1].startswith("tensor dtype shape size mean")
    assert out[6:] == ["", "bookkeeping value", "evalboard/note uint8 [3]", "evalboard/run_option mpi", "evalboard/world_size 2",
                       "global_step 7", "total: 8 tensors, 2032 values, 7.97 KiB, 0 NaN, 0 Inf"]
    rows = {row["name"]: row for row in as_json("inspect", training)["tensors"]}
    assert rows["evalboard/run_option"]["value"] == "mpi" and rows["evalboard/run_option"]["role"] == "bookkeeping"
    assert rows["conv1/weights/Momentum"]["role"] == "optimizer" and "value" not in rows["conv1/weights"]


def test_values(training):
    assert lines("inspect", training, "--values", "--tensor", "conv1/*s", "--tensor", "evalboard/run*") == [
        f"{training}: TensorFlow checkpoint, step 7",
        "conv1/biases: float32 [3], 12 B",
        "[  0.1  -2.0 1e-10]",
        "",
        "conv1/weights: float64 [2, 2, 3], 96 B",
        "[[[ 0.0  1.0  2.0]",
        "  [ 3.0  4.0  5.0]]",
        "",
        " [[ 6.0  7.0  8.0]",
        "  [ 9.0 10.0 11.0]]]",
        "",
        "evalboard/run_option: uint8 [3], 3 B",
        "mpi",
        "",
        "total: 3 tensors, 18 values, 111 B"]


def test_large_tensors_are_cut(training):
    short = "\n".join(lines("inspect", training, "--values"))
    assert "\n[[0.0 0.0 0.0 ... 0.0 0.0 0.0]\n [0.0 0.0 0.0 ... 0.0 0.0 0.0]\n [0.0 0.0 0.0 ... 0.0 0.0 0.0]\n ...\n" in short
    assert checkpoint("inspect", training, "--values", "--tensor", "*/Momentum").count("0.0") == 2000
    assert checkpoint("inspect", training, "--values", "--tensor", "*/Momentum", "--limit", 1999).count("0.0") == 36
    assert checkpoint("inspect", training, "--values", "--limit", 2000).count("\n[[0.0") == 1


@pytest.mark.parametrize("columns", [40, 60, 200])
def test_rows_fit_the_terminal(training, columns):
    out = run("inspect", training, "--values", "--tensor", "*/Momentum", columns=columns).stdout
    widths = [len(line) for line in out.splitlines()[2:-1]]
    assert columns - 4 <= max(widths) <= columns


def test_values_as_json(training, tmp_path):
    rows = {row["name"]: row for row in as_json("inspect", training, "--values")["tensors"]}
    assert rows["conv1/weights"]["values"] == [[[0, 1, 2], [3, 4, 5]], [[6, 7, 8], [9, 10, 11]]]
    assert rows["conv1/biases"]["values"] == [0.1, -2.0, 1e-10] and rows["global_step"]["values"] == 7
    assert rows["conv1/weights/Momentum"]["values"] is None
    whole = as_json("inspect", training, "--values", "--limit", 2000)["tensors"][2]["values"]
    assert len(whole) == 40 and all(row == [0.0] * 50 for row in whole)
    odd = write_safetensors(tmp_path / "odd.safetensors", {
        "bool": ("BOOL", [2], b"\1\0"), "complex": ("C64", [1], tensor("F32", [1, -2])[2]), "none": ("F32", [2, 0], b""),
        "nan": tensor("F32", [math.nan, math.inf, -math.inf]), "f4": ("F4", [2], b"\x21")})
    values = {row["name"]: row["values"] for row in as_json("inspect", odd, "--values")["tensors"]}
    assert values == {"bool": [True, False], "complex": ["1.0-2.0i"], "none": [], "nan": ["NaN", "Infinity", "-Infinity"],
                      "f4": [0.5, 1.0]}
    out = checkpoint("inspect", odd, "--values")
    assert "\n[ True False]\n" in out and "\n[ nan  inf -inf]\n" in out and "\n[]\n" in out
    assert "f4: float4_e2m1fn [2], 1 B\n[0.5 1.0]\n" in out


def test_damaged_values(tmp_path):
    prefix = write_bundle(tmp_path / "m-1", {"a": tensor("F32", [1]), "b": tensor("F32", [2])})
    data = tmp_path / "m-1.data-00000-of-00001"
    data.write_bytes(b"\0\0\0\0" + data.read_bytes()[4:])
    done = run("inspect", prefix, "--values")
    assert done.returncode == 1 and "tensor a, 4 bytes at byte 0: CRC mismatch" in done.stderr
    assert "a: float32" not in done.stdout and "b: float32 [1], 4 B\n[2.0]\n" in done.stdout
    assert [row["name"] for row in as_json("inspect", prefix, "--values", status=1)["tensors"]] == ["b"]


def test_tree(training, tmp_path):
    assert [line.rstrip() for line in lines("inspect", training, "--tree")[1:]] == [
        "scope            tensors  values      size  tensor",
        "conv1                  3    2015  7.92 KiB",
        "  biases               1       3      12 B  float32 [3]",
        "  weights              2    2012  7.91 KiB",
        "    Momentum           1    2000  7.81 KiB  float32 [40, 50]",
        "conv2/block_1/w        1       9      36 B  int32 [9]",
        "evalboard              3       7      14 B",
        "  note                 1       3       3 B  uint8 [3]",
        "  run_option           1       3       3 B  uint8 [3]",
        "  world_size           1       1       8 B  int64 []",
        "global_step            1       1       8 B  int64 []",
        "total: 8 tensors, 2032 values, 7.97 KiB"]
    assert [line.split()[0] for line in lines("inspect", training, "--tree", "--depth", 1)[2:]] == [
        "conv1", "conv2/block_1/w", "evalboard", "global_step", "total:"]
    assert [line.split()[0] for line in lines("inspect", training, "--tree", "--tensor", "conv1/*", "--no-statistics")[2:]] == [
        "conv1", "biases", "weights", "Momentum", "total:"]
    torch = write_safetensors(tmp_path / "t.safetensors", {f"layer{i}.{j}.{name}": tensor("F32", [1]) for i in (1, 2)
                                                           for j in (0, 1) for name in ("conv.weight", "bn.bias")})
    assert [line.split()[:2] for line in lines("inspect", torch, "--tree")[2:8]] == [
        ["layer1", "4"], ["0", "2"], ["bn.bias", "1"], ["conv.weight", "1"], ["1", "2"], ["bn.bias", "1"]]
    keras = write_bundle(tmp_path / "k-1", {f"model/{name}/.ATTRIBUTES/VARIABLE_VALUE": tensor("F32", [1])
                                            for name in ("a", "a-b", "a/c")})
    assert [line.split()[:2] for line in lines("inspect", keras, "--tree")[2:-1]] == [
        ["model", "3"], ["a", "2"], ["c", "1"], ["a-b", "1"]]


def test_a_tree_that_is_deep_or_long(tmp_path):
    """Names from outside make neither lines nor memory blow up."""
    deep = {"/".join(["a"] * n): tensor("F32", [1]) for n in range(1, 300)}
    out = lines("inspect", write_bundle(tmp_path / "deep-1", deep), "--tree")
    assert len(out) == 67 and out[-2].split()[:2] == ["a", "236"]
    long = write_safetensors(tmp_path / "long.safetensors", {**{f"t/{i}": tensor("F32", [1]) for i in range(3000)},
                                                             "n" * 100000: tensor("F32", [1])})
    assert len(checkpoint("inspect", long, "--tree")) < 1500000


def test_metadata(tmp_path):
    file = write_safetensors(tmp_path / "m.safetensors", {"w": tensor("F32", [1])}, {"format": "pt", "step": "700\x1b["})
    assert as_json("inspect", file)["metadata"] == {"format": "pt", "step": "700\x1b["}
    out = lines("inspect", file)
    assert [line.split() for line in out[3:-1]] == [[], ["bookkeeping", "value"], ["format", "pt"], ["step", "700\\x1b["]]
    checkpoint("convert", file, tmp_path / "again.safetensors")
    assert json.loads((tmp_path / "again.safetensors").read_bytes()[8:].split(b"}}")[0] + b"}}")["__metadata__"]["format"] == "pt"


@pytest.mark.parametrize("words, told", [
    (["--all", "--values"], "--all lists checkpoints, not tensors"), (["--tree", "--json"], "--tree prints text, not JSON"),
    (["--tree", "-o", "OUT.json"], "--tree prints text, not JSON"), (["--values", "--tree"], "--values cannot be combined"),
    (["--values", "--no-statistics"], "--values cannot be combined"), (["--limit", "5"], "--limit requires --values"),
    (["--depth", "5"], "--depth requires --tree")])
def test_contradictions(training, tmp_path, words, told):
    said = checkpoint("inspect", training, *[word.replace("OUT", str(tmp_path / "x")) for word in words], status=2)
    assert told in said and said.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_types_that_are_not_known(tmp_path):
    """Of a newer safetensors: listed, copied and compared byte by byte, and never counted as without NaN."""
    def write(path, *kinds):
        return write_safetensors(path, {f"t{i}": (kind, [2, 2], bytes([255] * 5)) for i, kind in enumerate(kinds)} |
                                 {"w": tensor("F32", [1, math.nan])})

    path = write(tmp_path / "model-1.safetensors", "MXFP5", "F128")
    document = as_json("inspect", "--values", path)
    rows = {row["name"]: row for row in document["tensors"]}
    assert (rows["t0"]["dtype"], rows["t1"]["dtype"], rows["t0"]["values"], rows["t0"]["bytes"]) == ("MXFP5", "F128", None, 5)
    assert (document["total"]["nan"], document["total"]["not_read"]) == (1, 2)
    assert "nan" not in {row["name"]: row for row in as_json("inspect", path)["tensors"]}["t0"]
    shown = lines("inspect", path)
    assert shown[2].split() == ["t0", "MXFP5", "[2,", "2]", "5", "B", "-", "-", "-", "-", "-", "not", "read"]
    assert shown[-1].endswith("1 NaN, 0 Inf; 2 tensors not read, of a type that is not known here")
    assert "ok, 3 tensors, 18 B" in checkpoint("verify", path)
    again = tmp_path / "again-1.safetensors"
    checkpoint("convert", path, again)
    assert "bit for bit" in checkpoint("compare", path, again)
    checkpoint("convert", path, tmp_path / "tf-1", status=1)  # without these two
    assert [row["name"] for row in as_json("inspect", tmp_path / "tf-1")["tensors"]] == ["w"]
    other = write(tmp_path / "other-1.safetensors", "MXFP6", "F128")
    assert "bit for bit" not in checkpoint("compare", path, other, status=1)


def test_block_scaled_types(tmp_path):
    """F8_E8M0 is a power of two, 0xff NaN; F4 (E2M1) has two values in a byte, the low half first; F6 has no order of bits
    that safetensors defines, so it is listed and not read, and not counted as free of NaN."""
    path = tmp_path / "model-1.safetensors"
    header = json.dumps({"f6": {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [0, 3]},
                         "fours": {"dtype": "F4", "shape": [2, 8], "data_offsets": [3, 11]},
                         "scales": {"dtype": "F8_E8M0", "shape": [3], "data_offsets": [11, 14]}}).encode()
    header += b" " * (-len(header) % 8)
    data = bytes(3) + bytes.fromhex("1032547698badcfe") + bytes([127, 130, 255])
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    document = as_json("inspect", "--values", path)
    rows = {row["name"]: row for row in document["tensors"]}
    fours = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    assert rows["fours"]["values"] == [fours, [-x for x in fours]] and rows["fours"]["bytes"] == 8
    assert rows["scales"]["values"] == [1.0, 8.0, "NaN"] and rows["f6"]["values"] is None
    assert document["total"]["nan"] == 1 and document["total"]["not_read"] == 1
    shown = lines("inspect", path)
    assert shown[2].split() == ["f6", "F6_E2M3", "[4]", "3", "B", "-", "-", "-", "-", "-", "not", "read"]
    assert shown[-1].endswith("1 NaN, 0 Inf; 1 tensor not read, of a type that is not known here")
    checkpoint("convert", path, tmp_path / "same-1.safetensors")
    assert (tmp_path / "same-1.safetensors").read_bytes()[-14:] == data[11:] + data[:11]  # other names of types first
    assert "bit for bit" in checkpoint("compare", path, tmp_path / "same-1.safetensors")
    checkpoint("convert", path, tmp_path / "tf-1", status=1)  # TensorFlow has float4, one in a byte, and neither of the others
    assert as_json("inspect", tmp_path / "tf-1")["tensors"][0]["dtype"] == "float4_e2m1fn"
    assert checkpoint("compare", path, tmp_path / "tf-1", "--tensor", "fours").splitlines()[-1].startswith("equal: 1 tensor")
