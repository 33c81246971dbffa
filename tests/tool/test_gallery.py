"""docs/gallery.md: its commands run, its pictures and charts are what they make, and the pictures are small."""
import os
import pathlib
import re
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build"))
DOCS = pathlib.Path("docs")


def check(logs):
    return subprocess.run([sys.executable, DOCS / "gallery/make.py", "--build", BUILD, "--logs", logs, "--check"],
                          capture_output=True, text=True)


def test_gallery_is_what_its_commands_make(tmp_path):
    done = check(tmp_path / "logs")
    assert done.returncode == 0, done.stdout + done.stderr
    shown = set(re.findall(r"\]\((gallery/[^)]+\.svg)\)", (DOCS / "gallery.md").read_text()))
    assert shown == {f"gallery/{path.name}" for path in (DOCS / "gallery").glob("*.svg")} and len(shown) == 8
    for name in shown:
        assert (DOCS / name).stat().st_size < 60_000, name
