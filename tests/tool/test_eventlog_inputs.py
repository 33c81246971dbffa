"""Compressed files, archives and standard input: every reading command says of them what it says of the plain log."""
import bz2
import gzip
import io
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from interposed import NO_LIBRARY, interposed

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
READING = ["inspect --json", "export --format=csv", "export --format=jsonl", "stats", "tags", "hparams", "compare --json",
           "plot --width 60 --tag loss", "tail", "tail --all --json"]
# What these do with such inputs has tests of its own here, and for what takes none there is a message.
OTHERS = ["verify", "repair", "write", "prune", "watch", "serve"]
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


def tarred(entries, **more):
    """An archive by Python's tarfile. An entry is a name and its contents, or a changed TarInfo."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **more) as archive:
        for name, contents in entries:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(contents or b"")
            archive.addfile(info, io.BytesIO(contents or b""))
    return out.getvalue()


def zipped(entries, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, contents in entries:
            archive.writestr(name, contents)
    return out.getvalue()


def packed_tree(top, form):
    """The directory in an archive, its names beginning with its own."""
    target = top.with_name(f"{top.name}.{form}")
    members = [(p.relative_to(top.parent).as_posix(), p.read_bytes()) for p in sorted(top.rglob("*")) if p.is_file()]
    if form == "zip":
        target.write_bytes(zipped(members))
    elif form == "tar.gz":
        target.write_bytes(gzip.compress(tarred(members)))
    elif form == "tar.zst":
        target.write_bytes(zstd(tarred(members, format=tarfile.GNU_FORMAT)))
    else:  # GNU tar
        subprocess.run(["tar", "-caf", target, "-C", top.parent, top.name], check=True)
    return target


COMPRESSED = {"gz": gzip.compress, "zst": zstd, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.fixture(params=[*COMPRESSED, "two members", "tar", "tar.gz", "tar.zst", "tar.xz", "tar.bz2", "zip", "gz in tar"])
def stored(request, log, tmp_path):
    """The same log in another form, and what stands before its runs' names there."""
    copy = tmp_path / "log"
    shutil.copytree(log, copy)
    form, inside = request.param, request.param if request.param in COMPRESSED else "gz"
    if form in COMPRESSED or " " in form:
        for path in event_files(copy):
            data, half = path.read_bytes(), path.stat().st_size // 2
            if form == "two members":
                packed = gzip.compress(data[:half]) + gzip.compress(data[half:])
            else:
                packed = COMPRESSED[inside](data)
            path.with_name(f"{path.name}.{inside}").write_bytes(packed)
            path.unlink()
    if form in COMPRESSED or form == "two members":
        return copy, ""
    target = packed_tree(copy, form.split()[-1])
    shutil.rmtree(copy)
    return target, "log/"


@pytest.mark.parametrize("command", READING)
def test_read(log, stored, command):
    path, prefix = stored
    want = run(*command.split(), log, status=None)
    got = run(*command.split(), path, status=want.returncode)

    def plain(text):
        text = text.replace(f"{prefix}eval".encode(), b"eval") if prefix else text
        for ending in COMPRESSED:
            text = text.replace(f".{ending}".encode(), b"")
        return text

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
@pytest.mark.parametrize("form", [bytes, *COMPRESSED.values()])
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
    shutil.copytree(log, tmp_path / "log")
    for path in event_files(tmp_path / "log"):
        path.write_bytes(form(path.read_bytes()))
    archive = packed_tree(tmp_path / "log", "tar.xz")
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


def test_runs_of_an_archive(log, tmp_path):
    shutil.copytree(log, tmp_path / "log")
    archive = packed_tree(tmp_path / "log", "tar")
    assert b"log/eval/eval" not in run("stats", archive, "--run", "log/eval").stdout
    both = run("stats", archive, log).stdout
    assert both.count(b"/log.tar/log/eval,loss") == 1 and both.count(b"/log/eval,loss") == 2


def runs(archive, status=0):
    """The names of its runs, and what is said."""
    done = run("inspect", "--json", archive, status=status)
    return [r["run"] for r in json.loads(done.stdout)["runs"]], done.stderr.decode()


def test_names_lead_nowhere(log, tmp_path):
    """Nothing is written under the name of a member; the run has the rest of it."""
    data = event_files(log)[0].read_bytes()
    names = ["../../up/x.tfevents", "/tmp/absolute/x.tfevents", "a/./b//../c/x.tfevents", "./.", "..", "dir.tfevents/readme",
             "./here/x.tfevents", "x.tfevents", "\u00e4/x.tfevents"]
    want = [".", "a/b/c", "here", "tmp/absolute", "up", "\u00e4"]
    before = sorted(tmp_path.iterdir())
    for archive in tarred([(n, data) for n in names]), zipped([(n, data) for n in names]):
        done = run("inspect", "--json", "-", input=archive, cwd=tmp_path, env={**os.environ, "LC_ALL": "C"})
        assert [r["run"] for r in json.loads(done.stdout)["runs"]] == want
        assert sorted(tmp_path.iterdir()) == before and not pathlib.Path("/tmp/absolute").exists()


def test_links_and_special_members(log, tmp_path):
    data, entries = event_files(log)[0].read_bytes(), []
    for name, kind, target in (("hard/x.tfevents", tarfile.LNKTYPE, "real/x.tfevents"),
                               ("lost/x.tfevents", tarfile.LNKTYPE, "nowhere"),
                               ("soft/x.tfevents", tarfile.SYMTYPE, "/etc/passwd"), ("pipe/x.tfevents", tarfile.FIFOTYPE, ""),
                               ("folder.tfevents", tarfile.DIRTYPE, ""), ("soft/other", tarfile.SYMTYPE, "../..")):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, target
        entries.append((info, None))
    path = tmp_path / "x.tar"
    path.write_bytes(tarred([("real/x.tfevents", data), *entries]))
    names, said = runs(path, 2)
    assert names == ["hard", "real"]
    assert said.splitlines()[0] == f"eventlog inspect: {path}: 3 links or special files named *tfevents* in it are left out"


def test_the_last_of_two_members_counts(log, tmp_path):
    """As it would if they were extracted: tar -r appends a newer one."""
    old, new = (event_files(log / "eval")[i].read_bytes() for i in (0, -1))
    path = tmp_path / "x.tar"
    path.write_bytes(tarred([("run/x.tfevents", old), ("./run/x.tfevents", new)]))
    alone = tmp_path / "x.tfevents"
    alone.write_bytes(new)
    assert run("export", "--format=csv", path).stdout.replace(b"run,", b".,") == run("export", "--format=csv", alone).stdout.replace(b"run,", b".,")


def test_an_archive_that_is_cut(log, tmp_path):
    """Members before it are read, the last one as far as it goes, and it is said what is missing."""
    shutil.copytree(log, tmp_path / "log")
    for form in "tar", "tar.xz", "zip":
        whole = packed_tree(tmp_path / "log", form).read_bytes()
        whole = whole[:whole.index(b"PK\1\2")] if form == "zip" else whole.rstrip(b"\0")  # what follows is not needed
        cut = tmp_path / f"cut.{form}"
        for n in range(0, len(whole) - 50, len(whole) // 7):
            cut.write_bytes(whole[:n])
            done = run("stats", cut, status=None)
            assert done.returncode in (1, 2) and done.stderr, (form, n)
        assert b"log/eval" in done.stdout or form != "tar"
    told = run("stats", tmp_path / "cut.tar", status=2).stderr.decode()
    assert f"{tmp_path / 'cut.tar'}: " in told and "Truncated" in told


def test_members_that_cannot_be_read(log, tmp_path):
    """One with a wrong checksum is read; one that is encrypted is named."""
    data = event_files(log / "eval")[-1].read_bytes()
    whole = bytearray(zipped([("a/x.tfevents", data), ("b/x.tfevents", data)], zipfile.ZIP_STORED))
    path = tmp_path / "x.zip"
    at = whole.index(data)
    path.write_bytes(whole[:at + 100] + bytes([whole[at + 100] ^ 1]) + whole[at + 101:])
    said = run("stats", path, status=1).stderr.decode()
    assert "x.zip/a/x.tfevents:" in said and "b/x.tfevents" not in said
    for head, flags in (b"PK\3\4", 6), (b"PK\1\2", 8):
        whole[whole.index(head) + flags] |= 1
    path.write_bytes(whole)
    names, said = runs(path, 2)
    assert names == ["b"] and f"{path}: member a/x.tfevents: Passphrase required" in said


def test_sizes_that_lie(tmp_path):
    """A sparse member that says it holds 2^60 bytes needs more room than there is, before any of it is written."""
    info = tarfile.TarInfo("x.tfevents")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "x.tfevents",
                        "GNU.sparse.realsize": str(2**60)}
    path = tmp_path / "x.tar"
    path.write_bytes(tarred([(info, f"1\n{2**60 - 512}\n512\n".encode().ljust(512, b"\0") + bytes(512))], format=tarfile.PAX_FORMAT))
    said = error("stats", path)
    assert "of temporary space" in said or "Tar entry size overflow" in said  # libarchive's own word from 3.8 on
    path.write_bytes(bytearray(tarred([("x.tfevents", b"1" * 100)])).replace(b"00000000144", b"77777777777"))
    assert error("stats", path)


def test_sparse_members(log, tmp_path):
    """Zeros at the end, as a writer that reserves room leaves them, take none."""
    (tmp_path / "log").mkdir()
    shutil.copy(event_files(log)[0], tmp_path / "log/x.tfevents")
    want = run("stats", tmp_path / "log").stdout
    os.truncate(tmp_path / "log/x.tfevents", 1 << 26)
    subprocess.run(["tar", "-cSf", tmp_path / "x.tar", "-C", tmp_path / "log", "."], check=True)
    assert (tmp_path / "x.tar").stat().st_size < 1 << 20
    assert run("stats", tmp_path / "x.tar").stdout == want


def test_no_room(log, tmp_path):
    """What an archive unpacks to is limited, and nothing is left."""
    path, place = tmp_path / "x.tar.gz", tmp_path / "place"
    place.mkdir()
    path.write_bytes(gzip.compress(tarred([("x.tfevents", bytes(1 << 22))])))
    limited = f'trap "" XFSZ; ulimit -f 1000; exec "{TOOL}" stats "{path}"'
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(place)})
    assert done.returncode == 2 and f"{path}: cannot write a temporary file in {place}" in done.stderr
    assert not list(place.iterdir())


def test_other_archives(log, tmp_path):
    """Without event files: of tar and zip it is said that there are none, others are what they are."""
    path = tmp_path / "x"
    for archive in tarred([("readme", b"text")]), zipped([("readme", b"text")]):
        path.write_bytes(archive)
        assert "contains no event files" in run("stats", path, status=None).stderr.decode()
    path.write_bytes(zipped([("m/data.pkl", b"text"), ("m/data/0", b"0")], zipfile.ZIP_STORED))
    assert "not an event file, but a PyTorch file" in error("stats", path)
    path.write_bytes(zipped([("runs/data/x.tfevents", event_files(log)[0].read_bytes())]))
    assert runs(path)[0] == ["runs/data"]  # though its first name is one of PyTorch's
    (tmp_path / "log").mkdir()
    (tmp_path / "log/x.tfevents.tar").write_bytes(tarred([("x.tfevents", b"")]))
    assert "not an event file, but a tar archive" in error("stats", tmp_path / "log")


def test_without_libarchive(log, tmp_path):
    """It is named where it is needed; nothing else needs it."""
    shutil.copytree(log, tmp_path / "log")
    environment = interposed(tmp_path, "without", NO_LIBRARY, NO_LIBRARY="libarchive")
    needing = [packed_tree(tmp_path / "log", form) for form in ("tar", "tar.gz", "zip")]
    (tmp_path / "x.tfevents.xz").write_bytes(lzma.compress(event_files(log)[0].read_bytes()))
    for path in *needing, tmp_path / "x.tfevents.xz":
        told = error("stats", path, env=environment)
        assert told.startswith(f"eventlog stats: {path}: reading it needs libarchive: ") and "libarchive13" in told
        assert told.count("\n") == 1
    for path in event_files(tmp_path / "log"):
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert run("stats", tmp_path / "log", env=environment).stdout == run("stats", log).stdout


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
    shutil.copytree(log / "eval", tmp_path / "eval")
    archive = packed_tree(tmp_path / "eval", "tar")

    def kinds(*arguments, **more):
        return {f["kind"] for f in json.loads(run("verify", "--json", *arguments, **more).stdout)["findings"]}

    plain = kinds(file, status=1)
    assert plain
    assert kinds(tmp_path / "log", status=1) == plain | {"compressed"}
    for form in packed, zstd(file.read_bytes()), archive.read_bytes():
        assert kinds("-", input=form, status=1) == plain
    assert kinds(archive, status=1) == kinds(log / "eval", status=1)


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
