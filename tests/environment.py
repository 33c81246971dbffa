#!/usr/bin/env python3
"""Makes a virtual environment with the packages of some requirement files; does nothing where it is made already.

usage: environment.py DIRECTORY REQUIREMENTS...      prints the environment's python

The demo asks for TensorBoard only; the tests for more; PEERS=all for TensorFlow, PyTorch and safetensors as well.
What is installed already stays, so asking for less later costs nothing.
"""
import hashlib
import pathlib
import socket
import subprocess
import sys
import venv

import progress


def ensure(directory, requirements, say=lambda text: print(text, file=sys.stderr)):
    """Returns the path of the environment's python. Raises RuntimeError where pip fails; its own words are on stderr."""
    directory = pathlib.Path(directory)
    python = directory / "bin" / "python"
    wanted = []
    for path in map(pathlib.Path, requirements):
        stamp = directory / f".{path.stem}-{hashlib.sha256(path.read_bytes()).hexdigest()[:16]}"
        if not stamp.exists():
            wanted.append((path, stamp))
    if not python.exists():
        say(f"making the virtual environment {directory}")
        with progress.running(f"python3 -m venv {directory}", say):
            venv.create(directory, with_pip=True)
    for path, stamp in wanted:
        lines = [line.strip() for line in path.read_text().splitlines()]
        names = " ".join(line for line in lines if line and not line.startswith("#"))
        say(f"installing into {directory} (from PyPI): {names}")
        with progress.running("pip install", say):
            run = subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", path],
                                 stdout=sys.stderr)
        if run.returncode:
            raise RuntimeError(f"pip could not install {names} (what it said stands above); is PyPI reachable?")
        stamp.touch()
    return python


def require_localhost():
    """RuntimeError where the name is unknown, as in a root without /etc/hosts: there TensorBoard does not start."""
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        raise RuntimeError("TensorBoard needs the name localhost, which this machine does not know; add the line "
                           "'127.0.0.1 localhost' to /etc/hosts") from None


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    try:
        print(ensure(sys.argv[1], sys.argv[2:]))
    except RuntimeError as error:
        sys.exit(f"environment.py: {error}")
