"""Runs `eventlog`, and its commands that write and export."""
import os
import pathlib
import subprocess

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin/eventlog"


def run(*arguments, status=0, text=None):
    done = subprocess.run([TOOL, *map(str, arguments)], input=text, capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return done


def write(directory, *arguments, **more):
    return run("write", "--dir", directory, *arguments, **more)


def export(directory, *arguments):
    return run("export", directory, *arguments).stdout
