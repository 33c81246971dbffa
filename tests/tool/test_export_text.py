"""Odd tags through every text format: what Python's csv and json write and read, and Prometheus' labels."""
import csv
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess

import pytest

from checksum import masked_crc32c

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
TAGS = ["", ",", '"', 'a "b", c', "line\nend", "tab\there", "back\\slash", "cr\rhere", "crlf\r\n", "\x01\x1f\x7f",
        "\u2028", "größe", "😀", "NA", "null", "nan", "=1+1", "+1", "-1", "@x", "'", "a b", "run", "step", "wall_time",
        "tag:run", "/", "{}", "\ufeff", "\ufffe", "%s%n"]


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def event(step, tag, x):
    value = field(1, tag) + b"\x15" + struct.pack("<f", x)
    data = b"\x09" + struct.pack("<d", 1700000000 + step) + b"\x10" + varint(step) + field(5, field(1, value))
    length = struct.pack("<Q", len(data))
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def write_log(path, tags):
    path.mkdir(parents=True)
    with open(path / "events.out.tfevents.1700000000.host.1.0", "wb") as f:
        for step, tag in enumerate(tags):
            f.write(event(step + 1, tag, step + 0.5))
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return write_log(tmp_path_factory.mktemp("odd") / "a run, with \"quotes\"", [t.encode() for t in TAGS]).parent


RUN = 'a run, with "quotes"'
POINTS = sorted(((tag, step + 1, step + 0.5) for step, tag in enumerate(TAGS)), key=lambda p: p[0].encode())


def export(log, *arguments, status=0):
    done = subprocess.run([TOOL, "export", log, *arguments], capture_output=True)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def test_csv(log):
    rows = [["run", "tag", "step", "value", "wall_time"],
            *([RUN, tag, str(step), repr(x), repr(1700000000.0 + step)] for tag, step, x in POINTS)]
    out = io.StringIO(newline="")
    csv.writer(out).writerows(rows)
    assert export(log, "--crlf") == out.getvalue()  # byte by byte what Python writes
    assert list(csv.reader(io.StringIO(export(log), newline=""))) == rows


def test_gzip(log, tmp_path):
    """Python unpacks every level; the header has neither a name nor a time, so equal logs give equal files."""
    packed = {}
    for level in ("1", "5", "9"):
        export(log, "-f", "-o", tmp_path / "x.csv.gz", "--gzip-level", level)
        packed[level] = (tmp_path / "x.csv.gz").read_bytes()
        assert gzip.decompress(packed[level]).decode() == export(log)
        assert packed[level][:8] == bytes.fromhex("1f8b080000000000")
    export(log, "-f", "-o", tmp_path / "x.csv.gz")
    assert (tmp_path / "x.csv.gz").read_bytes() == packed["1"]
    for file, level in (("x.csv", "1"), ("y.csv.gz", "0"), ("y.csv.gz", "10")):
        export(log, "-f", "-o", tmp_path / file, "--gzip-level", level, status=2)
        assert not (tmp_path / file).exists()


def test_tsv(log):
    lines = export(log, "--tsv").split("\n")
    assert lines[-1] == "" and len(lines) == len(POINTS) + 2
    for line, (tag, step, _) in zip(lines[1:], POINTS):
        fields = [re.sub(r"\\(.)", lambda m: {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}[m[1]], f)
                  for f in line.split("\t")]
        assert fields[:3] == [RUN, tag, str(step)]


def test_wide(log):
    rows = list(csv.reader(io.StringIO(export(log, "--format=wide"), newline="")))
    taken = {"run": "tag:run", "step": "tag:step", "wall_time": "tag:wall_time"}
    assert rows[0] == ["run", "step", *(taken.get(tag, tag) for tag, _, _ in POINTS)]
    assert len(rows) == len(POINTS) + 1 and all(len(r) == len(rows[0]) for r in rows)


def test_json(log):
    lines = export(log, "--format=jsonl").split("\n")
    assert lines.pop() == "" and len(lines) == len(POINTS)
    for line, (tag, step, x) in zip(lines, POINTS):
        point = {"run": RUN, "tag": tag, "step": step, "wall_time": 1700000000.0 + step, "value": x}
        assert json.loads(line) == point
        # Python escapes no byte more or less, but for DEL, which must not reach a terminal.
        assert line == json.dumps(point, ensure_ascii=False, separators=(",", ":")).replace("\x7f", "\\u007f")
    assert json.loads(export(log, "--format=json")) == [json.loads(line) for line in lines]
    if jq := shutil.which("jq"):
        subprocess.run([jq, "-e", ".tag"], input="\n".join(lines), text=True, check=True, stdout=subprocess.DEVNULL)


def test_ascii_json(log):
    lines = export(log, "--format=jsonl-series").split("\n")
    assert lines.pop() == "" and len(lines) == len(POINTS)
    for line, (tag, step, x) in zip(lines, POINTS):
        series = {"points": {"steps": [step], "values": [x], "wall_times": [1700000000.0 + step]}, "run": RUN,
                  "summary_metadata": "", "tag": tag}
        assert line == json.dumps(series, sort_keys=True)
    for tag in "größe", "😀", "cr\rhere":
        (_, step, x), = (p for p in POINTS if p[0] == tag)
        body = export(log, "--format=tb-json", "--multirun", f"--tag={tag}")
        assert body == json.dumps({RUN: [[1700000000.0 + step, step, x]]})
    done = subprocess.run([TOOL, "tags", log, "--format=tb-json"], capture_output=True, check=True).stdout.decode()
    assert done == json.dumps({RUN: {tag: {"displayName": "", "description": ""} for tag, _, _ in POINTS}})


def test_prometheus(log, tmp_path):
    export(log, "--format=prom", "-o", tmp_path / "x.prom")
    lines = (tmp_path / "x.prom").read_bytes().decode().split("\n")
    samples = [line for line in lines if line.startswith("tb_scalar{")]
    for line, (tag, _, x) in zip(samples, POINTS):
        escaped = tag.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        assert line == 'tb_scalar{run="a run, with \\"quotes\\"",tag="%s"} %r' % (escaped, x)
    assert len(samples) == len(POINTS)


def test_what_is_not_utf8(tmp_path):
    """Each bad byte is U+FFFD, once told a run; two tags that fall together stay two series."""
    tags = [b"a\xff", b"a\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"ok", b"\xe2\x82"]
    write_log(tmp_path / "log", tags)
    shown = [t.decode(errors="replace") if t not in (b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82")
             else "\ufffd" * len(t) for t in sorted(tags)]
    done = subprocess.run([TOOL, "export", tmp_path / "log"], capture_output=True)
    assert [r[1] for r in csv.reader(io.StringIO(done.stdout.decode()))][1:] == shown
    assert done.stderr.decode().count("not UTF-8") == 1 and done.returncode == 0
    assert [json.loads(x)["tag"] for x in export(tmp_path / "log", "--format=jsonl-series").splitlines()] == shown
    export(tmp_path / "log", "--format=prom", "-o", tmp_path / "x.prom")
    assert (tmp_path / "x.prom").read_bytes().decode().count("\ufffd") == 4 * sum(s.count("\ufffd") for s in shown)
    export(tmp_path / "log", "--format=tb-csv", "-o", f"{tmp_path}/d/")
    assert len(os.listdir(tmp_path / "d")) == len(tags)
    export(tmp_path / "log", "--format=sqlite", "-o", tmp_path / "x.db")
    assert len(list(csv.reader(io.StringIO(export(tmp_path / "log", "--format=reduce"))))[0]) == 2 * len(tags) + 1


def test_nul_in_a_tag(tmp_path):
    write_log(tmp_path / "log", [b"a\0b", b"a", b"a\0c"])
    assert [r.split(",")[1] for r in export(tmp_path / "log").splitlines()[1:]] == ["a", "a\0b", "a\0c"]
    lines = export(tmp_path / "log", "--format=jsonl").splitlines()
    assert [json.loads(x)["tag"] for x in lines] == ["a", "a\0b", "a\0c"]
