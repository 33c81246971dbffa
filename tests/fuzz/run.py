#!/usr/bin/env python3
"""Runs every fuzzer of a directory for some seconds, two at a time, and fails if one finds a crash.

usage: run.py --seconds N DIRECTORY      the corpus grows in DIRECTORY/corpus-<name>, crashes land in DIRECTORY

It begins with the inputs of tests/fuzz/corpus; keep.py takes new ones there.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

import keep


def fuzz(program, seconds):
    corpus = program.parent / f"corpus-{program.name}"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(keep.inputs(program.name)):
        (corpus / f"kept-{number}").write_bytes(data)
    run = subprocess.run([program, f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=65536",
                          f"-artifact_prefix={program.parent}/{program.name}-", "-print_final_stats=1", corpus],
                         capture_output=True, text=True, errors="replace")
    executed = re.search(r"number_of_executed_units:\s*(\d+)", run.stderr)
    print(f"  {'ok  ' if run.returncode == 0 else 'FAIL'} {program.name}: "
          f"{executed.group(1) if executed else '?'} inputs, {len(list(corpus.iterdir()))} kept", flush=True)
    if run.returncode:
        print(run.stderr[-4000:], file=sys.stderr)
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    programs = sorted(p for p in options.directory.iterdir()
                      if p.is_file() and os.access(p, os.X_OK) and "." not in p.name and "-" not in p.name)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        good = list(pool.map(lambda p: fuzz(p, options.seconds), programs))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    sys.exit(0 if programs and all(good) else 1)


main()
