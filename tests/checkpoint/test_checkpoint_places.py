"""Which checkpoint a path means: prefixes, their files, directories; and what is said of files that are none."""
import gzip
import io
import json
import os
import shutil
import zipfile

import pytest

from checkpoint_files import as_json, checkpoint, run, tensor, version_1, write_bundle, write_safetensors

W = {"w": tensor("F32", [1, 2])}
COMMANDS = ["inspect", "verify", "compare", "convert"]


def words(command, path, tmp_path):
    return {"compare": ["compare", path, path], "convert": ["convert", path, tmp_path / "out"]}.get(command, [command, path])


def zipped(name):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr(name, "content")
    return out.getvalue()


KINDS = {
    "torch.pt": (zipped("archive/data.pkl"), "a PyTorch file; save its tensors with safetensors.torch.save_file(), or score it "
                                             "with 'evaluator --exec'"),
    "old.pt": (b"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20", "a Python pickle (as PyTorch before 1.6 saves); save its tensors"),
    "m.keras": (zipped("metadata.json"), "a Keras model (.keras); save its weights as safetensors"),
    "m.h5": (b"\x89HDF\r\n\x1a\n" + bytes(40), "an HDF5 file (Keras .h5); save its weights as safetensors"),
    "m.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x05" b"2.1.0", "an ONNX model; save its weights as safetensors"),
    "a.npz": (zipped("w.npy"), "a NumPy archive (.npz); numpy.load() reads it"),
    "model.tar.gz": (gzip.compress(b"x"), "a gzip file; unpack it first"),
    "m.safetensors.zst": (b"\x28\xb5\x2f\xfd" + bytes(20), "a zstd file; unpack it first"),
    "logs.tar": (bytes(257) + b"ustar\00000" + bytes(247), "a tar archive; unpack it first"),
    "events.out.tfevents.1.host": (bytes.fromhex("1800000000000000a37f4b22") + bytes(30),
                                   "an event file or another TFRecord file; 'eventlog inspect' reads event files"),
    "study.db": (b"SQLite format 3\0" + bytes(80), "an SQLite database\n"),
    "model.safetensors": (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n",
                          "a Git LFS pointer; 'git lfs pull' fetches the file itself\n"),
    "config.json": (json.dumps({"a": 1}).encode(), "JSON text\n"),
    "README.md": (b"# text\n", "a text file\n"),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_kind(tmp_path, name, command):
    content, told = KINDS[name]
    path = tmp_path / "in" / name
    path.parent.mkdir()
    path.write_bytes(content)
    said = checkpoint(*words(command, path, tmp_path), status=2)
    assert said.startswith(f"checkpoint {command}: {path}: not a checkpoint, but {told}") and said.count("\n") == 1
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("command", COMMANDS)
def test_standard_input(tmp_path, command):
    """Tensors are read in any order, and TensorFlow's are in several files."""
    said = checkpoint(*words(command, "-", tmp_path), status=2)
    assert said == f"checkpoint {command}: -: a checkpoint cannot be read from standard input; name a file or a directory\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_any_file_of_a_checkpoint_means_it(tmp_path, command):
    prefix = write_bundle(tmp_path / "ckpt/model.ckpt-7", W)
    (tmp_path / "ckpt/model.ckpt-7.meta").write_bytes(b"\n\x02ab")
    for suffix in ("", ".index", ".data-00000-of-00001", ".meta"):
        for other in tmp_path.glob("out*"):
            other.unlink()
        checkpoint(*words(command, f"{prefix}{suffix}", tmp_path))
    assert as_json("inspect", f"{prefix}.data-00000-of-00001")["path"] == str(prefix)


def test_a_name_that_is_not_there(tmp_path, monkeypatch):
    write_bundle(tmp_path / "ckpt/model.ckpt-700", W)
    monkeypatch.chdir(tmp_path)
    for command in COMMANDS:
        told = checkpoint(*words(command, "ckpt/model.ckpt-7O0", tmp_path), status=2)
        assert told == (f"checkpoint {command}: ckpt/model.ckpt-7O0: no such checkpoint (there is no ckpt/model.ckpt-7O0.index); "
                        "did you mean ckpt/model.ckpt-700?\n")
    monkeypatch.chdir(tmp_path / "ckpt")
    assert "; did you mean model.ckpt-700?" in checkpoint("inspect", "model.ckpt-70", status=2)
    assert "did you mean" not in checkpoint("inspect", "nothing/at-all", status=2)
    (tmp_path / "ckpt/checkpoint").write_text('model_checkpoint_path: "model.ckpt-700"\n')
    assert "checkpoint: not a checkpoint, but the state file of a directory; name the directory" in checkpoint(
        "inspect", "checkpoint", status=2)


def test_a_directory_of_safetensors(tmp_path):
    """As the evaluator takes it: a number at the end is the step; parts and temporary files are none."""
    for step in (9, 100, 20):
        write_safetensors(tmp_path / f"model-{step}.safetensors", W)
    write_safetensors(tmp_path / "model-00001-of-00002.safetensors", W)
    write_safetensors(tmp_path / "model-500.safetensors.tmp", W)
    report = as_json("inspect", tmp_path)
    assert report["path"] == str(tmp_path / "model-100.safetensors") and report["step"] == 100
    (tmp_path / "model-200.safetensors").write_bytes(b"\xff\0\0\0\0\0\0\0{")  # being written
    assert as_json("inspect", tmp_path)["step"] == 100
    rows = as_json("inspect", tmp_path, "--all")["checkpoints"]
    assert [(row["name"], row["step"], row["whole"]) for row in rows] == [
        ("model-9.safetensors", 9, True), ("model-20.safetensors", 20, True), ("model-100.safetensors", 100, True),
        ("model-200.safetensors", 200, False)]
    assert rows[0]["bytes"] == (tmp_path / "model-9.safetensors").stat().st_size and 0 <= rows[0]["age"] < 600
    assert as_json("verify", tmp_path, status=1)["total"]["findings"] == 1
    (tmp_path / "model-200.safetensors").unlink()
    assert len(as_json("verify", tmp_path)["checkpoints"]) == 3
    checkpoint("compare", tmp_path, tmp_path / "model-9.safetensors")
    checkpoint("convert", tmp_path, tmp_path / "tf-100")


def test_a_directory_of_both(tmp_path):
    write_bundle(tmp_path / "model.ckpt-30", W)
    write_safetensors(tmp_path / "model-20.safetensors", W)
    assert as_json("inspect", tmp_path)["path"] == str(tmp_path / "model.ckpt-30")
    write_safetensors(tmp_path / "model-40.safetensors", W)
    assert as_json("inspect", tmp_path)["path"] == str(tmp_path / "model-40.safetensors")
    assert len(as_json("inspect", "--all", tmp_path)["checkpoints"]) == 3


def test_a_directory_without_a_step(tmp_path):
    assert "no checkpoint in this directory" in checkpoint("inspect", tmp_path, status=2)
    write_safetensors(tmp_path / "model.safetensors", W)
    assert as_json("inspect", tmp_path)["path"] == str(tmp_path / "model.safetensors")
    write_safetensors(tmp_path / "other.safetensors", W)
    assert "2 safetensors files without a step in their names; name one" in checkpoint("inspect", tmp_path, status=2)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "other.safetensors").rename(tmp_path / "model-00001-of-00003.safetensors")
    assert "only parts of a checkpoint (-00001-of-...), which cannot be read together; name one part" in checkpoint("inspect", tmp_path, status=2)
    write_bundle(tmp_path / "saved/variables/variables", W)
    assert f"a SavedModel; name its checkpoint, {tmp_path}/saved/variables/variables" in checkpoint("inspect", tmp_path / "saved",
                                                                                             status=2)
    broken = write_bundle(tmp_path / "broken/model.ckpt-7", W)
    (tmp_path / "broken/model.ckpt-7.data-00000-of-00001").unlink()
    told = checkpoint("inspect", tmp_path / "broken", status=2)
    assert f"no complete checkpoint in this directory: {broken}.data-00000-of-00001: cannot open: No such file" in told


@pytest.mark.parametrize("name", ["model.ckpt-700", "model.ckpt-700-00000-of-00001"])
def test_a_directory_of_version_1(tmp_path, name):
    """A V1 checkpoint, told by the end of its only file, or its first shard, which is that of an index."""
    (tmp_path / "v1").mkdir()
    (tmp_path / "v1" / name).write_bytes(version_1())
    for path in (tmp_path / "v1", tmp_path / "v1" / name):
        assert "emb/mat" in checkpoint("inspect", path) and "step 700" in checkpoint("inspect", path)
        assert checkpoint("verify", path) == f"{tmp_path / 'v1' / name}: ok, 8 tensors, 71 B\n"
        (tmp_path / "v2").mkdir()
        checkpoint("convert", "--to", "bundle", path, tmp_path / "v2" / "model.ckpt-700")
        assert "equal: " in checkpoint("compare", path, tmp_path / "v2" / "model.ckpt-700")
        shutil.rmtree(tmp_path / "v2")
    rows = as_json("inspect", "--all", tmp_path / "v1")["checkpoints"]
    assert [(row["name"], row["step"], row["whole"]) for row in rows] == [(name, 700, True)]
    damaged = bytearray(version_1())
    damaged[300] ^= 1
    (tmp_path / "v1" / name).write_bytes(damaged)
    assert "CRC mismatch" in checkpoint("verify", tmp_path / "v1" / name, status=1)


@pytest.mark.parametrize("name", ["model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001", "model-8.safetensors", "checkpoint",
                                  "model.ckpt-9"])
def test_a_pipe_at_a_name_stops_nobody(tmp_path, name):
    write_bundle(tmp_path / "model.ckpt-7", W)
    write_bundle(tmp_path / "model.ckpt-6", W)
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    for line in (["inspect"], ["inspect", "--all"], ["verify"]):
        assert run(*line, tmp_path).returncode in (0, 1)
    run("inspect", tmp_path / name)
    assert as_json("inspect", tmp_path)["step"] == (6 if name.startswith("model.ckpt-7") else 7)


def test_the_index_alone(tmp_path):
    """--no-statistics needs no data file, of a prefix and of a directory."""
    prefix = write_bundle(tmp_path / "model.ckpt-7", {**W, "global_step": tensor("I64", 7, [])})
    wanted = as_json("inspect", prefix, "--no-statistics")
    data = tmp_path / "model.ckpt-7.data-00000-of-00001"
    for damage in (lambda: data.write_bytes(b"short"), data.unlink, data.mkdir):
        damage()
        checkpoint("inspect", prefix, status=2)
        for path in (prefix, f"{prefix}.index", tmp_path):
            assert as_json("inspect", path, "--no-statistics") == wanted
            assert "float32" in checkpoint("inspect", path, "--no-statistics")
        assert not as_json("inspect", "--all", tmp_path)["checkpoints"][0]["whole"]
    index = tmp_path / "model.ckpt-7.index"
    index.write_bytes(index.read_bytes()[:-1])
    assert "bad magic" in checkpoint("inspect", prefix, "--no-statistics", status=2)
    assert "bad magic" in checkpoint("inspect", tmp_path, "--no-statistics", status=2)


def test_directories_of_hugging_face(tmp_path):
    """checkpoint-STEP/model.safetensors, as the evaluator finds them; what else lies there is none."""
    for name in "checkpoint-4", "checkpoint-12", "checkpoint-20.tmp", "other":
        (tmp_path / name).mkdir()
        write_safetensors(tmp_path / name / "model.safetensors", W, {"format": "pt"})
    (tmp_path / "checkpoint-30").mkdir()
    newest = tmp_path / "checkpoint-12/model.safetensors"
    assert checkpoint("inspect", tmp_path).startswith(f"{newest}: safetensors file, step 12\n")
    for path in newest, newest.parent:
        assert as_json("inspect", path)["step"] == 12
    listed = as_json("inspect", "--all", tmp_path)["checkpoints"]
    assert [(row["name"], row["step"], row["whole"], row["bytes"]) for row in listed] == [
        (f"checkpoint-{step}/model.safetensors", step, True, newest.stat().st_size) for step in (4, 12)]
    assert len(as_json("verify", tmp_path)["checkpoints"]) == 2
    (tmp_path / "checkpoint-12/model.safetensors").write_bytes(newest.read_bytes()[:-1])
    assert checkpoint("inspect", tmp_path).startswith(f"{tmp_path}/checkpoint-4/model.safetensors: ")
    checkpoint("verify", tmp_path, status=1)
