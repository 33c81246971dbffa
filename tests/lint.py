#!/usr/bin/env python3
"""Holds the sources to the house rules: who may include whom, no two modules that need each other, headers that compile
alone, errors of memory said in one way, C laid out as .clang-format says; and no test that imports a test. Long functions are
remarks, as advice.

usage: lint.py [--cc CC] [--mpi FLAGS] [--format]      run from the root of the checkout; prints one line a finding, exit 1 if there is one
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

BASE = {"base", "base/program"}
LIBEVENTLOG = BASE | {"eventlog", "eventlog/format", "eventlog/write", "eventlog/read", "eventlog/check", "eventlog/rewrite"}
PARTS = BASE | {"dataset", "dataset/captions", "model", "checkpoint", "checkpoint/directory"}
# Which of our folders each folder may include, itself always. A folder without a row of its own belongs to the one
# above it.
OURS = {
    "base": set(),
    "base/program": {"base"},
    "proto": set(),
    "eventlog": {"base"},
    "eventlog/format": {"base"},
    "eventlog/write": {"base", "eventlog", "eventlog/format"},
    "eventlog/write/kinds": {"base", "eventlog", "eventlog/format", "eventlog/write"},
    "eventlog/read": BASE | {"eventlog", "eventlog/format"},
    "eventlog/check": {"base", "eventlog/format"},
    "eventlog/rewrite": {"base", "eventlog", "eventlog/format", "eventlog/read", "eventlog/check"},
    "eventlog/tool": LIBEVENTLOG,
    "eventlog/tool/picture": LIBEVENTLOG | {"eventlog/tool"},
    "eventlog/tool/export": LIBEVENTLOG | {"eventlog/tool"},
    "eventlog/tool/report": LIBEVENTLOG | {"eventlog/tool", "eventlog/tool/picture", "eventlog/tool/export"},
    "eventlog/tool/watch": LIBEVENTLOG | {"eventlog/tool", "eventlog/tool/picture"},
    "eventlog/tool/rewrite": LIBEVENTLOG | {"eventlog/tool", "eventlog/tool/report"},
    "eventlog/server": BASE | {"eventlog/format", "eventlog/read", "eventlog/server/store", "eventlog/server/grpc"},
    "eventlog/server/store": {"base", "eventlog/format"},
    "eventlog/server/grpc": {"base"},
    "eventlog_mpi": set(),
    "checkpoint": {"base", "proto"},
    "checkpoint/directory": {"base", "checkpoint"},
    "checkpoint/tool": BASE | {"checkpoint", "checkpoint/directory"},
    "dataset": BASE,
    "dataset/captions": BASE | {"dataset", "checkpoint"},
    "dataset/tool": BASE | {"dataset", "dataset/captions", "model", "checkpoint"},
    "model": {"base"},
    "trainer": PARTS | {"trainer/collective", "trainer/compare", "trainer/launch", "trainer/optimizers",
                        "trainer/plan",
                        "trainer/strategies", "trainer/timing"},
    "trainer/collective": {"base", "base/program", "model", "trainer/timing"},
    "trainer/compare": BASE | {"trainer/launch", "trainer/timing"},
    "trainer/launch": BASE | {"checkpoint/directory"},
    "trainer/optimizers": {"base", "model", "trainer/collective"},
    "trainer/plan": BASE | {"model", "trainer/collective", "trainer/optimizers", "trainer/server"},
    "trainer/server": {"base", "model", "trainer/collective", "trainer/optimizers", "trainer/timing"},
    "trainer/strategies": BASE | {"model", "trainer/collective", "trainer/optimizers", "trainer/server", "trainer/timing"},
    "trainer/timing": BASE,
    "evaluator": PARTS | {"evaluator/files", "evaluator/score", "evaluator/record", "evaluator/watch"},
    "evaluator/files": PARTS,
    "evaluator/score": PARTS | {"evaluator/files"},
    "evaluator/record": PARTS | {"evaluator/files", "evaluator/score"},
    "evaluator/watch": PARTS | {"evaluator/files", "evaluator/record"},
}
# Headers that others than their room's neighbours may include, with who does (path prefixes): of the event log the public
# one alone.
PUBLIC = {
    "eventlog/eventlog.h": ("trainer/", "evaluator/", "eventlog_mpi/"),
}
# System headers of libraries, and the only files that may see them (path prefixes).
LIBRARIES = {
    "mpi.h": ["trainer/collective/ranks.c", "eventlog_mpi/"],
    "cblas.h": ["model/kernels/"],
    "dnnl": ["model/kernels/"],
    "inotifytools/": ["evaluator/watch/watch_inotify.c"],
    "zlib.h": ["dataset/", "eventlog/"],
    "zstd": ["eventlog/"],
    "jansson.h": ["checkpoint/", "dataset/captions/", "evaluator/", "trainer/compare/", "trainer/plan/planning.c"],
    "protobuf-c": ["proto/"],
    "png.h": ["dataset/stream/"],
    "libdeflate.h": ["eventlog/write/kinds/", "eventlog/tool/gzip_packing.c"],
    "jpeglib.h": ["dataset/stream/"],
    "jerror.h": ["dataset/stream/"],
    "sqlite3.h": ["eventlog/tool/"],
    "nghttp2": ["eventlog/server/grpc/grpc_connection.c"],
    "curses.h": ["eventlog/tool/watch/watch_screen_ncurses.c"],
}
# Folders beside those whose C has the layout of .clang-format.
LAID_OUT = ["tests", "bench", "examples"]
LINE, FUNCTION_LINES = 120, 80


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line):
            yield number, match.group(1), match.group(2)


def room(name):
    """The row of OURS to which this file belongs, or None."""
    return next((str(folder) for folder in pathlib.Path(name).parents if str(folder) in OURS), None)


def check_includes(path, findings):
    folder = room(path)
    for number, mark, name in includes(path):
        where = f"{path}:{number}"
        if mark == '"':
            target = room(name)
            if "/" not in name:
                findings.append(f'{where}: include "{name}" by its path from the root')
            elif target not in OURS[folder] | {folder} and not str(path).startswith(PUBLIC.get(name, ())):
                findings.append(f"{where}: {folder}/ may not include {name}")
            elif name.startswith("proto/") and path.suffix == ".h":
                findings.append(f"{where}: generated headers are for .c files only")
        else:
            for library, allowed in LIBRARIES.items():
                if name.startswith(library) and not any(str(path).startswith(a) for a in allowed):
                    findings.append(f"{where}: <{name}> belongs to {', '.join(allowed)} only")
    if path.suffix == ".c":
        own = path.with_suffix(".h")
        first = next((name for _, _, name in includes(path)), None)
        if own.exists() and first != str(own):
            findings.append(f"{path}: includes its own header first")


def check_text(path, findings):
    lines = path.read_text().splitlines()
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin:
            if number - begin - 1 > FUNCTION_LINES:
                print(f"lint: remark: {path}:{begin}: function of {number - begin - 1} lines; is there a seam?")
            begin = None
        if len(line) > LINE:
            findings.append(f"{path}:{number}: line of {len(line)} columns")
        if "\t" in line or line != line.rstrip():
            findings.append(f"{path}:{number}: tab or blank at the end")


def check_tests(findings):
    """What several tests need is in a module of its own: no test imports a test. pytest imports tests by their names alone."""
    named = {}
    for path in sorted(pathlib.Path("tests").rglob("test_*.*")):
        lines = path.read_text().splitlines() if path.suffix in (".c", ".py") else []
        if path.suffix == ".py" and named.setdefault(path.name, path) != path:
            findings.append(f"{path}: pytest takes it for {named[path.name]}; give it a name of its own")
        for number, line in enumerate(lines, 1):
            if re.match(r"\s*(from|import) test_\w+", line):
                findings.append(f"{path}:{number}: a test imports a test")


def check_circles(sources, findings):
    """Each folder has an order in which it can be read: of two modules at most one needs the other. A header without a
    source file is no module: who includes it needs what it includes."""
    included = {str(path): {name for _, mark, name in includes(path) if mark == '"'} for path in sources}
    modules = {path[:-2] for path in included if path.endswith(".c")}

    def needed(files, passed):
        """The modules of these files, and of what those include that are no module's."""
        found = set()
        for name in set(files) - passed:
            passed.add(name)
            found |= {name[:-2]} if name[:-2] in modules else needed(included.get(name, ()), passed)
        return found

    def reached(module):
        found, left = set(), [module]
        while left:
            more = needs[left.pop()] - found
            found |= more
            left += more
        return found

    needs = {module: {other for other in needed(included[f"{module}.c"] | included.get(f"{module}.h", set()), set())
                      if other != module} for module in modules}
    below = {module: reached(module) for module in modules}
    for module in sorted(below):
        circle = sorted(other for other in below[module] if module in below.get(other, ()))
        if circle and module == circle[0]:
            findings.append(f"{module}.c: needs {', '.join(circle[1:])}, and is needed there; which can be read first?")


def check_memory(path, findings):
    """Want of memory is said in one way, by error_memory(); a limit is another matter."""
    text = path.read_text()
    for match in re.finditer(r'\berror_set\(\w+, ERR_NOMEM,\s*"[^"]*\b(?:no|out of) memory\b', text):
        if str(path) != "base/error.c":
            findings.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: want of memory is said by error_memory()")


def header_alone(cc, mpi, path):
    if path.parts[0] == "eventlog_mpi":
        cc = cc + mpi
    run = subprocess.run([*cc, "-std=c11", "-D_GNU_SOURCE", "-I.", "-Ibuild/generated", "-Wall", "-Wextra", "-Werror",
                          "-fsyntax-only", "-x", "c", str(path)], capture_output=True, text=True)
    return [f"{path}: does not compile alone\n{run.stderr}"] if run.returncode else []


def clang_format():
    """The version that `make test` installs: others lay some lines out in another way. None: it is not here."""
    places = [pathlib.Path(__file__).resolve().parents[1] / "build/venv/bin", pathlib.Path(sys.executable).parent, None]
    for place in places:
        program = shutil.which("clang-format", path=place)
        if program and " 14.0.6" in subprocess.run([program, "--version"], capture_output=True, text=True).stdout:
            return program
    return None


def laid_out():
    return sorted({str(p) for folder in [*OURS, *LAID_OUT] for p in pathlib.Path(folder).rglob("*.[ch]")})


def check_layout(findings):
    if not pathlib.Path(".clang-format").exists():
        return
    if not (program := clang_format()):
        print("lint: the layout of C is not checked, for want of clang-format 14.0.6, which make test installs")
        if os.environ.get("CI"):
            findings.append(".clang-format: there is nothing to check it with")
        return
    run = subprocess.run([program, "--dry-run", *laid_out()], capture_output=True, text=True)
    for file in sorted(set(re.findall(r"^([^:\n]+):\d+:\d+: warning: code should be clang-formatted", run.stderr, re.M))):
        findings.append(f"{file}: not laid out as .clang-format says; `make format` does it")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--mpi", default="", help="words of the compiler for what includes MPI's header")
    parser.add_argument("--format", action="store_true", help="lay C out as .clang-format says, and do nothing else")
    options = parser.parse_args()
    cc = shlex.split(options.cc)
    if options.format:
        sys.exit(subprocess.run([program, "-i", *laid_out()]).returncode if (program := clang_format()) else
                 "clang-format 14.0.6 is missing; `make test` installs it, or pip install clang-format==14.0.6")
    sources = sorted({p for folder in OURS for p in pathlib.Path(folder).rglob("*.[ch]")})
    findings = []
    for path in sources:
        check_includes(path, findings)
        check_text(path, findings)
        check_memory(path, findings)
    check_circles(sources, findings)
    check_tests(findings)
    check_layout(findings)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for found in pool.map(lambda p: header_alone(cc, shlex.split(options.mpi), p), [p for p in sources if p.suffix == ".h"]):
            findings += found
    for finding in findings:
        print(f"lint: {finding}", file=sys.stderr)
    print(f"lint: {len(sources)} files, {len(findings)} findings")
    sys.exit(1 if findings else 0)


main()
