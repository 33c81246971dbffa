#!/usr/bin/env python3
"""Prints how many lines and branches of FOLDERS the tests ran, from what a build with gcc's --coverage left in its folder.

usage: coverage.py --build DIR [--uncovered WORD]        called by `make coverage`; exits with 1 if a folder is below LEAST

A branch is one outcome of one condition, as gcov counts them: `if (a && b)` has four. No markers exclude any. What several
programs contain, such as the functions of a header, is covered if one of them ran it.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# checkpoint/tool is left out: it holds commands, which print what these find, and not the code that reads foreign bytes.
FOLDERS = ("eventlog/format", "eventlog/read", "eventlog/check", "checkpoint", "checkpoint/directory")
LEAST = 95  # percent of the branches of each folder


def folder_of(name):
    return os.path.dirname(name)


def measured(build):
    """{file: (times that each line ran, times that each branch was taken)} for the files of FOLDERS."""
    found = {}
    notes = [note for folder in FOLDERS for note in sorted((build / folder).glob("*.gcno"))]
    if not notes:
        sys.exit(f"coverage.py: nothing is built in {build}")
    run = subprocess.run([os.environ.get("GCOV", "gcov"), "--json-format", "--stdout", "--branch-probabilities", *notes],
                         cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode:
        sys.exit(f"coverage.py: gcov cannot read {build}; `make clean` if it is of another compiler or of older sources\n{run.stderr}")
    for source in (source for unit in run.stdout.splitlines() for source in json.loads(unit)["files"]):
        if folder_of(source["file"]) not in FOLDERS:
            continue
        lines, branches = found.setdefault(source["file"], (collections.Counter(), collections.Counter()))
        for line in source["lines"]:
            lines[line["line_number"]] += line["count"]
            for number, branch in enumerate(line["branches"]):
                branches[line["line_number"], number] += branch["count"]
    return found


def share(counters):
    counts = [count for counter in counters for count in counter.values()]
    return 100 * sum(count > 0 for count in counts) / len(counts) if counts else 100.0


def row(name, files):
    lines, branches = (share(file[i] for file in files) for i in (0, 1))
    print(f"{name:44}{lines:7.1f} %{branches:9.1f} %")
    return branches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--uncovered", metavar="WORD", help="also FILE:LINE of the branches not taken in files with this in their names")
    options = parser.parse_args()
    found, low = measured(options.build.resolve()), []
    print(f"{'':44}{'lines':>9}{'branches':>11}")
    for folder in FOLDERS:
        files = {name: found[name] for name in sorted(found) if folder_of(name) == folder}
        for name, file in files.items():
            row(f"  {name}", [file])
        if row(folder, files.values()) < LEAST:
            low.append(folder)
    for name in sorted(found):
        if options.uncovered and options.uncovered in name:
            text = (ROOT / name).read_text().splitlines()
            missed = collections.Counter(line for (line, _), count in found[name][1].items() if not count)
            for line in sorted(missed):
                print(f"{name}:{line}: {missed[line]} not taken: {text[line - 1].strip()}")
    if low:
        sys.exit(f"coverage.py: less than {LEAST} % of the branches are taken in {', '.join(low)}")


if __name__ == "__main__":
    main()
