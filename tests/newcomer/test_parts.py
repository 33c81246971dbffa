"""make and make install where libraries are missing: what can be built is built, and what is left out is said."""
import json
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()


def make(*words, status=0, **environment):
    """Runs make as a user would, free of what the make around this test was told; returns what it said."""
    own = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")}
    run = subprocess.run(["make", "-s", *map(str, words)], cwd=ROOT, env={**own, **environment}, capture_output=True, text=True)
    assert run.returncode == status, run.stdout + run.stderr
    return run.stdout + run.stderr


def value(name, *words):
    return set(make(f"--eval=show:;@echo $({name})", "show", *words).split())


def targets():
    """Those that are for users."""
    phony = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)[1].replace("\\\n", " ").split()
    return set(phony) - {"FORCE", "help", "fuzzers", "structured-fuzzers", "programs-for-tests", "cross-programs"}


def test_help_names_all_targets_and_variables():
    """Within 80 columns."""
    shown, makefile = make("help"), (ROOT / "Makefile").read_text()
    assert set(re.findall(r"^  ([a-z][a-z-]*)  ", shown, re.M)) == targets()
    assert {"PEERS=all", "SAN=thread", "SECONDS", "COUNT", "SEED", "JOBS"} | set(re.findall(r"\b[A-Z]+_ARGS\b", makefile)) <= \
        set(re.findall(r"\b[A-Z_]+(?:=[a-z]+)?", shown)) | set(re.findall(r"\b[A-Z_]+\b", shown))
    assert max(map(len, shown.splitlines())) <= 80


def test_compile_commands(tmp_path):
    """Each of our source files is there with words that the compiler takes."""
    database = ROOT / "compile_commands.json"
    kept = database.read_bytes() if database.exists() else None
    try:
        make("compdb", f"B={tmp_path / 'build'}")
        entries = {entry["file"]: entry for entry in json.loads(database.read_text())}
    finally:
        database.unlink(missing_ok=True) if kept is None else database.write_bytes(kept)
    assert {"base/crc32c.c", "eventlog/tool/main.c", "tests/base/test_crc32c.c"} <= set(entries)
    words = [word for word in entries["base/crc32c.c"]["arguments"] if word not in ("-MMD", "-MP")]
    words[words.index("-o") + 1] = os.devnull
    subprocess.run([*words, "-fsyntax-only"], cwd=entries["base/crc32c.c"]["directory"], check=True)


def test_the_demo_installs_no_browser():
    """Each command installs what it needs itself: only `make test` opens pages and links cmocka."""
    assert {"libopenmpi-dev", "dataset-fashion-mnist", "python3-venv"} <= value("PACKAGES_demo")
    assert value("PACKAGES_test") - value("PACKAGES_demo") >= {"chromium", "chromium-driver", "libcmocka-dev"}
    assert value("PACKAGES_deps") < value("PACKAGES_demo") and not {"build-essential", "g++", "dpkg-dev"} & value("PACKAGES_demo")


# Those that build or need no more than a compiler and Python, or that name what they lack themselves.
NAMES_WHAT_IT_LACKS = {"all", "clean", "compdb", "cross", "dist", "documents", "format", "install", "lint", "reproducible", "static",
                       "uninstall", "wheel"}


def test_deps():
    """What a build without anything names; MPI is left out by the same word as in a build."""
    assert "'make deps'" in make("-n", "CONFIG=false", status=2)
    assert value("PACKAGES_deps") - value("PACKAGES_deps", "MPI=0") == {"libopenmpi-dev", "openmpi-bin"}


@pytest.mark.parametrize("target", sorted(targets() - NAMES_WHAT_IT_LACKS))
def test_what_a_target_needs_is_installed_first(target):
    """Before anything is built; then make starts again."""
    said = make("-n", target, "MISSING=a-package", "MAKE=echo again").splitlines()
    again = [] if target == "deps" else [f"again --no-print-directory {target} INSTALLED=yes"]
    assert [line for line in said if line.startswith("sh ")] == ["sh tests/install_packages.sh a-package"]
    assert [line for line in said if not line.startswith(("sh ", "echo "))] == again


def test_what_is_used_is_among_the_packages_of_the_target():
    """bundle_tool, a helper of tests and benchmarks, packs with snappy; fuzzers need the runtime of clang's sanitizers, by
    the name that every Debian has; other hosts are made by iproute2."""
    names = sorted(targets() - NAMES_WHAT_IT_LACKS)
    shown = make("--eval=show:;@" + "".join(f"echo {name} $(PACKAGES_{name});" for name in names), "show")
    packages = {target: set(words) for target, *words in map(str.split, shown.splitlines())}
    assert all(packages["deps"] <= packages[name] for name in names)
    for wanted, users in (({"libsnappy-dev", "iproute2"}, ("test", "bench")), ({"clang", "libclang-rt-dev"}, ("fuzz", "fuzz-structured")),
                          ({"iproute2"}, ("same-bits", "rank-faults")),
                          ({"dataset-fashion-mnist"}, ("same-bits", "tables", "soak"))):
        assert all(wanted <= packages[name] for name in users)


def test_without_python():
    """Programs and libraries are built; what is a Python program names the package."""
    for target in "lint", "format", "wheel", "documents", "compdb", "reproducible":
        assert "apt-get install python3" in make("-n", target, "PYTHON=0", status=2)


def programs(folder):
    return {p.name for p in (folder / "bin").iterdir()}


def test_without_libraries(tmp_path):
    """First the event logs alone; then, with what checkpoints need, all but what needs MPI."""
    build, tree = tmp_path / "build", tmp_path / "tree"
    fixed = ["-j2", f"B={build}", "CFLAGS=-O0", "MPI=0", "ONEDNN=0", "INOTIFY=0", "SQLITE=0", "ZSTD=0", "DEFLATE=0", "NCURSES=0",
             "NGHTTP2=0"]
    said = make("install", *fixed, "JANSSON=0", "PYTHON=0", f"DESTDIR={tree}", "PREFIX=/usr")
    for name in ("MPI", "oneDNN", "libinotifytools", "SQLite", "ncurses (", "zstd", "libdeflate", "jansson", "nghttp2",
                 "Python"):
        assert sum(line.startswith("  ") and name in line for line in said.splitlines()) == 1, said
    assert "OpenBLAS (" not in said and "protobuf-c (" not in said
    assert programs(tree / "usr") == {"eventlog"}
    assert {p.name for p in (tree / "usr/include/eventlog").iterdir()} == {"eventlog.h", "eventlog.f90"}
    assert not list(tree.rglob("*eventlog_mpi*")) and not (tree / "usr/share").exists()
    log = tmp_path / "log"
    subprocess.run([tree / "usr/bin/eventlog", "write", "--dir", log, "--step", "1", "loss=1"], check=True)
    sqlite = [build / "bin/eventlog", "export", "--format=sqlite", log, "-o", tmp_path / "log.db"]
    assert subprocess.run(sqlite, capture_output=True).returncode == 2
    watch = subprocess.run([build / "bin/eventlog", "watch", log], capture_output=True, text=True)
    assert watch.returncode == 2 and "built without ncurses; install libncurses-dev" in watch.stderr
    (tmp_path / "x.zst").write_bytes(bytes.fromhex("28b52ffd2000010000"))
    zstd = [build / "bin/eventlog", "inspect", tmp_path / "x.zst"]
    refused = subprocess.run(zstd, capture_output=True, text=True)
    assert refused.returncode == 2 and "built without libzstd" in refused.stderr

    said = make(*fixed, "SQLITE=1", "ZSTD=1", "NCURSES=1", "NGHTTP2=1")  # a part that came is compiled in; the last of two words counts
    assert "jansson" not in said and "SQLite" not in said and "no trainer, no libeventlog_mpi" in said
    assert programs(build) == {"eventlog", "eventlog-server", "checkpoint", "dataset", "evaluator"}
    subprocess.run(sqlite, check=True)
    watch = subprocess.run([build / "bin/eventlog", "watch", log], capture_output=True, text=True)
    assert watch.returncode == 2 and "is not a terminal" in watch.stderr
    subprocess.run(zstd, check=True)
    subprocess.run([BUILD / "tests/programs/write_checkpoint", "--directory", tmp_path / "ckpt", "--model", "lenet",
                    "--first", "100", "--last", "200"], check=True, stdout=subprocess.DEVNULL)
    scored = subprocess.run([build / "bin/evaluator", "--checkpoint-dir", tmp_path / "ckpt", "--eval-dir", tmp_path / "eval",
                             "--model", "lenet", "--data", "fashion-mnist", "--num-examples", "64",
                             "--poll-interval", "0.05", "--once"], capture_output=True, text=True)
    assert scored.returncode == 0 and "built without libinotifytools; looking every 0.05 s instead" in scored.stderr
    assert "2 evaluated" in scored.stderr


def test_static_program(tmp_path):
    """It names no library and no loader, and does all but draw PNG, which it refuses with a sentence."""
    said = make("static", f"B={BUILD}")
    assert "librsvg: no PNG pictures" in said and "SQLite" not in said
    static, log = BUILD / "static/eventlog", tmp_path / "log"
    headers = subprocess.run(["readelf", "-l", static], check=True, capture_output=True, text=True).stdout
    assert "LOAD" in headers and "INTERP" not in headers and "DYNAMIC" not in headers
    subprocess.run([static, "write", "--dir", log, "--step", "1", "loss=1", "accuracy=0.5"], check=True)
    for words in (["export", "--format=csv", log], ["stats", log], ["plot", log, "-o", "/dev/stdout", "--format=svg"],
                  ["verify", "--strict", log]):
        ours, other = (subprocess.run([program, *words], capture_output=True) for program in (static, BUILD / "bin/eventlog"))
        assert (ours.returncode, ours.stdout, ours.stderr) == (other.returncode, other.stdout, other.stderr), words
    subprocess.run([static, "export", "--format=sqlite", log, "-o", tmp_path / "log.db"], check=True)
    assert (tmp_path / "log.db").read_bytes().startswith(b"SQLite format 3")
    refused = subprocess.run([static, "plot", log, "-o", tmp_path / "x.png"], capture_output=True, text=True)
    assert refused.returncode == 2 and "a static eventlog draws no PNG" in refused.stderr and not (tmp_path / "x.png").exists()
    first = static.read_bytes()
    static.unlink()
    make("static", f"B={BUILD}")
    assert static.read_bytes() == first


def test_source_archive(tmp_path):
    """Of the commit, whatever lies around; the same bytes again, also elsewhere, later and under another umask."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=n@example.org", *words], cwd=tmp_path / "a", check=True)

    for name in ("Makefile", "base/version.h", "LICENSE"):
        (tmp_path / "a" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "a" / name).write_bytes((ROOT / name).read_bytes())
    refused = make("dist", "-C", tmp_path / "a", status=2)
    assert "make dist: this is no git checkout" in refused
    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "all")
    (tmp_path / "a/LICENSE").write_text("changed")
    (tmp_path / "a/untracked").touch()
    said = make("dist", "-C", tmp_path / "a")
    [first] = (tmp_path / "a/build").glob("*.tar.gz")
    assert "not committed is left out" in said and first.name in said
    assert first.read_bytes()[3:8] == bytes(5), "gzip's header has a name or a time"
    with tarfile.open(first) as archive:
        top = first.name.removesuffix(".tar.gz")
        assert {m.name for m in archive if m.isfile()} == {f"{top}/{n}" for n in ("Makefile", "base/version.h", "LICENSE")}
        assert archive.extractfile(f"{top}/LICENSE").read() == (ROOT / "LICENSE").read_bytes()
    git("clone", "-q", ".", tmp_path / "b")
    run = subprocess.run(["sh", "-c", f"umask 077; make -s -C {tmp_path}/b dist B=other"], capture_output=True, text=True)
    assert run.returncode == 0 and "not committed" not in run.stderr, run.stderr
    assert (tmp_path / "b/other" / first.name).read_bytes() == first.read_bytes()


def test_without_what_everything_needs():
    assert "'make deps' installs what building needs" in make("CONFIG=false", status=2)
    make("help", "CONFIG=false")


@pytest.mark.parametrize("who", ["0", "1000"])
def test_installing_is_announced(tmp_path, who):
    """The names are said before apt-get is asked; without root and sudo they are for the administrator."""
    said = tmp_path / "said"
    for name, text in (("apt-get", f'echo "apt-get $*" >>{said}'), ("id", f"echo {who}"), ("env", 'shift; exec "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    with open(said, "a") as out:
        run = subprocess.run(["/bin/sh", "tests/install_packages.sh", "one", "two"], cwd=ROOT, stdout=out, stderr=out,
                             env={"PATH": str(tmp_path)})
    lines = said.read_text().splitlines()
    if who == "0":
        assert run.returncode == 0 and lines[0] == "installing Debian packages that are missing here: one two"
        assert lines[1].startswith("apt-get update") and lines[2].endswith(" one two")
    else:
        assert run.returncode == 1 and lines == ["please install as root: apt-get install --no-install-recommends one two"]
    missing = subprocess.run(["sh", "tests/install_packages.sh", "--missing", "dpkg", "no-such-package"], cwd=ROOT,
                             capture_output=True, text=True)
    assert missing.stdout == "no-such-package\n"
