"""--data csv against pandas, on files that pandas and Python's csv module wrote and on hand-written ones."""
import csv
import json
import os
import pathlib
import subprocess

import pytest

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
NAMES = ["plum", 'a "quoted" one', "with, comma", "two\nlines", "é", "Apple", " blank"]


def ours(directory, part="train", how=None):
    run = subprocess.run([BUILD / "tests/peers/csv_tool", directory, part, *([how] if how else [])], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    names, *rows = run.stdout.splitlines()
    rows = [row.split() for row in rows]
    return json.loads(names), [int(row[0]) for row in rows], numpy.array([row[1:] for row in rows], "float64").astype("float32")


def same(directory, theirs, label, how=None, skip=()):
    """theirs: pandas's table of the training part."""
    names, labels, values = ours(directory, how=how)
    want = theirs[label]
    if names:
        codes, classes = pandas.factorize(want.astype(str).map(str.encode), sort=True)  # by bytes
        assert names == [name.decode() for name in classes] and labels == list(codes)
    else:
        assert labels == list(want)
    assert numpy.array_equal(values, theirs.drop(columns=[label, *skip]).to_numpy("float64").astype("float32"))


def table(count=50):
    random = numpy.random.default_rng(3)
    values = random.normal(size=(count, 4)) * 10.0 ** random.integers(-30, 30, (count, 4))
    frame = pandas.DataFrame(values, columns=["a", "b c", 'd"e', "f,g"])
    frame.insert(2, "label", [NAMES[i] for i in random.integers(0, len(NAMES), count)])
    return frame


@pytest.mark.parametrize("how, keywords", [
    (None, {}),
    ("separator=semicolon", {"sep": ";"}),
    ("separator=tab", {"sep": "\t"}),
    ("label=3,header=no", {"header": False}),
    (None, {"lineterminator": "\r\n", "quoting": csv.QUOTE_ALL}),
    (None, {"encoding": "utf-8-sig"}),
    ("label=label,skip=a,skip=f", {"columns": ["label", "a", "b c", "f,g"]}),
])
def test_written_by_pandas(tmp_path, how, keywords):
    frame = table()
    if how and "skip" in how:  # a comma ends a name in the option, so the column gets another one
        frame = frame.rename(columns={"f,g": "f"})
        keywords = {"columns": ["label", "a", "b c", "f"]}
    frame.to_csv(tmp_path / "train.csv", index=False, **keywords)
    skip = ("a", "f") if how and "skip" in how else ()
    same(tmp_path, frame[keywords["columns"]] if "columns" in keywords else frame, "label", how, skip)


def test_hand_written(tmp_path):
    text = 'x,"y\n z",label\r\n\r\n 1.5 ,+2e3,0\n"3",\t-.5,2\r\n1e-46,0.1,1\n123456789012345678901234567890,7.,1'
    (tmp_path / "train.csv").write_bytes(text.encode())
    same(tmp_path, pandas.read_csv(tmp_path / "train.csv"), "label")


def test_parts(tmp_path):
    """Classes of the test part are the training part's; a header may be missing in it."""
    frame = table(80)
    frame[:60].to_csv(tmp_path / "train.csv", index=False)
    frame[60:].to_csv(tmp_path / "test.csv", index=False, header=False)
    names, labels, values = ours(tmp_path, "test")
    assert [names[k] for k in labels] == list(frame["label"][60:])
    assert numpy.array_equal(values, frame[60:].drop(columns="label").to_numpy().astype("float32"))
