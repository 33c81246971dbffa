"""The program dataset: made captions are what their seed says, vocabularies are im2txt's, features are of their images."""
import collections
import json
import re

import pytest

import captions
from captions import dataset, make_captions
from checkpoint_files import checkpoint


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return captions.make(tmp_path_factory.mktemp("captions"))


def annotations(made, part):
    return json.loads((made / f"annotations/captions_{part}.json").read_text())


def test_layout(made):
    for part, count in captions.IMAGES.items():
        all_of_it = annotations(made, part)
        images = {image["id"]: image for image in all_of_it["images"]}
        assert len(images) == count and all((made / part / image["file_name"]).read_bytes()[:4] == b"\x89PNG"
                                            for image in images.values())
        of_image = collections.Counter(one["image_id"] for one in all_of_it["annotations"])
        assert of_image == {number: 5 for number in images}
        assert len({one["id"] for one in all_of_it["annotations"]}) == 5 * count
        for one in all_of_it["annotations"]:
            assert re.fullmatch(r"[A-Z][a-z, -]+\.", one["caption"]), one


def test_captions_agree(made):
    """The five sentences of an image name the same items."""
    things = "bag|t-shirt|trouser|pullover|dress|coat|sandal|shirt|sneaker|ankle boot"
    texts = collections.defaultdict(list)
    for one in annotations(made, "train")["annotations"]:
        texts[one["image_id"]].append(one["caption"].lower())
    for five in texts.values():
        named = {tuple(sorted(re.findall(rf"(?<![\w-])(?:{things})\b", text))) for text in five}
        assert len(named) == 1 and 1 <= len(named.pop()) <= 2, five
        assert len(set(five)) == 5


def test_same_seed(made, tmp_path):
    for seed in 1, 2:
        make_captions(tmp_path / f"{seed}", "--train", 60, "--val", 20, "--seed", seed)
    files = sorted(p.relative_to(made) for p in made.rglob("*") if p.is_file() and p.parts[-2] in ("annotations", "train", "val"))
    assert len(files) == 82
    assert all((made / f).read_bytes() == (tmp_path / "1" / f).read_bytes() for f in files)
    assert annotations(tmp_path / "2", "train") != annotations(made, "train")


def test_grids(tmp_path):
    make_captions(tmp_path / "one", "--train", 3, "--val", 1, "--grid", 1)
    make_captions(tmp_path / "many", "--train", 40, "--val", 1, "--grid", "3x2", "--items", 4)
    texts = {one["caption"] for one in annotations(tmp_path / "one", "train")["annotations"]}
    assert any(text.startswith("This is ") for text in texts) and not any(" at " in text for text in texts)
    image = annotations(tmp_path / "many", "train")["images"][0]
    assert (image["height"], image["width"]) == (84, 56)
    texts = {one["caption"] for one in annotations(tmp_path / "many", "train")["annotations"]}
    assert any(text.count(",") == 2 and " and " in text for text in texts) and any("middle left" in text for text in texts)


def test_vocabulary(made):
    """As im2txt counts: each sentence has <S> and </S>, and a number is a line."""
    counter = collections.Counter()
    for one in annotations(made, "train")["annotations"]:
        counter.update(["<S>", *re.findall(r"[a-z-]+|[.,]", one["caption"].lower()), "</S>"])
    lines = [line.split() for line in (made / "word_counts.txt").read_text().splitlines()]
    assert {word: int(count) for word, count in lines} == {w: c for w, c in counter.items() if c >= 4}
    assert [int(count) for _, count in lines] == sorted((int(count) for _, count in lines), reverse=True)


def test_vocabulary_of_texts(tmp_path):
    (tmp_path / "a.txt").write_text("The cat. The dog\n\nthe END, don't\n")
    (tmp_path / "b.txt").write_text("cat\n")
    out, _ = dataset("vocabulary", "--min-count", 1, tmp_path / "a.txt", tmp_path / "b.txt")
    assert out == "</S> 3\n<S> 3\nthe 3\ncat 2\n, 1\n. 1\ndog 1\ndon't 1\nend 1\n".replace(
        "</S> 3\n<S> 3\nthe 3\n", "the 3\n</S> 3\n<S> 3\n")
    assert dataset("vocabulary", "--min-count", 2, tmp_path / "a.txt", tmp_path / "b.txt")[0].count("\n") == 4
    assert dataset("vocabulary", "--most", 3, "--min-count", 1, tmp_path / "a.txt")[0] == "the 3\n</S> 2\n<S> 2\n"
    (tmp_path / "c.txt").write_bytes(b"ab\n\xff\n")
    _, said = dataset("vocabulary", tmp_path / "c.txt", status=2)
    assert "c.txt: line at byte 3: byte 0: ff is not text in UTF-8" in said
    assert "has no words" in dataset("vocabulary", "/dev/null", status=2)[1]


def test_features(made):
    """Forty numbers of each image, which another checkpoint makes otherwise; ids are those of the annotations."""
    rows = json.loads(checkpoint("inspect", made / "features/val.safetensors", "--json"))["tensors"]
    assert {(row["name"], row["dtype"], tuple(row["shape"])) for row in rows} == {
        ("features", "float32", (20, 40)), ("image_id", "int64", (20,))}


def test_nothing_is_overwritten(made):
    assert "exists; make captions in another directory" in make_captions(made, status=2)[1]
    assert "--force replaces it" in dataset("vocabulary", made, status=2)[1]
    lenet = ["--model", "lenet", "--checkpoint", made.parent / "lenet/model.ckpt-100"]
    assert "--force replaces it" in dataset("encode", made, *lenet, status=2)[1]
    before = (made / "features/val.safetensors").read_bytes()
    dataset("encode", made, *lenet, "--tiles", "2x2", "--force")
    assert (made / "features/val.safetensors").read_bytes() == before


@pytest.mark.parametrize("words, want", [
    (["encode", "{made}"], "name the encoder with --model and --checkpoint"),
    (["encode", "{made}", "--model", "lenett", "--checkpoint", "x", "--force"], "did you mean lenet?"),
    (["encode", "{made}", "--model", "next_word", "--checkpoint", "x"], "reads words, not images"),
    (["encode", "{made}", "--model", "lenet", "--checkpoint", "{made}/x"], "x.index"),
    (["encode", "{made}", "--model", "mnist_lstm", "--checkpoint", "{made}/../lenet/model.ckpt-100"],
     "is not a checkpoint of model mnist_lstm"),
    (["encode", "{made}", "--model", "lenet", "--checkpoint", "x", "--tiles", "17"], "--tiles 17: must be ROWSxCOLUMNS"),
    (["vocabulary", "{made}", "{made}"], "a directory of captions must be alone"),
    (["vocabulary", "{made}/train"], "annotations: cannot list"),
])
def test_refused(made, words, want, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out, said = dataset(*(word.format(made=made) for word in words), status=2)
    assert want in said and said.count("\n") == 1 and not out
