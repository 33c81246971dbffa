"""make install into a directory of its own, and what a user builds from there with nothing but pkg-config or CMake."""
import os
import pathlib
import re
import subprocess

import pytest

import making

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
PREFIX = "/opt/evalboard"
C = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
CPP = ["c++", "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
# What the examples write: run -> plugin -> tags.
EXAMPLES = {
    "c/scalars.c": {"": {"scalars": {"train/loss": 1000, "train/learning_rate": 10}}},
    "c/histograms.c": {"": {"histograms": {"layer1/weights": 20, "input/milliseconds": 20}}},
    "c/images.c": {"": {"images": {"input": 1, "attention": 1}}},
    "c/texts.c": {"": {"text": {"notes": 1, "by class": 1}}},
    "c/hparams.c": {"": {"hparams": {"_hparams_/experiment": 1}},
                    **{run: {"scalars": {"accuracy": 10},
                             "hparams": {"_hparams_/session_start_info": 1, "_hparams_/session_end_info": 1}}
                       for run in ("0.1-sgd", "0.1-adam", "0.01-sgd", "0.01-adam")}},
    "mpi/reduced.c": {"": {"scalars": {"loss": 100, "seconds/slowest rank": 100, "images": 100}, "text": {"notes": 1}}},
    "cpp/training.cpp": {"": {"scalars": {"loss": 100}, "histograms": {"weights": 100}, "text": {"notes": 1}}},
}

READS = "c/read_scalars.c"


def make(target, tree, *variables):
    making.make(target, f"DESTDIR={tree}", f"PREFIX={PREFIX}", *variables)


def files(tree):
    return {str(p.relative_to(tree)) for p in tree.rglob("*") if not p.is_dir()}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    if BUILD != ROOT / "build":
        pytest.fail("make install installs build/")
    tree = tmp_path_factory.mktemp("install")
    make("install", tree)
    return tree


def pkg_config(tree, *words, package="eventlog"):
    return subprocess.run(["pkg-config", *words, package], check=True, capture_output=True, text=True,
                          env={**os.environ, "PKG_CONFIG_PATH": f"{tree}{PREFIX}/lib/pkgconfig"}).stdout.split()


def run(tree, *words):
    done = subprocess.run(words, capture_output=True, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{tree}{PREFIX}/lib",
                               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(tree, source, program, static=False, package="eventlog"):
    compiler = CPP if str(source).endswith(".cpp") else C
    subprocess.run([*compiler, *(["-static"] if static else []), "-o", program, source,
                    *pkg_config(tree, "--cflags", "--libs", *(["--static"] if static else []), package=package)],
                   check=True)
    return program


def check_log(log, want):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    runs = {str(p.parent.relative_to(log)).replace(".", "", p.parent == log) for p in log.rglob("*tfevents*")}
    assert runs == set(want)
    for name, plugins in want.items():
        a = accumulator.EventAccumulator(str(log / name), size_guidance=accumulator.STORE_EVERYTHING_SIZE_GUIDANCE)
        a.Reload()
        found = {}
        for tag in a.Tags()["tensors"]:
            found.setdefault(a.SummaryMetadata(tag).plugin_data.plugin_name, {})[tag] = len(a.Tensors(tag))
        for tag in a.Tags()["scalars"]:
            found.setdefault("scalars", {})[tag] = len(a.Scalars(tag))
        assert {p: t for p, t in found.items()} == plugins, name


def test_mpi_example(tree, tmp_path):
    program = build(tree, ROOT / "examples/mpi/reduced.c", tmp_path / "program", package="eventlog_mpi")
    run(tree, "mpirun", "--oversubscribe", "-n", "3", program, tmp_path / "log")
    check_log(tmp_path / "log", EXAMPLES["mpi/reduced.c"])


@pytest.mark.parametrize("source, package, want", [
    ("curves.f90", "eventlog", {"scalars": {"energy": 100}, "histograms": {"field": 10}, "text": {"notes": 1}}),
    ("reduced.f90", "eventlog_mpi", {"scalars": {"residual": 100}})])
def test_fortran_example(tree, tmp_path, source, package, want):
    """With the modules that are installed as source."""
    place = pkg_config(tree, "--variable=includedir")[0] + "/eventlog"
    mpi = package == "eventlog_mpi"
    compiler = ["mpifort"] if mpi else ["gfortran", "-std=f2008", "-Wpedantic"]
    subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", "-J", tmp_path, "-o", tmp_path / "program",
                    f"{place}/eventlog.f90", *([f"{place}/eventlog_mpi.f90"] if mpi else []),
                    ROOT / "examples/fortran" / source, *pkg_config(tree, "--libs", package=package)], check=True)
    run(tree, *(["mpirun", "--oversubscribe", "-n", "2"] if mpi else []), tmp_path / "program", tmp_path / "log")
    check_log(tmp_path / "log", {"": want})
    (tmp_path / "file").write_text("")
    refused = subprocess.run([tmp_path / "program", tmp_path / "file"], capture_output=True, text=True,
                             env={**os.environ, "LD_LIBRARY_PATH": f"{tree}{PREFIX}/lib"})
    assert refused.returncode == 1 and f"{tmp_path}/file" in refused.stderr, refused.stderr


def test_a_plain_logger_links_no_mpi(tree):
    assert "mpi" not in " ".join(pkg_config(tree, "--static", "--cflags", "--libs"))


@pytest.mark.parametrize("source", [name for name in EXAMPLES if not name.startswith("mpi/")])
@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_example(tree, tmp_path, source, static):
    program = build(tree, ROOT / "examples" / source, tmp_path / "program", static)
    linked = subprocess.run(["ldd", program], capture_output=True, text=True)
    assert ("libeventlog.so.0" in linked.stdout) != static, linked.stdout
    run(tree, program, tmp_path / "log")
    check_log(tmp_path / "log", EXAMPLES[source])
    run(tree, f"{tree}{PREFIX}/bin/eventlog", "verify", "--strict", tmp_path / "log")


@pytest.mark.parametrize("static", [False, True], ids=["shared", "static"])
def test_example_that_reads(tree, tmp_path, static):
    """What one example writes another reads: all points, those of a tag, and those that come."""
    run(tree, build(tree, ROOT / "examples/c/scalars.c", tmp_path / "write", static), tmp_path / "log" / "a")
    reader = build(tree, ROOT / "examples" / READS, tmp_path / "read", static)
    lines = [line.split("\t") for line in run(tree, reader, tmp_path / "log").splitlines()]
    assert len(lines) == 1010 and {line[0] for line in lines} == {"a"}
    assert [int(line[2]) for line in lines if line[1] == "train/loss"] == list(range(1000))
    assert len(run(tree, reader, tmp_path / "log", "*/learning_rate").splitlines()) == 10
    with subprocess.Popen([reader, tmp_path / "log", "--follow"], stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LD_LIBRARY_PATH": f"{tree}{PREFIX}/lib"}) as following:
        for _ in range(1010):
            following.stdout.readline()
        run(tree, tmp_path / "write", tmp_path / "log" / "b")
        assert {following.stdout.readline().split("\t")[0] for _ in range(1010)} == {"b"}
        following.terminate()


def test_examples_are_all_tried():
    assert {str(p.relative_to(ROOT / "examples")) for d in ("c", "cpp", "mpi") for p in (ROOT / "examples" / d).iterdir()
            if p.suffix in (".c", ".cpp")} == {*EXAMPLES, READS}


def test_pkg_config_in_a_sysroot(tree, tmp_path):
    """PKG_CONFIG_SYSROOT_DIR, as cross builds use it, must not put the directory before the paths twice."""
    words = subprocess.run(["pkg-config", "--cflags", "--libs", "eventlog"], check=True, capture_output=True, text=True,
                           env={**os.environ, "PKG_CONFIG_PATH": f"{tree}{PREFIX}/lib/pkgconfig",
                                "PKG_CONFIG_SYSROOT_DIR": str(tree)}).stdout.split()
    subprocess.run([*C, "-o", tmp_path / "program", ROOT / "examples/c/scalars.c", *words], check=True)
    assert pkg_config(tree, "--modversion") == [re.search(r'"(.*)"', (ROOT / "base/version.h").read_text()).group(1)]


CMAKE = """\
cmake_minimum_required(VERSION 3.13)
project(examples C CXX)
find_package(eventlog 0.1 REQUIRED COMPONENTS mpi)
find_package(eventlog REQUIRED) # a second time, as by a part of the project
add_executable(scalars {examples}/c/scalars.c)
target_link_libraries(scalars eventlog::eventlog)
add_executable(training {examples}/cpp/training.cpp)
target_link_libraries(training eventlog::eventlog_static)
add_executable(reduced {examples}/mpi/reduced.c)
target_link_libraries(reduced eventlog::eventlog_mpi)
"""


def cmake(tree, source, *words):
    """Debian's cmake, whatever else is called so in PATH."""
    return subprocess.run(["/usr/bin/cmake", "-S", source, "-B", source / "made", f"-DCMAKE_PREFIX_PATH={tree}{PREFIX}", *words],
                          capture_output=True, text=True)


def test_cmake(tree, tmp_path):
    """The three targets, from where DESTDIR put the tree; programs find the libraries that they were linked with."""
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(examples=ROOT / "examples"))
    configured = cmake(tree, tmp_path)
    assert configured.returncode == 0, configured.stderr
    subprocess.run(["/usr/bin/cmake", "--build", tmp_path / "made"], check=True, capture_output=True)
    for program, starter, source in (("scalars", [], "c/scalars.c"), ("training", [], "cpp/training.cpp"),
                                     ("reduced", ["mpirun", "-n", "1"], "mpi/reduced.c")):
        linked = subprocess.run(["ldd", tmp_path / "made" / program], capture_output=True, text=True).stdout
        assert (f"{tree}{PREFIX}/lib/libeventlog.so.0" in linked) == (program != "training"), linked
        run(tree, *starter, tmp_path / "made" / program, tmp_path / program)
        check_log(tmp_path / program, EXAMPLES[source])


@pytest.mark.parametrize("wanted, said", [
    ("0.2", "version: 0.1.0"), ("1", "version: 0.1.0"), ("0.0.9", None), ("0.1.0 EXACT", None),
    ("0.1 COMPONENTS fast", "no component fast")])
def test_cmake_version(tree, tmp_path, wanted, said):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.13)\nproject(p NONE)\n"
                                             f"find_package(eventlog {wanted} REQUIRED)\n")
    configured = cmake(tree, tmp_path)
    assert (configured.returncode == 0) == (said is None), configured.stderr
    assert said is None or said in " ".join(configured.stderr.split())


@pytest.mark.parametrize("compiler", [C, CPP, ["c++", "-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]],
                         ids=["C11", "C++11", "C++20"])
def test_header_alone(tree, tmp_path, compiler):
    """It needs nothing but the language's own headers."""
    header = tree / PREFIX.lstrip("/") / "include/eventlog/eventlog.h"
    assert set(re.findall(r"#include <(.*)>", header.read_text())) <= {"stddef.h", "stdint.h"}
    assert '#include "' not in header.read_text()
    source = tmp_path / f"alone{'.c' if compiler is C else '.cpp'}"
    source.write_text("#include <eventlog/eventlog.h>\n")
    subprocess.run([*compiler, "-fsyntax-only", *pkg_config(tree, "--cflags"), source], check=True)


def test_names_of_the_user_do_not_meet_ours(tree, tmp_path):
    """Functions called as inner ones of ours, linked with the static library: neither side takes the other's."""
    names = ["buffer_append", "error_set", "json_text", "crc32c", "number_text", "io_write_full", "event_encode_scalar",
             "record_header", "file_join", "wire_varint"]
    source = tmp_path / "names.c"
    source.write_text('#include <eventlog/eventlog.h>\n#include <stdlib.h>\n'
                      + "".join(f"void {name}(void);\nvoid {name}(void)\n{{\n    abort();\n}}\n" for name in names)
                      + "int main(int argc, char **argv)\n{\n    struct eventlog_writer *w;\n\n"
                        "    if (argc != 2 || eventlog_writer_open(&w, argv[1], NULL, NULL) ||\n"
                        '        eventlog_writer_scalar(w, "a", 1, 0, 2, NULL) ||\n'
                        '        eventlog_writer_text(w, "b", 1, 0, "x", NULL, NULL))\n        return 1;\n'
                        "    return eventlog_writer_close(w, NULL) != 0;\n}\n")
    for static in (False, True):
        run(tree, build(tree, source, tmp_path / "names", static), tmp_path / f"log-{static}")


def shown(library, *options):
    out = subprocess.run(["nm", *options, "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return {(w[2].split("@")[0], w[2].partition("@@")[2]) for w in map(str.split, out.splitlines())
            if len(w) == 3 and w[1] not in "Aa"}


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", (ROOT / header).read_text(), flags=re.S)
    return set(re.findall(r"\b(eventlog_\w+)\s*\((?!\*)", text))


@pytest.mark.parametrize("name, header, listed", [
    ("libeventlog", BUILD / "product/eventlog.h", "symbols.txt"),
    ("libeventlog_mpi", "eventlog_mpi/eventlog_mpi.h", "symbols_mpi.txt")])
def test_symbols(tree, name, header, listed):
    """The shared library shows the functions that the list in tests/abi/ has, which are those of the header."""
    library = tree / PREFIX.lstrip("/") / f"lib/{name}.so"
    committed = {tuple(line.split()) for line in (ROOT / "tests/abi" / listed).read_text().splitlines()}
    found = shown(library, "-D")
    assert not committed - found, "programs that were linked with these do not start any more"
    assert not found - committed, f"new: add these lines to tests/abi/{listed}, in order"
    assert {symbol for symbol, _ in found} == declared(header)
    assert {symbol for symbol, _ in shown(library.with_suffix(".a"), "-g")} == declared(header)


def test_soname_and_needed(tree):
    out = subprocess.run(["readelf", "-d", tree / PREFIX.lstrip("/") / "lib/libeventlog.so"], check=True,
                         capture_output=True, text=True).stdout
    # A program that finds the one finds the other.
    assert "libeventlog.so.0" in subprocess.run(["readelf", "-d", tree / PREFIX.lstrip("/") / "lib/libeventlog_mpi.so"],
                                                check=True, capture_output=True, text=True).stdout
    assert re.findall(r"SONAME\).*\[(.*)\]", out) == ["libeventlog.so.0"]
    needed = {re.sub(r"\.so.*", "", name) for name in re.findall(r"NEEDED\).*\[(.*)\]", out)}
    assert needed <= {"libz", "libzstd", "libdeflate", "libm", "libc", "ld-linux-x86-64", "ld-linux-aarch64"}, needed


def test_uninstall_takes_what_install_put(tmp_path):
    make("install", tmp_path)
    for program in ("trainer", "evaluator", "eventlog", "eventlog-server", "checkpoint", "dataset"):
        assert {f"{PREFIX}/{path}".lstrip("/") for path in (
            f"bin/{program}", f"share/man/man1/{program}.1", f"share/bash-completion/completions/{program}",
            f"share/zsh/site-functions/_{program}", f"share/fish/vendor_completions.d/{program}.fish")} <= files(tmp_path)
    assert {f"{PREFIX}/share/man/{page}".lstrip("/") for page in ("man3/eventlog_writer_open.3", "man7/eventlog-json.7")} <= \
        files(tmp_path)
    other = tmp_path / PREFIX.lstrip("/") / "lib/other.txt"
    other.write_text("stays")
    make("uninstall", tmp_path)
    assert files(tmp_path) == {str(other.relative_to(tmp_path))}


def test_another_library_directory(tmp_path):
    make("install", tmp_path, f"LIBDIR={PREFIX}/lib/x86_64-linux-gnu")
    lib = f"{tmp_path}{PREFIX}/lib/x86_64-linux-gnu"
    words = subprocess.run(["pkg-config", "--cflags", "--libs", "eventlog"], check=True, capture_output=True, text=True,
                           env={**os.environ, "PKG_CONFIG_PATH": f"{lib}/pkgconfig"}).stdout.split()
    subprocess.run([*C, "-o", tmp_path / "program", ROOT / "examples/c/texts.c", *words], check=True)
