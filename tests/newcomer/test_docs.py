"""Every command block of the pages in docs/, in order, in one shell, beside a build."""
import os
import pathlib
import shutil
import sys

import pytest

import markdown_commands

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What the pages about logs and checkpoints find: a training with its evaluation, a run that diverged, one that was restarted
# and three seeds.
LOGS = r"""
trainer --quiet --model lenet --data fashion-mnist --batch-size 8 --max-steps 8 --save-checkpoint-steps 4 \
    --checkpoint-dir ckpt/mpi --log-dir runs/mpi/train
evaluator --checkpoint-dir ckpt/mpi --eval-dir runs/mpi/eval --model lenet --data fashion-mnist --num-examples 100
points() { seq $2 $3 | sed 's/.*/{"step":&,"loss":0.5}/' | eventlog write --new --dir runs/$1 -; }
printf '%s\n' step,loss 1,0.5 2,nan 3,nan | eventlog write --dir runs/diverged -
points restarted 0 29
points restarted 20 49
for seed in 1 2 3; do points seed-$seed 1 10; done
"""
DAMAGED = """
points damaged 1 50
printf x | dd of="$(ls runs/damaged/events*)" bs=1 seek=900 conv=notrunc
"""


@pytest.fixture
def checkout(tmp_path):
    """A directory like the checkout with a build of its own, which its `make install` may change."""
    folder = tmp_path / "evalboard"
    shutil.copytree(ROOT / "build", folder / "build", symlinks=True,
                    ignore=shutil.ignore_patterns("venv", "tests", "fuzz", "double", "screenshots", "gallery"))
    for path in ROOT.iterdir():
        if path.name != "build" and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    return folder


def run(page, folder, before=""):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    own |= {"HOME": str(folder.parent), "LC_ALL": "C.UTF-8",
            "PATH": f"{ROOT}/build/bin:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
    own.pop("COLUMNS", None)
    if out := markdown_commands.run(ROOT / "docs" / page, folder, own, before):
        pytest.skip(f"all but {', '.join(out)}, whose modules are not installed")


def test_tutorial(checkout):
    run("tutorial.md", checkout)


def test_troubleshooting(tmp_path):
    run("troubleshooting.md", tmp_path, LOGS + DAMAGED)


def test_model_files(tmp_path):
    run("model-files.md", tmp_path)


def test_data(checkout):
    run("data.md", checkout)


def test_plan(tmp_path):
    run("plan.md", tmp_path)


def test_several_hosts(tmp_path):
    run("several-hosts.md", tmp_path)


def test_strategies(tmp_path):
    run("strategies.md", tmp_path)


def test_python(checkout):
    """With a make that installs the wheel of this checkout, as the page's first commands do."""
    run("python.md", checkout)


def test_comparison(tmp_path):
    run("comparison.md", tmp_path, LOGS)
