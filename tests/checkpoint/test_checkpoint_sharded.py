"""Safetensors in parts, with Hugging Face's index beside them: read as one checkpoint; what does not agree is named."""
import json
import os

import pytest

from checkpoint_files import as_json, checkpoint, run, tensor, write_safetensors

INDEX = "model.safetensors.index.json"
ONE, TWO, THREE = (f"model-0000{i}-of-00003.safetensors" for i in (1, 2, 3))
TENSORS = {"w": tensor("F32", [1, 2, 3, 4], [2, 2]), "b": tensor("F32", [5, 6]), "empty": tensor("F32", [], [0]),
           "step": tensor("I64", 9, []), "s": tensor("F32", 7, [])}
PARTS = {ONE: ["w"], TWO: ["b", "empty"], THREE: ["step", "s"]}


def write_index(directory, places, total=36, **members):
    (directory / INDEX).write_text(json.dumps({"metadata": {"total_size": total}, "weight_map": places, **members}, indent=2) + "\n")
    return directory / INDEX


def write(directory, parts=PARTS):
    """The checkpoint of TENSORS, as the Trainer saves it."""
    for part, names in parts.items():
        write_safetensors(directory / part, {name: TENSORS[name] for name in names}, {"format": "pt"})
    return write_index(directory, {name: part for part, names in parts.items() for name in names})


@pytest.fixture
def index(tmp_path):
    return write(tmp_path / "checkpoint-9")


def verify(index, status=1):
    said = as_json("verify", index, status=status)["checkpoints"]
    assert [one["path"] for one in said] == [str(index)]
    return said[0]["findings"]


def test_one_checkpoint(tmp_path, index):
    single = write_safetensors(tmp_path / "single-9.safetensors", TENSORS, {"format": "pt"})
    wanted = as_json("inspect", single, "--values")
    where = {"w": (0, 0), "b": (1, 0), "empty": (1, 8), "step": (2, 0), "s": (2, 8)}
    for path in index, index.parent, f"{index.parent}/":
        got = as_json("inspect", path, "--values")
        assert (got["path"], got["step"], got["shards"], got["format"]) == (str(index), 9, 3, "safetensors")
        assert {t["name"]: (t.pop("shard"), t.pop("offset")) for t in got["tensors"]} == where
        assert got["tensors"] == [{k: v for k, v in t.items() if k not in ("shard", "offset")} for t in wanted["tensors"]]
        assert (got["metadata"], got["total"]) == (wanted["metadata"], wanted["total"]) == ({"format": "pt"}, got["total"])
        assert checkpoint("verify", path) == f"{index}: ok, 5 tensors, 36 B\n"
        assert "equal: 4 tensors" in checkpoint("compare", path, single)
    assert checkpoint("inspect", index).startswith(f"{index}: safetensors in parts, step 9\n")
    single.unlink()
    assert as_json("inspect", tmp_path)["path"] == str(index)
    row, = as_json("inspect", "--all", tmp_path)["checkpoints"]
    assert (row["name"], row["step"], row["whole"]) == (f"checkpoint-9/{INDEX}", 9, True)
    assert row["bytes"] == sum(p.stat().st_size for p in index.parent.iterdir())


@pytest.mark.parametrize("form", ["out.safetensors", "bundle-9", "arrays/"])
def test_convert(tmp_path, index, form):
    single = write_safetensors(tmp_path / "single-9.safetensors", TENSORS, {"format": "pt"})
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    checkpoint("convert", index.parent, f"{tmp_path}/a/{form}")
    checkpoint("convert", single, f"{tmp_path}/b/{form}")
    made = [p for p in (tmp_path / "a").rglob("*") if p.is_file()]
    assert made and all(p.read_bytes() == (tmp_path / "b" / p.relative_to(tmp_path / "a")).read_bytes() for p in made)


def changed(index, part, add=(), drop=()):
    """Writes a part with other tensors."""
    names = [name for name in PARTS[part] if name not in drop]
    write_safetensors(index.parent / part, {**{name: TENSORS[name] for name in names}, **dict(add)}, {"format": "pt"})


def places(**changes):
    all_of_them = {name: part for part, names in PARTS.items() for name in names}
    return {name: part for name, part in {**all_of_them, **changes}.items() if part is not None}


# What is done to it, what verify says, whether it can still be read.
DAMAGE = {
    "a part is missing": (lambda i: (i.parent / TWO).unlink(), f"its part {TWO} is missing", False),
    "a part is cut": (lambda i: (i.parent / TWO).write_bytes((i.parent / TWO).read_bytes()[:-1]), TWO, False),
    "a part is a directory": (lambda i: ((i.parent / TWO).unlink(), (i.parent / TWO).mkdir()), TWO, False),
    "a part lacks a tensor": (lambda i: changed(i, TWO, drop=["b"]), f"tensor b is not in its part {TWO}", False),
    "a part has one more": (lambda i: changed(i, ONE, {"more": tensor("F32", 1)}), f"tensor more is in {ONE}, but not in the index", True),
    "the index lacks one": (lambda i: write_index(i.parent, places(b=None)), f"tensor b is in {TWO}, but not in the index", True),
    "in two parts": (lambda i: changed(i, THREE, {"w": TENSORS["w"]}), f"tensor w is in two parts, {ONE} and {THREE}", True),
    "in the other part": (lambda i: write_index(i.parent, places(b=ONE)), f"tensor b is in {TWO}, not in {ONE} as the index says", False),
    "total_size is small": (lambda i: write_index(i.parent, places(), 35), "total_size is 35, but its tensors have 36 bytes", True),
    "total_size is a text": (lambda i: write_index(i.parent, places(), "36"), "total_size is not a number of bytes", True),
    "total_size is negative": (lambda i: write_index(i.parent, places(), -36), "total_size is not a number of bytes", True),
    "an absolute part": (lambda i: write_index(i.parent, places(w=str(i.parent / ONE))), f'tensor w: "{{}}/{ONE}" is not the name of a file beside', False),
    "a part above": (lambda i: write_index(i.parent, places(w=f"../checkpoint-9/{ONE}")), f'tensor w: "../checkpoint-9/{ONE}" is not the', False),
    "a part below": (lambda i: write_index(i.parent, places(w=f"x/{ONE}")), f'"x/{ONE}" is not the name of a file beside', False),
    "a part is ..": (lambda i: write_index(i.parent, places(w="..")), '".." is not the name of a file beside', False),
    "a part is .": (lambda i: write_index(i.parent, places(w=".")), '"." is not the name of a file beside', False),
    "a part has no name": (lambda i: write_index(i.parent, places(w="")), '"" is not the name of a file beside', False),
    "a part with NUL": (lambda i: write_index(i.parent, places(w=f"{ONE}\0x")), "is not the name of a file beside", False),
    "a part is the index": (lambda i: write_index(i.parent, places(w=INDEX)), f"names {INDEX}, an index, as a part", False),
    "no weight_map": (lambda i: i.write_text('{"metadata": {"total_size": 3}}'), "no weight_map", False),
    "an empty one": (lambda i: write_index(i.parent, {}, 0), "no weight_map", False),
    "numbers in it": (lambda i: write_index(i.parent, {"w": 1}), "weight_map may hold only strings", False),
    "not JSON": (lambda i: i.write_text('{"weight_map": {"w": '), "invalid index at byte 15: this value does not end", False),
    "a tensor twice": (lambda i: i.write_text('{"weight_map":{"w":"%s","w":"%s"}}' % (ONE, TWO)), "key w of weight_map is repeated", False),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_what_does_not_agree(tmp_path, index, name):
    damage, said, readable = DAMAGE[name]
    damage(index)
    findings = verify(index)
    assert len(findings) == 1 and said.format(index.parent) in findings[0] and str(index.parent) in findings[0]
    text = checkpoint("verify", index.parent, status=1)
    assert text.startswith(findings[0] + "\n") and text.count("\n") == 2
    row, = as_json("inspect", "--all", tmp_path)["checkpoints"]
    assert row["whole"] == readable
    if readable:
        checkpoint("inspect", index.parent)
    else:
        told = checkpoint("inspect", index, status=2)
        assert said.format(index.parent) in told and told.count("\n") == 1
        assert said.format(index.parent) in checkpoint("inspect", tmp_path, status=2)


def test_all_findings_are_named(index):
    """Each once, also those behind the first."""
    (index.parent / ONE).unlink()
    changed(index, TWO, {"more": tensor("F32", 1)}, drop=["b"])
    changed(index, THREE, {"empty": TENSORS["empty"]})
    findings = "\n".join(verify(index))
    assert [findings.count(text) for text in ("is missing", "tensor more is in", "tensor b is not in its part", "is in two parts")] == [1] * 4
    assert findings.count("\n") == 3


@pytest.mark.parametrize("text", ['{"weight_map": %s}', '{"metadata": {}, "weight_map": %s}', '{"metadata": null, "weight_map": %s}',
                                  '{"metadata": {"total_size": 36.0, "total_parameters": 9}, "weight_map": %s}',
                                  ' \n{"other": [{"a": "}"}], "weight_map": %s, "x": 1}\n\n'])
def test_forms_of_an_index(index, text):
    index.write_text(text % json.dumps(places()))
    assert checkpoint("verify", index) == f"{index}: ok, 5 tensors, 36 B\n"


def test_other_names(tmp_path):
    """A flat checkpoint in a directory of its own, under any name; a link to a part, as in Hugging Face's cache."""
    write(tmp_path / "cache")
    flat = tmp_path / "flat"
    flat.mkdir()
    for i, part in enumerate(PARTS):
        (flat / f"part-{i}.safetensors").symlink_to(tmp_path / "cache" / part)
    index = write_index(flat, {name: f"part-{i}.safetensors" for i, part in enumerate(PARTS) for name in PARTS[part]})
    index = index.rename(flat / "text_encoder-700.safetensors.index.fp16.json")
    for path in flat, index:
        got = as_json("inspect", path)
        assert (got["path"], len(got["tensors"])) == (str(index), 5)
        checkpoint("verify", path)
    assert as_json("inspect", "--all", flat)["checkpoints"] == []  # parts are no checkpoints of their own
    index = index.rename(flat / "model-700.safetensors.index.json")
    assert as_json("inspect", flat)["step"] == 700
    checkpoint("inspect", flat / "part-1.safetensors")  # by its name it can be seen


def test_beside_the_single_file(tmp_path, index):
    """Hugging Face loads model.safetensors where both are there."""
    write_safetensors(index.parent / "model.safetensors", {"w": TENSORS["w"]})
    for path in tmp_path, index.parent:
        assert as_json("inspect", path)["path"] == str(index.parent / "model.safetensors")
    assert len(as_json("inspect", index)["tensors"]) == 5


def test_parts_without_their_index(index):
    index.unlink()
    assert f"which cannot be read together; name one part, or add their index, {INDEX}\n" in checkpoint("inspect", index.parent, status=2)


@pytest.mark.parametrize("name", [INDEX, ONE])
def test_a_pipe_stops_nobody(tmp_path, index, name):
    (index.parent / name).unlink()
    os.mkfifo(index.parent / name)
    for line in (["inspect"], ["inspect", "--all"], ["verify"]):
        for path in tmp_path, index.parent, index:
            assert run(*line, path).returncode in (0, 1, 2)
