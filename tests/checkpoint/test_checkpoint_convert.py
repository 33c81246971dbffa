"""`checkpoint convert` without a framework: what it leaves out is told, and makes the exit status 1."""
import pytest

from checkpoint_files import checkpoint, run, tensor, write_bundle, write_index, write_safetensors
from checksum import masked_crc32c

W = {"w": tensor("F32", [1, 2])}


def entry(dtype, shape, offset, content, slices=b""):
    """A tensor's entry of an index."""
    dims = b"".join(b"\x12\x02\x08" + bytes([size]) for size in shape)
    place = (b"\x20" + bytes([offset]) if offset else b"") + b"\x28" + bytes([len(content)]) + b"\x35" + masked_crc32c(content)
    return b"\x08" + bytes([dtype]) + b"\x12" + bytes([len(dims)]) + dims + (slices or place)


# Rows 0 and 1 of a slice of two columns, and what lists it in a variable of [2, 2].
KEY = b"\0emb/mat\0\1\1\2\x80\x82\x80\x7f"
LIST = b"\x3a\x08\x0a\x04\x08\x00\x10\x02\x0a\x00"


def sliced(prefix, listed, dtype=1, content=bytes(16)):
    entries = {b"": bytes.fromhex("08011a020801"), KEY: entry(dtype, [2, 2], 4, content)}
    if listed:
        entries[b"emb/mat"] = entry(dtype, [2, 2], 0, b"", LIST)
    entries[b"w"] = entry(1, [1], 0, bytes(4))
    write_index(prefix.parent / f"{prefix.name}.index", entries)
    (prefix.parent / f"{prefix.name}.data-00000-of-00001").write_bytes(bytes(4) + content)
    return prefix


@pytest.mark.parametrize("to", ["copy-1", "copy.safetensors", "arrays/"])
def test_a_slice_that_no_variable_lists(tmp_path, to):
    prefix = sliced(tmp_path / "m-1", True)
    checkpoint("convert", prefix, f"{tmp_path}/whole-{to}")
    sliced(prefix, False)
    assert "no variable lists this slice of emb/mat" in checkpoint("verify", prefix, status=1)
    done = run("convert", prefix, f"{tmp_path}/{to}")
    assert done.returncode == 1
    assert done.stderr == f"checkpoint convert: {prefix}: a slice of emb/mat is left out: no variable lists it\n"
    assert ": 1 tensor" in done.stdout
    done = run("convert", "-f", prefix, f"{tmp_path}/{to}", "--tensor", "w")
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("to", ["copy-1", "copy.safetensors", "arrays/"])
def test_strings_in_slices(tmp_path, to):
    prefix = sliced(tmp_path / "m-1", True, 7, bytes(8))
    done = run("convert", prefix, f"{tmp_path}/{to}")
    assert done.returncode == 1
    assert done.stderr == f"checkpoint convert: {prefix}: tensor emb/mat is left out: strings in slices are not supported\n"


def string_tensor(strings):
    lengths = b"".join(bytes([len(text)]) for text in strings)
    check = masked_crc32c(b"".join(len(text).to_bytes(4, "little") for text in strings))
    return lengths + check + b"".join(strings)


@pytest.mark.parametrize("strings, told", [([b"cat", b"a\0b"], None), ([b"cat", b"", b"\0"], "1 of 3"), ([b"x\0\0", b"y\0"], "2 of 2")])
def test_strings_that_numpy_cuts(tmp_path, strings, told):
    words = ("U8", [len(string_tensor(strings))], string_tensor(strings))
    file = write_safetensors(tmp_path / "m.safetensors", {"words": words}, {"tensorflow.dtype/words": f"string[{len(strings)}]"})
    done = run("convert", file, f"{tmp_path}/arrays/")
    assert done.returncode == (1 if told else 0)
    assert done.stderr == (f"checkpoint convert: {file}: tensor words: {told} strings end in zero bytes, which NumPy drops; convert to "
                           "safetensors to keep them\n" if told else "")
    width = max(map(len, strings))
    content = (tmp_path / "arrays/words.npy").read_bytes()
    assert f"'|S{width}'".encode() in content and content.endswith(b"".join(text.ljust(width, b"\0") for text in strings))
    checkpoint("convert", file, tmp_path / "copy-1")
    checkpoint("compare", file, tmp_path / "copy-1")


@pytest.mark.parametrize("name, ending", [("model.pt", ".pt"), ("w.npy", ".npy"), ("m.H5", ".H5"), ("out.index", ".index")])
def test_destinations_of_other_formats(tmp_path, name, ending):
    source = write_bundle(tmp_path / "in/m-1", W)
    told = checkpoint("convert", source, tmp_path / name, status=2)
    assert f"{name}: unknown extension '{ending}'; use NAME.safetensors, DIR/" in told
    assert "cannot write a checkpoint to standard output" in checkpoint("convert", source, "-", status=2)
    assert [p.name for p in tmp_path.iterdir()] == ["in"]
    checkpoint("convert", "--to", "bundle", source, tmp_path / name)
    assert (tmp_path / f"{name}.index").exists()


@pytest.mark.parametrize("name", ["model.ckpt-700", "v1.2", "plain", "model.SAFETENSORS", "model.ckpt"])
def test_destinations(tmp_path, name):
    source = write_bundle(tmp_path / "in/m-1", W)
    assert checkpoint("convert", source, tmp_path / name) == f"{tmp_path / name}: 1 tensor, 8 B, from {source}\n"
    assert (tmp_path / name).exists() == name.endswith("SAFETENSORS") and "w" in checkpoint("inspect", tmp_path / name)
