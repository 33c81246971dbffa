"""The wheel: made by `make wheel`, installed by pip without a network, and used from there alone."""
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import python_package

pytest.importorskip("numpy")


def make(out, **environment):
    subprocess.run(["make", "--no-print-directory", "wheel", f"B={python_package.BUILD}"], cwd=python_package.ROOT, check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    [wheel] = python_package.BUILD.glob("evalboard-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel():
    return make(python_package.BUILD)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of a Python that sees the installed package, and nothing of the checkout."""
    place = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps",
                    "--target", place, wheel], check=True)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("EVALBOARD")}
    return {**environment, "PYTHONPATH": str(place), "PATH": "/usr/bin:/bin"}


def test_size_and_contents(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert wheel.stat().st_size < 3e6 and sum(i.file_size for i in zipfile.ZipFile(wheel).infolist()) < 3e6
    assert {"evalboard/__init__.py", "evalboard/py.typed", "evalboard/lib/libeventlog.so.0", "evalboard/bin/eventlog",
            "evalboard/bin/checkpoint"} <= set(names)
    assert any(name.endswith("licenses/zlib1g") for name in names)


def test_tag_is_that_of_the_symbols(wheel, tmp_path):
    """No file needs a newer glibc than the name says, nor another library."""
    said = tuple(map(int, re.search(r"manylinux_(\d+)_(\d+)_", wheel.name).groups()))
    zipfile.ZipFile(wheel).extractall(tmp_path)
    highest = (0, 0)
    for path in [*tmp_path.glob("evalboard/lib/*"), *tmp_path.glob("evalboard/bin/*")]:
        out = subprocess.run(["readelf", "-dV", path], check=True, capture_output=True, text=True).stdout
        assert set(re.findall(r"NEEDED.*\[([\w-]+)", out)) <= {"libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64", "libgcc_s"}
        highest = max(highest, *(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(\d+\.\d+)", out)))
    assert said == highest


def test_same_bytes_again(wheel):
    first = wheel.read_bytes()
    assert make(python_package.BUILD).read_bytes() == first


def test_installed(installed, tmp_path):
    code = """
import sys, evalboard
assert "numpy" not in sys.modules, "import evalboard alone takes no NumPy"
assert "site" in evalboard.__file__
with evalboard.SummaryWriter(sys.argv[1]) as w:
    for i in range(1000):
        w.add_scalar("loss", i / 7, i)
    w.add_image("picture", __import__("numpy").zeros((3, 4, 5)))
log = evalboard.read(sys.argv[1])
print(evalboard.__version__, len(log["loss"]), log["loss"].values[7], len(evalboard.read_images(sys.argv[1])))
"""
    out = subprocess.run([sys.executable, "-c", code, tmp_path], check=True, capture_output=True, text=True, env=installed).stdout
    version = re.search(r'EVALBOARD_VERSION "(.*)"', (python_package.ROOT / "base/version.h").read_text()).group(1)
    assert out.split() == [version, "1000", "1.0", "1"]
    out = subprocess.run([sys.executable, "-m", "evalboard", "stats", tmp_path], check=True, capture_output=True, text=True,
                         env=installed).stdout
    assert "loss" in out
    run = subprocess.run([sys.executable, "-m", "evalboard", "stats", pathlib.Path("/nowhere")], capture_output=True, text=True,
                         env=installed)
    assert run.returncode == 2 and "eventlog stats: /nowhere" in run.stderr
    out = subprocess.run([sys.executable, "-m", "evalboard", "checkpoint", "--version"], check=True, capture_output=True,
                         text=True, env=installed).stdout
    assert out.startswith("checkpoint ")
