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
    assert "a slice of emb/mat is in no variable's list" in checkpoint("verify", prefix, status=1)
    done = run("convert", prefix, f"{tmp_path}/{to}")
    assert done.returncode == 1
    assert done.stderr == f"checkpoint convert: {prefix}: a slice of emb/mat is left out: it is in no variable's list\n"
    assert ": 1 tensor" in done.stdout
    done = run("convert", "-f", prefix, f"{tmp_path}/{to}", "--tensor", "w")
    assert done.returncode == 0 and done.stderr == ""


@pytest.mark.parametrize("to", ["copy-1", "copy.safetensors", "arrays/"])
def test_strings_in_slices(tmp_path, to):
    prefix = sliced(tmp_path / "m-1", True, 7, bytes(8))
    done = run("convert", prefix, f"{tmp_path}/{to}")
    assert done.returncode == 1
    assert done.stderr == f"checkpoint convert: {prefix}: tensor emb/mat is left out: strings in slices are not read\n"
