"""Compressed files, archives and standard input: every reading command says of them what it says of the plain log."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
READING = ["inspect --json", "export --format=csv", "export --format=jsonl", "stats", "tags", "hparams", "compare --json",
           "plot --width 60 --tag loss", "tail", "tail --all --json"]
# What these do with such inputs has tests of its own here, and for what takes none there is a message.
OTHERS = ["verify", "repair", "cat", "archive", "write", "prune", "watch", "serve"]
REWRITING = ["merge --keep-runs", "split --tags all=*", "rename-tag loss=l", "drop-tag lo*", "downsample -n 2"]


def run(*arguments, status=0, **more):
    """status None: any."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, timeout=120, **more)
    assert status in (None, done.returncode), done.stderr.decode() + done.stdout.decode()
    return done


def error(*arguments, **more):
    return run(*arguments, status=2, **more).stderr.decode()


def event_files(directory):
    return sorted(p for p in directory.rglob("*tfevents*") if p.is_file())


def zstd(data):
    """As the tool of that name does; its absence, or that of the library, is a skip."""
    if not shutil.which("zstd"):
        pytest.skip("no zstd here")
    probe = subprocess.run([TOOL, "inspect", "-"], input=bytes.fromhex("28b52ffd2000010000"), capture_output=True)
    if b"built without libzstd" in probe.stderr:
        pytest.skip("built without libzstd")
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Runs `eval`, `eval/eval` and, with values of other kinds, `eval/golden`."""
    top = tmp_path_factory.mktemp("inputs") / "log"
    top.mkdir()
    subprocess.run([SAMPLE, "sample", top / "eval"], check=True)
    subprocess.run([SAMPLE, "golden", top / "eval/golden"], check=True)
    return top


@pytest.fixture(params=["gz", "zst", "two members", "tfz", "gz in tfz"])
def stored(request, log, tmp_path):
    """The same log in another form, and what stands before its runs' names there."""
    copy = tmp_path / "log"
    shutil.copytree(log, copy)
    for path in [] if request.param == "tfz" else event_files(copy):
        data, half = path.read_bytes(), path.stat().st_size // 2
        suffix = ".zst" if request.param == "zst" else ".gz"
        packed = zstd(data) if request.param == "zst" else gzip.compress(data)
        if request.param == "two members":
            packed = gzip.compress(data[:half]) + gzip.compress(data[half:])
        path.with_name(path.name + suffix).write_bytes(packed)
        path.unlink()
    if "tfz" not in request.param:
        return copy, ""
    run("archive", copy, "-o", tmp_path / "log.tfz")
    shutil.rmtree(copy)
    return tmp_path / "log.tfz", "log/"


@pytest.mark.parametrize("command", READING)
def test_read(log, stored, command):
    path, prefix = stored
    want = run(*command.split(), log, status=None)
    got = run(*command.split(), path, status=want.returncode)

    def plain(text):
        text = text.replace(f"{prefix}eval".encode(), b"eval") if prefix else text
        return text.replace(b".gz", b"").replace(b".zst", b"")

    if command.startswith("plot"):
        assert len(got.stdout) > 100  # names of other lengths make another picture
    else:
        assert plain(got.stdout) == want.stdout
    assert plain(got.stderr) == want.stderr


@pytest.mark.parametrize("command", REWRITING)
def test_rewrite(log, stored, command, tmp_path):
    path, prefix = stored
    run(*command.split(), log, "-o", tmp_path / "want")
    run(*command.split(), path, "-o", tmp_path / "got")
    want = {p.relative_to(tmp_path / "want").as_posix(): p.read_bytes() for p in event_files(tmp_path / "want")}
    got = {p.relative_to(tmp_path / "got").as_posix().replace(f"{prefix}eval", "eval"): p.read_bytes()
           for p in event_files(tmp_path / "got")}
    assert got == want and want


def test_in_place_is_refused(stored, tmp_path):
    path, _ = stored
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for command in ["rename-tag loss=l", "drop-tag loss", "downsample -n 2"]:
        assert "cannot be changed in place; -o DIR writes a new log" in error(*command.split(), "--in-place", path)
    for file in event_files(path) if path.is_dir() else [path]:
        assert "cannot be repaired in place; -o NEW writes a new file" in error("repair", "--in-place", file)
        assert "does not grow; 'eventlog tail' without -f reads it" in error("tail", "-f", file)
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_repair(stored, log, tmp_path):
    path, _ = stored
    if path.is_dir():
        run("repair", event_files(path)[0], "-o", tmp_path / "new")
        assert (tmp_path / "new").read_bytes() == event_files(log)[0].read_bytes()


def test_every_command_is_here():
    described = json.loads(run("--describe").stdout)
    assert {c["name"] for c in described["commands"]} == {c.split()[0] for c in READING + REWRITING + OTHERS}


@pytest.mark.parametrize("through", ["pipe", "file"])
@pytest.mark.parametrize("form", [bytes, gzip.compress, zstd])
def test_standard_input(log, tmp_path, through, form):
    file = event_files(log / "eval")[-1]
    data = form(file.read_bytes())
    (tmp_path / "in").write_bytes(data)
    for command in READING:
        if command.startswith("inspect"):
            continue  # it prints the file's name
        want = run(*command.split(), file, status=None)
        with open(tmp_path / "in", "rb") as stream:
            got = run(*command.split(), "-", status=want.returncode, **({"input": data} if through == "pipe" else {"stdin": stream}))
        assert (got.stdout, got.stderr) == (want.stdout, want.stderr)
    for command in REWRITING:  # the events are read twice by some
        run(*command.split(), "-", "-o", tmp_path / command.split()[0], input=data)
        made = event_files(tmp_path / command.split()[0])
        assert len(made) == 1 and not made[0].name.endswith(".gz")
    run("repair", "-", "-o", tmp_path / "new", input=data)
    assert (tmp_path / "new").read_bytes() == file.read_bytes()
    assert "does not grow" in error("tail", "-f", "-", input=data)


@pytest.mark.parametrize("form", [bytes, gzip.compress])
def test_archive_through_standard_input(log, tmp_path, form):
    """Of event files as they are, or compressed: all that an archive can hold."""
    shutil.copytree(log, tmp_path / "log")
    for path in event_files(tmp_path / "log"):
        path.write_bytes(form(path.read_bytes()))
    archive = tmp_path / "log.tfz"
    run("archive", tmp_path / "log", "-o", archive)
    for command in READING:
        want = run(*command.split(), archive, status=None)
        got = run(*command.split(), "-", status=want.returncode, input=archive.read_bytes())
        assert got.stdout.replace(b'"-', b'"' + bytes(archive)) == want.stdout and got.stderr == want.stderr
    assert b"log/eval/eval,loss" in run("stats", "-", input=archive.read_bytes()).stdout
    for command in REWRITING:
        name = command.split()[0]
        run(*command.split(), archive, "-o", tmp_path / name / "want")
        run(*command.split(), "-", "-o", tmp_path / name / "got", input=archive.read_bytes())
        want, got = ({p.relative_to(tmp_path / name / d): p.read_bytes() for p in event_files(tmp_path / name / d)}
                     for d in ("want", "got"))
        assert got == want and want


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_cat_from_standard_input(log, tmp_path, through):
    archive = tmp_path / "log.tfz"
    run("archive", log, "-o", archive)
    for arguments in ["--list"], ["--list", "--json"], []:
        with open(archive, "rb") as stream:
            got = run("cat", *arguments, "-", **({"input": archive.read_bytes()} if through == "pipe" else {"stdin": stream}))
        assert got.stdout == run("cat", *arguments, archive).stdout
    run("cat", "-", "-o", tmp_path / "out", input=archive.read_bytes())
    assert [p.read_bytes() for p in event_files(tmp_path / "out/log")] == [p.read_bytes() for p in event_files(log)]
    assert error("cat", "-", input=b"no archive") == "eventlog cat: -: not an archive made by 'eventlog archive'\n"


def test_runs_of_an_archive(log, tmp_path):
    run("archive", log, "-o", tmp_path / "log.tfz")
    assert b"log/eval/eval" not in run("stats", tmp_path / "log.tfz", "--run", "log/eval").stdout
    both = run("stats", tmp_path / "log.tfz", log).stdout
    assert both.count(b"/log.tfz/log/eval,loss") == 1 and both.count(b"/log/eval,loss") == 2


def test_damage(log, tmp_path):
    source = tmp_path / "many"
    subprocess.run([SAMPLE, "many", source], check=True)
    file, = event_files(source)
    packed = gzip.compress(file.read_bytes())
    cut, checksum = tmp_path / "cut.tfevents.gz", tmp_path / "checksum.tfevents.gz"
    cut.write_bytes(packed[:len(packed) // 2])
    checksum.write_bytes(packed[:-8] + bytes([packed[-8] ^ 1]) + packed[-7:])
    for path, points in (cut, 5000), (checksum, 20000):
        done = run("export", "--format=csv", path, status=1)
        said = f"eventlog export: {path}:"
        assert done.stderr.decode().startswith(said) and "the compressed file is damaged or cut" in done.stderr.decode()
        assert points <= done.stdout.count(b"\n") - 1 <= 20000
        # The place is one in what comes out of it.
        place = int(done.stderr.decode()[len(said):].split(":")[0])
        assert len(gzip.decompress(packed)) // 4 < place <= file.stat().st_size
        for command in ["stats", "tail", "inspect"]:
            run(command, path, status=1)
        for command in REWRITING:
            run(*command.split(), path, "-o", tmp_path / path.stem / command.split()[0], status=1)
        findings = json.loads(run("verify", "--json", path, status=1).stdout)["findings"]
        assert sorted((f["kind"], f["level"]) for f in findings) == [("compressed", "hidden"), ("stream", "damage")]
        run("repair", path, "-f", "-o", tmp_path / "sound")
        assert file.read_bytes().startswith((tmp_path / "sound").read_bytes())
        run("verify", tmp_path / "sound")
    # The others of a directory are read all the same.
    shutil.copytree(log, tmp_path / "log")
    shutil.copy(cut, tmp_path / "log")
    want = run("export", "--format=csv", log).stdout.splitlines()
    assert set(want) <= set(run("export", "--format=csv", tmp_path / "log", status=1).stdout.splitlines())


def test_verify(log, tmp_path):
    """TensorBoard reads no compressed file, so those in a log are told; from elsewhere only the contents count."""
    file = event_files(log / "eval/eval")[0]
    packed = gzip.compress(file.read_bytes())
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / (file.name + ".gz")).write_bytes(packed)
    run("archive", log / "eval", "-o", tmp_path / "log.tfz")

    def kinds(*arguments, **more):
        return {f["kind"] for f in json.loads(run("verify", "--json", *arguments, **more).stdout)["findings"]}

    plain = kinds(file, status=1)
    assert plain
    assert kinds(tmp_path / "log", status=1) == plain | {"compressed"}
    for form in packed, zstd(file.read_bytes()), (tmp_path / "log.tfz").read_bytes():
        assert kinds("-", input=form, status=1) == plain
    assert kinds(tmp_path / "log.tfz", status=1) == kinds(log / "eval", status=1)


def test_compressed_beside_plain(log, tmp_path):
    """gzip -k leaves both: the points are there once."""
    shutil.copytree(log, tmp_path / "log")
    for path in event_files(tmp_path / "log"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
    for command in READING:
        assert (run(*command.split(), tmp_path / "log", status=None).stdout ==
                run(*command.split(), log, status=None).stdout)


def test_where_it_is_unpacked(log, tmp_path):
    file = event_files(log)[0]
    packed = tmp_path / "x.tfevents.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    nowhere = {**os.environ, "TMPDIR": str(tmp_path / "nowhere")}
    for arguments, more in ((packed,), {}), (("-",), {"input": file.read_bytes()}):
        told = error("stats", *arguments, env=nowhere, **more)
        assert f"cannot make a temporary file in {tmp_path / 'nowhere'}; set TMPDIR to another directory" in told
    run("stats", log, env=nowhere)  # plain files need none
    (tmp_path / "there").mkdir()
    run("stats", packed, env={**os.environ, "TMPDIR": str(tmp_path / "there")})
    assert not any((tmp_path / "there").iterdir())


def test_many_files(log, tmp_path):
    """With few descriptors, and without a temporary file for each."""
    packed = gzip.compress(event_files(log / "eval")[-1].read_bytes())
    for i in range(300):
        (tmp_path / f"log/r{i}").mkdir(parents=True)
        (tmp_path / f"log/r{i}/x.tfevents.gz").write_bytes(packed)
    limit = f'ulimit -n 100; exec "{TOOL}" "$@"'
    for arguments in (["tail", tmp_path / "log"], ["stats", tmp_path / "log"],
                      ["merge", "--prefix", tmp_path / "log", "-o", tmp_path / "merged"]):
        subprocess.run(["bash", "-c", limit, "-", *arguments], check=True, stdout=subprocess.DEVNULL)
    assert run("tags", tmp_path / "merged").stdout.count(b"loss") == 300
