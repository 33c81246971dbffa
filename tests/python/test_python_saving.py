"""evalboard.checkpoint.save(): what is written is read back, by the programs, too; what cannot be is refused with a sentence."""
import os

import pytest

import python_package  # noqa: F401
from checkpoint_files import as_json

numpy = pytest.importorskip("numpy")

import evalboard  # noqa: E402
from evalboard.checkpoint import load, save  # noqa: E402


def test_every_type(tmp_path):
    arrays = {f"of.{name}": numpy.arange(6).reshape(2, 3).astype(name) for name in (
        "float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8", "bool", "complex64")}
    arrays |= {"big": numpy.arange(3, dtype=">f4"), "strided": numpy.arange(12.0).reshape(3, 4)[:, ::2].T, "none": numpy.zeros((0, 3)),
               "number": 2.5, "list": [1, 2], "in \u00fcber/\"quotes\"": numpy.ones(1)}
    path = tmp_path / "made/for it/model-7.safetensors"
    save(path, arrays, {"global_step": 7, "format": "pt"})
    read = load(path)
    assert set(read) == set(arrays)
    for name, array in arrays.items():
        assert numpy.array_equal(read[name], array) and read[name].shape == numpy.shape(array), name
    assert os.listdir(path.parent) == [path.name]  # no temporary file stays
    told = {tensor["name"]: tensor["shape"] for tensor in as_json("inspect", "--no-statistics", path)["tensors"]}
    assert told["of.float32"] == [2, 3] and told["number"] == [] and len(told) == len(arrays)
    save(path, {"one": numpy.ones(2)})  # another in its place
    assert list(load(path)) == ["one"]


def test_refused(tmp_path):
    file = tmp_path / "model-1.safetensors"
    for value, sentence in ((numpy.array(["a"]), "w: has type <U1, which a safetensors file cannot hold"),
                            (numpy.ones(2, "complex128"), "w: has type complex128"), (object(), "w: cannot be saved: got a object")):
        with pytest.raises(evalboard.EventLogArgumentError, match=sentence):
            save(file, {"w": value})
    assert not file.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(evalboard.EventLogOSError, match="file/model.safetensors: cannot be written: "):
        save(tmp_path / "file/model.safetensors", {"w": 1.0})
    (tmp_path / "full.safetensors").mkdir()
    with pytest.raises(evalboard.EventLogOSError, match="full.safetensors: cannot be written: "):
        save(tmp_path / "full.safetensors", {"w": 1.0})
    assert sorted(os.listdir(tmp_path)) == ["file", "full.safetensors"]
