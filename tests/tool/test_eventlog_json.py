"""What every command prints as JSON is what eventlog-json(7) lists: each member, with its type, and nothing else."""
import json
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
EVENTLOG, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
NOT_FINITE = {"NaN", "Infinity", "-Infinity"}


def sections():
    """{title: [(path, types, words)]} of the page; what `merge` and others add are sections of their own."""
    found, title = {}, None
    for line in (ROOT / "docs/man/eventlog-json.txt").read_text().splitlines():
        if line.startswith("# "):
            title = main = line[2:]
        elif added := re.match(r"`(\S+)` adds$", line):
            title = f"{main}: {added[1]}"
        elif line.startswith("With `--all`"):
            title = f"{main}: --all"
        elif row := re.match(r" {4}\.(\S+)\s+([a-z|]+)(?:\s+(.*))?$", line):
            found.setdefault(title, []).append((row[1], set(row[2].split("|")), row[3] or ""))
    return found


PAGE = sections()
REWRITING = "MERGE, SPLIT, RENAME-TAG, DROP-TAG, DOWNSAMPLE"
# The sections of the page, and calls whose documents have all of their members together. LOG has NaN and infinities, BAD
# damage and a cut end, KINDS a value of every kind.
CALLS = {
    "STATS": ["stats LOG BAD"], "STATS --DIVERGED": ["stats --diverged LOG BAD"], "TAGS": ["tags LOG KINDS"],
    "COMPARE": ["compare LOG BAD --tag l*"], "PLOT": ["plot LOG --x step,wall"],
    "INSPECT": ["inspect LOG BAD KINDS"], "VERIFY": ["verify LOG BAD"], "VERIFY --KINDS": ["verify --kinds"],
    REWRITING: ["split --by run LOG -o OUT", "rename-tag loss=x FILE --in-place"],
    f"{REWRITING}: merge": ["merge LOG --keep-runs -o OUT"], f"{REWRITING}: rename-tag": ["rename-tag loss=x LOG -o OUT"],
    f"{REWRITING}: drop-tag": ["drop-tag loss LOG -o OUT"],
    f"{REWRITING}: downsample": ["downsample --every 2 LOG -o OUT"],
    "REPAIR": ["repair BADFILE -o OUT", "repair FILE --in-place", "repair BADFILE --in-place"],
    "WRITE": ["write -d OUT --step 1 a=1"],
    "PRUNE": ["prune --fewer-than 100 --max-bytes 0 --grace 0s LOG BAD", "prune --fewer-than 4 --grace 0s --delete LOG"],
    "TAIL": ["tail LOG"],
    "TAIL: --all": ["tail --all -n -1 KINDS GRAPH"],
}


def members(value, path="", found=None):
    """{path: {type}} of all that is no object and no array; NaN as text is a number."""
    found = {} if found is None else found
    if isinstance(value, dict):
        for key, inner in value.items():
            members(inner, f"{path}.{key}" if path else key, found)
    elif isinstance(value, list):
        for inner in value:
            members(inner, f"{path}[]", found)
    else:
        kind = "null" if value is None else "boolean" if isinstance(value, bool) else \
            "number" if isinstance(value, (int, float)) or value in NOT_FINITE else "text"
        found.setdefault(path, set()).add(kind)
    return found


@pytest.fixture
def files(tmp_path, kinds):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    subprocess.run([SAMPLE, "many", tmp_path / "bad"], check=True)
    bad, = (tmp_path / "bad").rglob("*tfevents*")
    data = bytearray(bad.read_bytes())
    data[len(data) // 2] ^= 1
    bad.write_bytes(data[:-3])
    subprocess.run([SAMPLE, "restart", tmp_path / "graph"], check=True)
    file = next((tmp_path / "log").glob("*tfevents*"))
    return {"LOG": tmp_path / "log", "BAD": tmp_path / "bad", "KINDS": kinds, "GRAPH": tmp_path / "graph", "FILE": file,
            "BADFILE": bad, "OUT": tmp_path / "out"}


def test_every_section_is_tested():
    assert set(CALLS) == set(PAGE)


@pytest.mark.parametrize("title", CALLS)
def test_members(title, files):
    page = {path: types for path, types, _ in PAGE[title]}
    rows = dict(page)
    if title.startswith(REWRITING):  # the call that has them in common may add its own
        rows |= {path: types for other in PAGE if other.startswith(REWRITING) for path, types, _ in PAGE[other]}
    if title == "TAIL: --all":
        rows |= {path: types for path, types, _ in PAGE["TAIL"]}
    found = {}
    for call in CALLS[title]:
        words = call.split()
        done = subprocess.run([EVENTLOG, *[str(files.get(w, w)) for w in words], "--json"], capture_output=True, text=True)
        assert done.returncode in (0, 1) and done.stdout, done.stderr
        documents = [json.loads(line) for line in done.stdout.splitlines()] if words[0] in ("tail", "repair") else [
            json.loads(done.stdout)]
        for document in documents:
            members(document, "", found)
            if words[0] != "tail":
                assert document["version"] == 1
                words_of_type = next(words for path, _, words in PAGE[title.split(":")[0]] if path == "type")
                assert f'"{document["type"]}"' in words_of_type or document["type"] == words[0]
            elif "type" in document:
                listed = re.search(r"^    \.type +text +(\"image\".*?)^    \.bytes", (
                    ROOT / "docs/man/eventlog-json.txt").read_text(), re.M | re.S)[1]
                assert f'"{document["type"]}"' in listed
    assert {p: t - rows.get(p, set()) for p, t in found.items()} == {p: set() for p in found}  # nothing else, of those types
    assert set(page) <= set(found)  # and all of it


@pytest.mark.parametrize("words, keys", [
    (["stats", "--format=jsonl"], "STATS"), (["compare", "--format=jsonl"], "COMPARE"), (["tags", "--format=jsonl"], "TAGS"),
    (["verify", "--format=jsonl"], "VERIFY")])
def test_lines_are_the_rows(words, keys, files):
    lines = subprocess.run([EVENTLOG, *words, files["LOG"]], capture_output=True, text=True).stdout.splitlines()
    row = {path.split("[].", 1)[1] for path, _, _ in PAGE[keys] if path.startswith(("series[].", "findings[]."))}
    assert lines and all(set(json.loads(line)) == row for line in lines)
