"""Every command block of README.md, in order, in one shell, as a newcomer runs them: as root and as a user without rights.

The commands run as printed, but for CHANGES, which make seconds of minutes; markdown_commands.py says what fences mean.
"""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import markdown_commands
from waiting import DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
SHORTER = 25  # times fewer steps
CLEAN = 'untracked=$(git status --porcelain); [ -z "$untracked" ] || { echo "$untracked"; exit 1; }'
CHANGES = (
    (r"^make demo\b.*", f"make demo DEMO_ARGS=--steps={800 // SHORTER}" + f"\n{CLEAN}" * bool(shutil.which("git"))),
    (r"^make test\b", "make -n test"),  # that is what runs this
    (r"(--(?:max|save-checkpoint)-steps |model\.ckpt-)(\d+00)\b", lambda m: f"{m[1]}{int(m[2]) // SHORTER}"),
)


def copy(folder):
    """The checkout and what is built of it, as a newcomer has it after `make`; times stay, so that nothing is built anew."""
    shutil.copytree(ROOT, folder, symlinks=True, dirs_exist_ok=True, ignore=lambda where, names: {
        name for name in names if name in (".git", "__pycache__") or name.startswith("build-") or
        (pathlib.Path(where) == ROOT and name == "build") or (where.endswith("/demo") and name != "run.py")})
    # Without man pages and completions, which another test may be making just now.
    shutil.copytree(ROOT / "build", folder / "build", symlinks=True, ignore=shutil.ignore_patterns(
        "venv", "tests", "fuzz", "double", "screenshots", "gallery", "tables", "many-images", "man", "completion",
        "documents.stamp"))
    (folder / "build/venv").symlink_to(ROOT / "build/venv")


@pytest.fixture
def newcomer():
    """A directory that other users can read, unlike pytest's own."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="newcomer."))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("who", ["root", "user"] if os.getuid() == 0 else ["user"])
def test_every_command_block(newcomer, who):
    folder, home = newcomer / "evalboard", newcomer / "home"
    home.mkdir()
    copy(folder)
    blocks = markdown_commands.blocks(ROOT / "README.md")
    markdown_commands.write_files(blocks, folder)
    text = markdown_commands.script(blocks, CHANGES)
    if shutil.which("git"):
        subprocess.run("git init -q . && git add -A && git -c user.name=n -c user.email=n@example.org commit -qm all",
                       shell=True, cwd=folder, check=True)
    other = NOBODY if who == "user" and os.getuid() == 0 else []
    if other:
        subprocess.run(["chown", "-hR", "nobody:nogroup", newcomer], check=True)
        venv = subprocess.run([*other, "test", "-x", folder / "build/venv/bin/python3"]).returncode == 0
        if not venv:  # below a home directory of root: the demo makes its own
            (folder / "build/venv").unlink()
    own = {"HOME": str(home), "PATH": f"{folder}/build/venv/bin:{os.environ['PATH']}"}
    own |= {name: value for name, value in os.environ.items() if name.startswith("PIP_") or name in ("LANG", "LC_ALL")}
    with open(newcomer / "output", "w+") as output:
        done = subprocess.run([*other, "bash", "-c", text], cwd=folder, env=own, stdout=output, stderr=output,
                              timeout=10 * DEADLINE)
        output.seek(0)
        said = output.read()
    assert done.returncode == 0, said[-8000:]
    for name, steps in (("mpi", 11), ("ps", 11)):
        assert len((folder / f"runs/{name}/eval/evaluations.jsonl").read_text().splitlines()) == steps, name
    if out := [block.place for block in blocks if not block.runs_here()]:
        pytest.skip(f"all but {', '.join(out)}, whose modules are not installed")
