"""Containerfile names what the Makefile has."""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]


def value(variable):
    own = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    return subprocess.run(["make", "-s", f"--eval=show:;@echo $({variable})", "show"], cwd=ROOT, env=own, check=True, capture_output=True,
                          text=True).stdout.split()


def test_container_has_the_libraries():
    """The last stage installs the run-time package of each library that building needs."""
    last = (ROOT / "Containerfile").read_text().rpartition("\nFROM ")[2]
    installed = set(re.search(r"install -y --no-install-recommends((?:.*\\\n)+?.*&&)", last)[1].replace("\\", " ").split())
    of = {"zlib1g-dev": "zlib1g", "libpng-dev": "libpng16-16", "libjpeg62-turbo-dev": "libjpeg62-turbo", "libprotobuf-c-dev": "libprotobuf-c1",
          "libjansson-dev": "libjansson4", "libopenblas-pthread-dev": "libopenblas0-pthread", "libdnnl-dev": "libdnnl2",
          "libinotifytools0-dev": "libinotifytools0", "libopenmpi-dev": "openmpi-bin", "libsqlite3-dev": "libsqlite3-0",
          "libncurses-dev": "libncursesw6", "libzstd-dev": "libzstd1", "libdeflate-dev": "libdeflate0", "libnghttp2-dev": "libnghttp2-14"}
    assert {name for name in value("PACKAGES_build") if name.endswith("-dev")} - {"libc6-dev"} == set(of)
    assert set(of.values()) <= installed
