"""-o FILE goes by its extension, in every command of eventlog alike; what contradicts it is refused."""
import fcntl
import gzip
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
# What a command writes into a file of that extension is what it prints with these options.
REPORT = {"txt": "text", "csv": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl", "md": "md", "markdown": "md",
          "html": "html", "htm": "html"}
FORMATS = {
    "stats": REPORT, "tags": REPORT, "hparams": REPORT, "inspect": REPORT, "verify": REPORT,
    "compare": {**REPORT, "svg": "svg"},
    "export": {"csv": "csv", "json": "json", "jsonl": "jsonl", "ndjson": "jsonl"},
    "plot": {"txt": "text", "json": "json", "svg": "svg"},
}
PAIRS = [(command, extension) for command, formats in FORMATS.items() for extension in formats]


def eventlog(*words):
    # Python's readline puts COLUMNS into the C environment, where os.environ does not see it.
    return subprocess.run([TOOL, *map(str, words)], capture_output=True, timeout=600, env={**os.environ})


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    top = tmp_path_factory.mktemp("formats") / "log"
    subprocess.run([SAMPLE, "sample", top], check=True)
    return top


def refused(*words):
    done = eventlog(*words)
    told = done.stderr.decode()
    assert done.returncode == 2 and told.count("\n") == 1 and not done.stdout, told
    return told


@pytest.mark.parametrize("command, extension", PAIRS)
def test_extension(log, tmp_path, command, extension):
    named = FORMATS[command][extension]
    printed = eventlog(command, log, f"--format={named}")
    assert printed.stdout or (command, named) in (("hparams", "text"), ("hparams", "md"), ("hparams", "jsonl"))
    for name in f"x.{extension}", f"x.{extension.upper()}", f"a.b.{extension}.gz", f"x.{extension}.GZ":
        assert eventlog(command, log, "-o", tmp_path / name).returncode == printed.returncode
        data = (tmp_path / name).read_bytes()
        assert (gzip.decompress(data) if name.lower().endswith(".gz") else data) == printed.stdout, name
    assert eventlog(command, log, f"--format={named}", "-o", tmp_path / f"named.{extension}").returncode == printed.returncode
    assert eventlog(command, log, f"--format={named}", "-o", tmp_path / "other.ending").returncode == printed.returncode
    assert (tmp_path / "other.ending").read_bytes() == printed.stdout
    printed = eventlog(command, log)
    for name in "-", tmp_path / "none", tmp_path / ".csv":
        done = eventlog(command, log, "-o", name)
        assert (done.stdout if name == "-" else name.read_bytes()) == printed.stdout
    assert not pathlib.Path("-").exists()


@pytest.mark.parametrize("command", FORMATS)
def test_contradictions(log, tmp_path, command):
    told = refused(command, log, "-o", tmp_path / "x.xls")
    assert f"{tmp_path}/x.xls: unknown extension '.xls'; use one of ." in told
    assert all(f".{extension}" in told for extension in FORMATS[command])
    formats = list(FORMATS[command].values())
    for extension, named in FORMATS[command].items():
        if extension == "txt":  # a text may be in any format
            continue
        other = next(x for x in formats if x != named)
        told = refused(command, log, f"--format={other}", "-o", tmp_path / f"x.{extension}")
        assert f"the extension '.{extension}' contradicts --format={other}" in told
        if named != "json":
            assert f"--json contradicts --format={named}" in refused(command, log, "--json", f"--format={named}")
            refused(command, log, "--json", "-o", tmp_path / f"x.{extension}")
    assert "contradicts" in refused(command, log, f"--format={formats[0]}", "-o", tmp_path / "x.parquet")
    both, json_alone = eventlog(command, log, "--json", "--format=json"), eventlog(command, log, "--json")
    assert both.stdout == json_alone.stdout and both.returncode == json_alone.returncode
    assert json.loads(json_alone.stdout) is not None
    assert not list(tmp_path.iterdir())


def test_formats_of_export(log, tmp_path):
    for words, name in (["--format=wide"], "w.csv"), (["--format=tb-json", "--tag=lr"], "t.json"), (
            ["--format=jsonl-series"], "s.jsonl"), (["--tsv"], "a.tsv"), (["--tsv", "--format=wide"], "w.tsv"):
        assert eventlog("export", log, *words, "-o", tmp_path / name).returncode == 0
        assert (tmp_path / name).read_bytes() == eventlog("export", log, *words).stdout
    assert eventlog("export", log, "-o", tmp_path / "b.tsv").returncode == 0
    assert (tmp_path / "b.tsv").read_bytes() == (tmp_path / "a.tsv").read_bytes()
    assert eventlog("export", log, "-o", tmp_path / "x.prom").returncode == 0
    assert (tmp_path / "x.prom").read_text().startswith("# HELP")
    assert "cannot be compressed" in refused("export", log, "-o", tmp_path / "x.prom.gz")
    assert "contradicts" in refused("export", log, "--media", tmp_path / "m", "--format=csv")
    assert "contradicts" in refused("export", log, "--media", tmp_path / "m", "--json")
    if "without SQLite" not in eventlog("export", log, "-o", tmp_path / "x.db").stderr.decode():
        assert (tmp_path / "x.db").read_bytes().startswith(b"SQLite format 3")


def test_tree(log):
    for other in "--json", "--format=tb", "--format=text":
        assert "contradicts" in refused("inspect", log, "--tree", other)
    assert eventlog("inspect", log, "--tree", "--format=tree").stdout == eventlog("inspect", log, "--tree").stdout
    assert "--json contradicts --format=tb" in refused("inspect", log, "--json", "--format=tb")


@pytest.mark.parametrize("words", [["merge"], ["repair"]])
def test_standard_output_leaves_no_file(tmp_path, words):
    """What is gathered for a pipe has no name, so others cannot guess it, and kill -9 leaves nothing behind."""
    points = [{"tag": "a", "step": step, "value": (step * 7919 % 10007) / 3} for step in range(5000)]
    subprocess.run([TOOL, "write", "-d", tmp_path / "log", "-"], input="\n".join(map(json.dumps, points)), text=True, check=True)
    file, = (tmp_path / "log").iterdir()
    place = tmp_path / "tmp"
    place.mkdir()
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, 4096)  # F_SETPIPE_SZ, which Python 3.9 does not name
    with subprocess.Popen([TOOL, *words, file, "-o", "-"], stdout=writer, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(place)}) as process:
        os.close(writer)
        assert os.read(reader, 1)  # it sends, and waits for a reader
        assert process.poll() is None and not list(place.iterdir())
        process.kill()
    os.close(reader)
    assert not list(place.iterdir())


def test_standard_output_of_files(log, tmp_path):
    """Event files go through a pipe, too, and to no file called '-'."""
    file = next(log.glob("*tfevents*"))
    done = {}
    for words in (["merge", file], ["drop-tag", "lr", file], ["rename-tag", "lr=x", file], ["downsample", "--every", 2, file],
                  ["split", "--size", "1M", file], ["repair", file]):
        run = subprocess.run([TOOL, *map(str, words), "-o", "-"], capture_output=True, cwd=tmp_path,
                             env={**os.environ, "TMPDIR": str(tmp_path)})
        assert run.returncode == 0 and run.stdout and run.stderr.count(b"\n") == 1, run.stderr
        done[words[0]] = run.stdout
        assert not list(tmp_path.iterdir())
        assert b"contradicts" in subprocess.run([TOOL, *map(str, words), "-o", "-", "--json"], capture_output=True).stderr
    assert done["repair"] == file.read_bytes()
    (tmp_path / "x.tfevents").write_bytes(done["drop-tag"])
    assert b"lr" not in eventlog("tags", tmp_path).stdout and b"loss" in eventlog("tags", tmp_path).stdout
    assert "more than one new file; give a directory" in refused("drop-tag", "lr", log, "-o", "-")
