#!/usr/bin/env python3
"""Builds the last commit in two folders whose names differ in length, and compares what comes out byte by byte: programs,
libraries, man pages, completions, the wheel, the static eventlog, the source archive.

usage: reproducible.py [--packages] [--jobs N] [--keep DIR] [PART=0...]

--packages builds Debian's packages instead, which needs what debian/control lists. PART=0 leaves parts out, as in make.
SOURCE_DATE_EPOCH is the commit's time. Locale, time zone and umask differ as well.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MADE = ("build/bin/*", "build/product/*", "build/man/*/*", "build/completion/*/*", "build/evalboard-*.whl", "build/static/eventlog",
        "build/evalboard-*.tar.gz", "../*.deb")


def git(*words):
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


def build(folder, surroundings, options):
    """{name: SHA-256} of what a build in the folder makes."""
    subprocess.run(["git", "clone", "-q", "--no-checkout", ROOT, folder], check=True)
    subprocess.run(["git", "checkout", "-q", "--detach", options.commit], cwd=folder, check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    own.update(surroundings, SOURCE_DATE_EPOCH=git("log", "-1", "--format=%ct", options.commit), CCACHE_DISABLE="1")

    def run(*words):
        with open(folder.parent / "said", "a") as said:
            if subprocess.run(words, cwd=folder, stdout=said, stderr=subprocess.STDOUT, env=own).returncode:
                sys.exit(f"reproducible.py: {' '.join(words)}: failed; see {said.name}")

    umask = os.umask(int(surroundings["UMASK"], 8))
    if options.packages:
        run("dpkg-buildpackage", "-b", "-us", "-uc", f"-j{options.jobs}")
    else:
        for target in ("all", "documents", "wheel", "static", "dist"):
            run("make", f"-j{options.jobs}", *options.parts, target)
    os.umask(umask)
    return hashes(folder)


def hashes(folder):
    files = sorted(path for pattern in MADE for path in folder.glob(pattern) if path.is_file() and not path.is_symlink())
    return {path.name if path.suffix == ".deb" else str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files if "debian" not in path.parts}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", action="store_true", help="Debian's packages instead")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", type=pathlib.Path, help="build below DIR, and leave it there")
    parser.add_argument("parts", nargs="*", metavar="PART=0", help="leave that part out")
    options = parser.parse_args()
    options.commit = git("rev-parse", "HEAD")
    work = options.keep or pathlib.Path(tempfile.mkdtemp(prefix="evalboard-reproducible-"))
    (work / "a").mkdir(parents=True)
    (work / "another/folder").mkdir(parents=True)
    first = build(work / "a/e", {"LC_ALL": "C.UTF-8", "TZ": "UTC", "UMASK": "022"}, options)
    second = build(work / "another/folder/evalboard", {"LC_ALL": "C", "TZ": "Asia/Tokyo", "UMASK": "002"}, options)
    different = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    for name in different:
        print(f"{name}: differs")
    print(f"{len(first)} files, {len(different)} of them differ")
    if not options.keep and not different:
        shutil.rmtree(work)
    elif different:
        print(f"both builds are in {work}")
    sys.exit(bool(different or not first))


if __name__ == "__main__":
    main()
