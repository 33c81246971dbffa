"""eventlog_merge() writes the bytes of `eventlog merge`."""
import ctypes
import os
import pathlib
import subprocess

import pytest

import python_package  # noqa: F401

from evalboard._library import Error, Merged, MergeOptions, lib

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()


def eventlog(*words, **options):
    return subprocess.run([BUILD / "bin/eventlog", *words], check=True, capture_output=True, text=True, **options)


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
def test_bytes_are_those_of_the_tool(logs, tmp_path, words, options):
    paths = [logs] if {"join", "prefix"} & set(options) else [logs / "a"]
    eventlog("merge", *words, *paths, "-o", tmp_path / "tool")
    given, done, error = MergeOptions(**options), Merged(), Error()
    rc = lib.eventlog_merge((ctypes.c_char_p * len(paths))(*map(os.fsencode, paths)), len(paths),
                            os.fsencode(tmp_path / "library"), ctypes.byref(given), ctypes.byref(done), ctypes.byref(error))
    assert rc == 0, error.message
    wanted, found = ({p.name: p.read_bytes() for p in (tmp_path / where).iterdir()} for where in ("tool", "library"))
    assert found == wanted and len(wanted) == 1
    assert done.bytes == len(*wanted.values())
