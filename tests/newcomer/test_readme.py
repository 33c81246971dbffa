"""Every command block of README.md, in order, in one shell, as a newcomer runs them: as root and as a user without rights.

The commands run as printed, but for CHANGES, which make seconds of minutes. A block whose fence says needs=MODULE runs where
Python has that module. A block of C is put into the file that its first line names.
"""
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import environment
from cifar10_files import write_cifar
from waiting import DEADLINE

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
SHORTER = 25  # times fewer steps
CHANGES = (
    (r"^make demo\b", f"make demo DEMO_ARGS=--steps={800 // SHORTER}"),
    (r"^make test\b", "make -n test"),  # that is what runs this
    (r"^(\S*tensorboard) ([^#]*).*", r"serves \1 \2"),  # until it serves, on any port
    (r"--max-steps 20000\b", "--max-steps 8"),
    (r"--batch-size 128\b", "--batch-size 4"),
    (r"(--(?:max|save-checkpoint)-steps |model\.ckpt-)(\d+00)\b", lambda m: f"{m[1]}{int(m[2]) // SHORTER}"),
)
SERVES = """
serves() {
    "$@" --port=0 >served.txt 2>&1 & server=$!
    until grep -q 'http://' served.txt; do kill -0 $server || { cat served.txt; return 1; }; sleep 0.1; done
    kill $server; wait $server || :
}
"""


def blocks():
    """[(line, language, needed module or None, text)] of README.md; whatever else a fence says is an error."""
    found, text = [], (ROOT / "README.md").read_text()
    for match in re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.M):
        fence = re.fullmatch(r"(sh|c)(?: needs=(\w+))?", match[1])
        line = text.count("\n", 0, match.start()) + 1
        assert fence, f"README.md:{line}: a block of '{match[1]}'; 'sh', 'sh needs=MODULE' and 'c' are tested"
        found.append((line, fence[1], fence[2], match[2]))
    return found


def shorter(text):
    for pattern, change in CHANGES:
        text = re.sub(pattern, change, text, flags=re.M)
    return text


def script(folder):
    """The shell script of all blocks, and how many of them stay out for want of a module."""
    lines, out = ["set -e", "trap 'kill $(jobs -p) 2>/dev/null || :' EXIT", SERVES], 0
    for line, language, module, text in blocks():
        if language == "c":
            (folder / re.match(r"/\* (\S+) \*/\n", text)[1]).write_text(text)
        elif module and not importlib.util.find_spec(module):
            out += 1
        else:
            lines += [f"echo '### README.md:{line}'", shorter(text)]
            if "make demo" in text and shutil.which("git"):
                lines.append('untracked=$(git status --porcelain); [ -z "$untracked" ] || { echo "$untracked"; exit 1; }')
    return "\n".join(lines), out


def copy(folder):
    """The checkout and what is built of it, as a newcomer has it after `make`; times stay, so that nothing is built anew."""
    shutil.copytree(ROOT, folder, symlinks=True, dirs_exist_ok=True, ignore=lambda where, names: {
        name for name in names if name in (".git", "__pycache__") or name.startswith("build-") or
        (pathlib.Path(where) == ROOT and name == "build") or (where.endswith("/demo") and name != "run.py")})
    # Without man pages and completions, which another test may be making just now.
    shutil.copytree(ROOT / "build", folder / "build", symlinks=True, ignore=shutil.ignore_patterns(
        "venv", "tests", "fuzz", "double", "screenshots", "gallery", "man", "completion", "documents.stamp"))
    (folder / "build/venv").symlink_to(ROOT / "build/venv")
    write_cifar(folder / "cifar-10-batches-bin")


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
    text, out = script(folder)
    try:
        environment.require_localhost()
    except RuntimeError:  # the demo says so too
        text = re.sub("^serves .*", ":", text, flags=re.M)
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
    assert said.count("### README.md:") + out == sum(language == "sh" for _, language, *_ in blocks())
    for name, steps in (("mpi", 11), ("ps", 11), ("resnet", 3)):
        assert len((folder / f"runs/{name}/eval/evaluations.jsonl").read_text().splitlines()) == steps, name
    if out:
        pytest.skip(f"all but {out} of README.md's blocks, whose modules are not installed")
