"""What `checkpoint` says of its own accord: a step that the name does not have, a state file that means something else."""
import pytest

from checkpoint_files import as_json, checkpoint, run, tensor, write_bundle, write_safetensors


def told(*words, status=0):
    done = run(*words)
    assert done.returncode == status, done
    return done.stderr


def step(n):
    return {"w": tensor("F32", [1, 2]), "global_step": tensor("I64", n, [])}


def test_a_step_that_differs_from_the_name(tmp_path):
    prefix = write_bundle(tmp_path / "model.ckpt-700", step(800))
    sentence = f"{prefix}: its name says step 700, but global_step is 800\n"
    assert told("inspect", prefix) == "checkpoint inspect: " + sentence
    assert as_json("inspect", prefix)["step"] == 800
    assert told("compare", prefix, prefix) == 2 * ("checkpoint compare: " + sentence)
    assert told("convert", prefix, tmp_path / "copy-800") == "checkpoint convert: " + sentence
    assert checkpoint("verify", prefix).startswith("note: " + sentence)
    assert as_json("verify", prefix)["checkpoints"][0]["notes"] == [sentence.rstrip()]
    assert told("inspect", tmp_path / "copy-800") == "" and "note" not in checkpoint("verify", tmp_path / "copy-800")
    assert told("inspect", prefix, "--no-statistics") == ""  # which reads no tensor
    nameless = write_bundle(tmp_path / "model", step(5))
    assert told("inspect", nameless) == "" and as_json("inspect", nameless)["step"] == 5


def test_a_step_of_safetensors(tmp_path):
    file = write_safetensors(tmp_path / "model-700.safetensors", step(800))
    assert told("inspect", file).endswith("model-700.safetensors: its name says step 700, but global_step is 800\n")
    assert "note: " in checkpoint("verify", file) and as_json("inspect", file)["step"] == 800
    file = write_safetensors(tmp_path / "model.safetensors", {"w": tensor("F32", [1])}, {"step": "41"})
    assert told("inspect", file) == "" and as_json("inspect", file)["step"] == 41


def test_a_step_that_cannot_be_read(tmp_path):
    prefix = write_bundle(tmp_path / "model.ckpt-7", {"global_step": tensor("I64", 7, []), "w": tensor("F32", [1])})
    data = tmp_path / "model.ckpt-7.data-00000-of-00001"
    data.write_bytes(b"\x08" + data.read_bytes()[1:])
    said = told("inspect", prefix, status=1)
    assert said.count("tensor global_step, 8 bytes at byte 0: CRC mismatch") == 2  # of the step, and of the tensor
    assert "CRC mismatch" in told("inspect", prefix, "--tensor", "w") and as_json("inspect", prefix, "--tensor", "w")["step"] == 7
    assert as_json("verify", prefix, status=1)["total"]["findings"] == 1


@pytest.fixture
def directory(tmp_path):
    for number in (5, 7):
        write_bundle(tmp_path / f"ckpt/m-{number}", step(number))
    write_bundle(tmp_path / "other/m-7", step(7))
    return tmp_path / "ckpt"


@pytest.mark.parametrize("path, sentence", [
    ("TOP/other/m-7", "names TOP/other/m-7, which is outside this directory; using m-7"),
    ("../other/m-7", "names ../other/m-7, which is outside this directory; using m-7"),
    ("m-9", "names m-9, which is not here; using m-7"), ("/gone/m-9", "names /gone/m-9, which is not here; using m-7"),
    ("/gone/m-5", None), ("m-5", None), ("../ckpt/m-5", None)])
def test_a_state_file_that_leads_elsewhere(directory, path, sentence):
    path, sentence = [text and text.replace("TOP", str(directory.parent)) for text in (path, sentence)]
    (directory / "checkpoint").write_text(f'model_checkpoint_path: "{path}"\nall_model_checkpoint_paths: "{path}"\n')
    assert told("inspect", directory) == (f"checkpoint inspect: {directory}/checkpoint: {sentence}\n" if sentence else "")
    assert as_json("inspect", directory)["step"] == (7 if sentence else 5)
    outside = sentence and "outside" in sentence
    said = as_json("verify", directory, status=1 if sentence and not outside else 0)["checkpoints"][-1]
    assert said["notes"] == ([f"{directory}/checkpoint: {path} is outside {directory}"] if outside else [])


def test_a_state_file_that_is_not_understood(directory):
    (directory / "checkpoint").write_text('model_checkpoint_path: m-5\n')
    assert "checkpoint: cannot be parsed (line 1, column 24: expected a path in quotes); using m-7" in told("inspect", directory)
    (directory / "checkpoint").write_text('model_checkpoint_path: "m-5"\n')
    (directory / "m-5.index").write_bytes(b"cut")
    assert "m-5.index: too short: 3 bytes, but an index has at least 48; using m-7\n" in told("inspect", directory)


def test_control_characters_of_file_names(tmp_path):
    prefix = write_bundle(tmp_path / "a\x1b[31m-7", step(8))
    for words in (["inspect", prefix], ["inspect", tmp_path], ["inspect", "--all", tmp_path], ["inspect", prefix, "--values"],
                  ["inspect", prefix, "--tree"], ["verify", tmp_path], ["compare", prefix, prefix], ["convert", prefix, tmp_path / "c-8"],
                  ["convert", "-f", tmp_path / "c-8", prefix], ["inspect", f"{prefix}x"]):
        done = run(*words)
        assert "\x1b" not in done.stdout + done.stderr and "\\x1b[31m" in done.stdout + done.stderr
