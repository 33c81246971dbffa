#!/usr/bin/env python3
"""Runs the steps of Containerfile without a container runtime: each stage is a copy of a root of debootstrap, each RUN a
chroot into it, COPY a copy, and the command at the end is run as USER.

usage: containerfile.py ROOT WORK [COMMAND...]

ROOT is a bare root of the distribution that FROM names, WORK an empty folder with room for two of them. Root rights are
needed. Instead of CMD, COMMAND is run. What is committed is the context, as a checkout has it.
"""
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parents[2]


def steps(text):
    """[(word, rest)] of a Containerfile."""
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.M).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in text.splitlines() if line.strip()]


class Stage:
    def __init__(self, root, path):
        subprocess.run(["cp", "-a", root, path], check=True)
        shutil.copy("/etc/resolv.conf", path / "etc/resolv.conf")
        self.path, self.directory, self.user = path, "/", "root"

    def run(self, command):
        """In the stage's directory, as its user."""
        words = ["chroot", self.path, "/bin/sh", "-c", f"cd {self.directory} && {command}"] if self.user == "root" else \
            ["chroot", self.path, "su", self.user, "-c", f"cd {self.directory} && {command}"]
        return subprocess.run(words, env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8",
                                          "DEBIAN_FRONTEND": "noninteractive"}, check=False).returncode


def main():
    root, work, command = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
    work.mkdir(exist_ok=True)
    stages, stage, default = {}, None, []
    for word, rest in steps((HERE / "Containerfile").read_text()):
        print(f"{word} {rest}", flush=True)
        if word == "FROM":
            name = rest.partition(" AS ")[2] or "last"
            stage = stages[name] = Stage(root, work / name)
        elif word == "RUN":
            if stage.run(rest):
                sys.exit(f"containerfile.py: failed: {rest}")
        elif word == "WORKDIR":
            stage.directory = rest
            (stage.path / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif word == "USER":
            stage.user = rest
        elif word == "COPY" and rest == ". .":
            archive = subprocess.run(["git", "archive", "HEAD"], cwd=HERE, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", stage.path / stage.directory.lstrip("/")], input=archive, check=True)
        elif word == "COPY":
            source, place, to = re.fullmatch(r"--from=(\w+) (\S+) (\S+)", rest).groups()
            subprocess.run(["cp", "-a", f"{stages[source].path}{place}/.", f"{stage.path}{to}"], check=True)
        elif word == "CMD":
            default = json.loads(rest)
        else:
            sys.exit(f"containerfile.py: {word} is not known")
    print(f"size: {sum(p.lstat().st_size for p in stage.path.rglob('*')) >> 20} MiB", flush=True)
    sys.exit(stage.run(" ".join(map(shlex.quote, command or default))))


if __name__ == "__main__":
    main()
