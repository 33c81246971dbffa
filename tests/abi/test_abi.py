"""Programs that were built with an older eventlog.h: they compile with today's, and run with today's library.

tests/abi/eventlog_0.h is the header as they had it, tests/abi/old_program.c such a program, old_program.txt what it
printed then. At a release that only adds, nothing here changes. Before the first release the header may still change in
other ways: then copy it anew.
"""
import ctypes
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
LIBRARY = BUILD / "product"
C = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror"]
# The library hands these out by pointer and programs only look at them: they may become longer.
MAY_GROW = {"eventlog_event", "eventlog_damage", "eventlog_series", "eventlog_value"}


@pytest.fixture(scope="module")
def headers(tmp_path_factory):
    """{'old', 'new'}: directories to include <eventlog/eventlog.h> from."""
    found = {}
    for name, header in (("old", ROOT / "tests/abi/eventlog_0.h"), ("new", LIBRARY / "eventlog.h")):
        found[name] = tmp_path_factory.mktemp(name)
        (found[name] / "eventlog").mkdir()
        (found[name] / "eventlog/eventlog.h").write_bytes(header.read_bytes())
    return found


@pytest.mark.parametrize("which", ["old", "new"])
def test_old_program(headers, which, tmp_path):
    program = tmp_path / "old_program"
    subprocess.run([*C, f"-I{headers[which]}", "-o", program, ROOT / "tests/abi/old_program.c", f"-L{LIBRARY}", "-leventlog"],
                   check=True)
    run = subprocess.run([program, tmp_path / "log"], capture_output=True, text=True,
                         env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARY)})
    assert run.returncode == 0, run.stderr
    assert run.stdout == (ROOT / "tests/abi/old_program.txt").read_text()
    subprocess.run([BUILD / "bin/eventlog", "verify", tmp_path / "log"], check=True, capture_output=True)


def parse(header):
    """({struct: [member]}, [constant]) of a header."""
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    structs = {}
    for name, body in re.findall(r"struct (\w+)\s*\{(.*?)\n\};", code, flags=re.S):
        body = re.sub(r"\(\*(\w+)\)\([^)]*\)", r"\1", body) # a pointer to a function
        structs[name] = [member for declaration in body.split(";") if declaration.strip()
                         for member in re.findall(r"(\w+)\s*(?:\[[^\]]*\])?\s*(?=,|$)", declaration.strip())]
    constants = [name for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", code, flags=re.S)
                 for name in re.findall(r"\b(EVENTLOG_\w+)", body)]
    return structs, constants


def layout(include, structs, constants, directory):
    """{what: number}: sizes, places of members, values of constants, as the compiler sees them."""
    lines = [f'    printf("{s}|%zu\\n", sizeof(struct {s}));' for s in structs]
    lines += [f'    printf("{s}.{m}|%zu %zu\\n", offsetof(struct {s}, {m}), sizeof(((struct {s} *)0)->{m}));'
              for s, members in structs.items() for m in members]
    lines += [f'    printf("{c}|%d\\n", (int){c});' for c in constants]
    source = directory / "layout.c"
    source.write_text("#include <eventlog/eventlog.h>\n#include <stdio.h>\nint main(void)\n{\n" + "\n".join(lines) + "\n}\n")
    subprocess.run([*C, f"-I{include}", "-o", directory / "layout", source], check=True)
    out = subprocess.run([directory / "layout"], check=True, capture_output=True, text=True).stdout
    return dict(line.split("|") for line in out.splitlines())


def test_layout(headers, tmp_path):
    structs, constants = parse(ROOT / "tests/abi/eventlog_0.h")
    assert len(structs) > 20 and len(constants) > 60
    assert all(members for members in structs.values())
    old, new = (layout(headers[which], structs, constants, tmp_path) for which in ("old", "new"))
    for what, number in old.items():
        if what in MAY_GROW:
            assert int(new[what]) >= int(number), what
        elif what.endswith(".reserved"):
            start, size = map(int, number.split())
            begins, left = map(int, new[what].split())
            assert begins >= start and begins + left == start + size, f"{what}: later members come out of its beginning"
        else:
            assert new[what] == number, f"{what} was {number}; programs that are there expect that"


def test_members_tell_the_layout(headers, tmp_path):
    """eventlog_member() has every struct and member of the header, where the compiler has them."""
    structs, _ = parse(LIBRARY / "eventlog.h")
    library = ctypes.CDLL(LIBRARY / "libeventlog.so.0")
    library.eventlog_member.restype = ctypes.c_char_p
    library.eventlog_member.argtypes = [ctypes.c_size_t] + [ctypes.POINTER(t) for t in (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_char)]
    offset, size, kind = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_char()
    told, kinds = {}, {}
    while (name := library.eventlog_member(len(told), *map(ctypes.byref, (offset, size, kind)))) is not None:
        name = name.decode()
        told[name] = f"{offset.value} {size.value}" if "." in name else str(size.value)
        kinds[name] = kind.value.decode()
    wanted = layout(headers["new"], structs, [], tmp_path)
    assert told == wanted
    assert list(told) == sorted(told, key=lambda name: list(structs).index(name.partition(".")[0])), "in the header's order"
    assert set(kinds.values()) == set("iufptcrs")
    for name, letter in (("eventlog_error.message", "c"), ("eventlog_event.what", "i"), ("eventlog_event.run", "t"),
                         ("eventlog_event.data", "p"), ("eventlog_value.number", "f"), ("eventlog_point", "s"),
                         ("eventlog_writer_statistics.last_error", "s"), ("eventlog_writer_options.reserved", "r"),
                         ("eventlog_output.write", "p"), ("eventlog_value.series", "p"), ("eventlog_tensor.bytes", "u")):
        assert kinds[name] == letter, name


def test_functions_are_as_they_were():
    def prototypes(header):
        code = re.sub(r"/\*.*?\*/|^#[^\n]*$", "", header.read_text(), flags=re.S | re.M)
        return {m.group(1): " ".join(m.group(0).split())
                for m in re.finditer(r"[\w][\w\s*]*?\b(eventlog_\w+)\s*\((?!\*)[^;{}]*\)(?=;)", code)}

    old, new = prototypes(ROOT / "tests/abi/eventlog_0.h"), prototypes(LIBRARY / "eventlog.h")
    assert len(old) > 30
    assert {name: new.get(name) for name in old} == old
