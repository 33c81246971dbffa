#!/usr/bin/env python3
"""Runs the tests that PyTorch or tensorboardX have of their own SummaryWriter on evalboard's: unmodified but for the import.

    EVALBOARD_BUILD=build build/venv/bin/python tests/python/other_writers_tests.py PATH...

PATH: test/test_tensorboard.py of a checkout of PyTorch, or files of tests/ of one of tensorboardX. They are copied, with
what is read beside them, into a scratch directory, where imports of the writers lead to this package; imports of the
others' private modules stay. The rest of the command line from `--` on is pytest's. Which tests fail, and why, is in
docs/python.md.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import python_package  # noqa: E402

# Whose modules, and which of their names are ours: what else a test imports, such as _convert_np, is not the writer.
MODULES = {"torch.utils.tensorboard": ("evalboard", {"summary", "SummaryWriter", "FileWriter"}),
           "torch.utils.tensorboard.summary": ("evalboard.summary", {"int_to_half", "tensor_proto"}),
           "tensorboardX": ("evalboard.tensorboardX", {"SummaryWriter", "FileWriter", "GlobalSummaryWriter"})}


def changed(match):
    """An import, of our names from our module."""
    indent, module, names = match.groups()
    ours, known = MODULES[module]
    parts = [name.strip() for name in names.split(",")]
    lines = [(where, [p for p in parts if (p.split()[0] in known) == (where == ours)]) for where in (ours, module)]
    return "; ".join(f"from {where} import {', '.join(some)}" for where, some in lines if some).join((indent, ""))


def main(arguments):
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    paths = [pathlib.Path(argument) for argument in arguments[:cut]]
    if not paths or any(not path.is_file() for path in paths):
        sys.exit(__doc__)
    modules = "|".join(map(re.escape, sorted(MODULES, reverse=True)))
    with tempfile.TemporaryDirectory() as scratch:
        copies, environment = [], python_package.environment()
        for path in paths:
            folder = pathlib.Path(scratch) / path.resolve().parent.name
            if not folder.exists():
                folder.mkdir()
                for pattern in ("expect*", "__init__.py", "*.onnx"):
                    for beside in path.parent.glob(pattern):
                        (shutil.copytree if beside.is_dir() else shutil.copy)(beside, folder / beside.name)
                checkout = path.resolve().parents[1]
                if (checkout / "examples").is_dir():
                    (folder.parent / "examples").symlink_to(checkout / "examples")
                if (checkout / "tensorboardX").is_dir():  # what stays theirs is of the same version
                    environment["PYTHONPATH"] += f":{checkout}"
            text = re.sub(rf"^([ \t]*)from ({modules}) import ([\w, ]+)$", changed, path.read_text(), flags=re.MULTILINE)
            copies.append(folder / path.name)
            copies[-1].write_text(text)
        return subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments[cut + 1:], *copies],
                              cwd=scratch, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
