"""The Python package of this checkout with the libeventlog.so and the programs of the build under test: in this process, and
for others by environment()."""
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
os.environ["EVALBOARD_LIBRARY"] = str(BUILD / "product/libeventlog.so.0")
os.environ["EVALBOARD_BIN"] = str(BUILD / "bin")
if str(ROOT / "python") not in sys.path:
    sys.path.insert(0, str(ROOT / "python"))


def environment(**more):
    """For a process of its own."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "python"), "PYTHONDONTWRITEBYTECODE": "1", **more}
