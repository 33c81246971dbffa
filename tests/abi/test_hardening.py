"""What `make` builds is as hard to misuse as Debian's packages: hardening=+all, as readelf sees it."""
import os
import pathlib
import re
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
PROGRAMS = sorted((BUILD / "bin").iterdir())
LIBRARIES = sorted(path for path in (BUILD / "product").glob("*.so.*") if not path.is_symlink())


def read(path, *options):
    return subprocess.run(["readelf", "-W", *options, path], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("path", PROGRAMS + LIBRARIES, ids=lambda path: path.name)
def test_hardened(path):
    head, dynamic, segments, names = read(path, "-h"), read(path, "-d"), read(path, "-l"), read(path, "-s")
    assert re.search(r"Type: +DYN", head)  # position-independent
    assert "GNU_RELRO" in segments and re.search(r"FLAGS.*\bBIND_NOW\b|FLAGS_1.*\bNOW\b", dynamic)
    assert re.search(r"GNU_STACK .* RW +0x", segments)  # a stack that is not executed
    assert "TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic
    assert "__stack_chk_fail" in names and re.search(r" __\w+printf_chk(@|$)", names, re.M)  # _FORTIFY_SOURCE


def test_all_are_seen():
    assert {"trainer", "evaluator", "dataset", "eventlog", "eventlog-server", "checkpoint"} <= {path.name for path in PROGRAMS}
    assert len(LIBRARIES) == 2
