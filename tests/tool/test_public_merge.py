"""eventlog_merge() writes the bytes of `eventlog merge`; called as from a language that knows no struct of the header."""
import ctypes
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
LETTERS = {("u", 4): ctypes.c_uint32, ("i", 4): ctypes.c_int32, ("u", 8): ctypes.c_uint64, ("i", 8): ctypes.c_int64}


def eventlog(*words, **options):
    return subprocess.run([BUILD / "bin/eventlog", *words], check=True, capture_output=True, text=True, **options)


@pytest.fixture(scope="module")
def library():
    return ctypes.CDLL(BUILD / "product/libeventlog.so.0")


@pytest.fixture(scope="module")
def members(library):
    """{name: (offset, size, kind)}, from the library."""
    found, offset, size, kind = {}, ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_char()
    library.eventlog_member.restype = ctypes.c_char_p
    library.eventlog_member.argtypes = [ctypes.c_size_t] + [ctypes.c_void_p] * 3
    while name := library.eventlog_member(len(found), *(ctypes.addressof(x) for x in (offset, size, kind))):
        found[name.decode()] = (offset.value, size.value, kind.value.decode())
    return found


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    """A run that was restarted, with a graph's worth of kinds left to test_log_merge.c, and one that goes on from it."""
    logs = tmp_path_factory.mktemp("logs")
    for run, steps in (("a", range(0, 8)), ("a", range(5, 12)), ("b", range(20, 24))):
        rows = "".join(f'{{"tag":"loss","step":{s},"value":{s}.5,"wall_time":{1000 + s + 100 * len(steps)}}}\n' for s in steps)
        eventlog("write", "--dir", logs / run, "-", input=rows)
    return logs


@pytest.mark.parametrize("words, options", [((), {}), (("--overlap=first",), {"overlap": 1}), (("--overlap=keep",), {"overlap": 2}),
                                            (("--join",), {"join": 1}), (("--prefix",), {"prefix": 1})])
def test_bytes_are_those_of_the_tool(library, members, logs, tmp_path, words, options):
    paths = [logs] if {"join", "prefix"} & set(options) else [logs / "a"]
    eventlog("merge", *words, *paths, "-o", tmp_path / "tool")
    given = ctypes.create_string_buffer(members["eventlog_merge_options"][1])
    for name, number in options.items():
        offset, size, kind = members[f"eventlog_merge_options.{name}"]
        LETTERS[kind, size].from_buffer(given, offset).value = number
    done = ctypes.create_string_buffer(members["eventlog_merged"][1])
    error = ctypes.create_string_buffer(members["eventlog_error"][1])
    rc = library.eventlog_merge((ctypes.c_char_p * len(paths))(*map(os.fsencode, paths)), ctypes.c_size_t(len(paths)),
                                os.fsencode(tmp_path / "library"), given, done, error)
    assert rc == 0, error.raw[members["eventlog_error.message"][0]:].split(b"\0")[0]
    wanted, found = ({p.name: p.read_bytes() for p in (tmp_path / where).iterdir()} for where in ("tool", "library"))
    assert found == wanted and len(wanted) == 1
    offset, size, kind = members["eventlog_merged.bytes"]
    assert LETTERS[kind, size].from_buffer(done, offset).value == len(*wanted.values())
