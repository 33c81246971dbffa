#!/usr/bin/env python3
"""Runs fuzzers of a directory, two at a time, and fails if one finds a crash.

usage: run.py --seconds N DIRECTORY      all of them, N seconds each
       run.py --count N DIRECTORY        those of files that are made from decisions (made_*), N inputs each; none may
                                         take more than 5 s or 1 GiB

The corpus grows in DIRECTORY/corpus-<name>, crashes land in DIRECTORY. It begins with the inputs of tests/fuzz/corpus;
keep.py takes new ones there.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

import keep

TOLD_EVERY = 10  # seconds
DECISIONS = 1024  # bytes: enough for most files
SEEDS = 100


def limits(options):
    if options.count is None:
        return [f"-max_total_time={options.seconds}", "-timeout=20", "-rss_limit_mb=2048", "-max_len=65536"]
    return [f"-runs={options.count}", "-timeout=5", "-rss_limit_mb=1024", f"-max_len={4 * DECISIONS}", "-len_control=0"]


def begin_corpus(program, options):
    corpus = program.parent / f"corpus-{program.name}"
    corpus.mkdir(exist_ok=True)
    for number, data in enumerate(keep.inputs(program.name)):
        (corpus / f"kept-{number}").write_bytes(data)
    for number in range(SEEDS if options.count else 0):
        (corpus / f"seed-{number}").write_bytes(random.Random(number).randbytes(DECISIONS))
    return corpus


class Output:
    """What a fuzzer says: its end is kept, and how far it is."""

    def __init__(self, stream):
        self.lines, self.reached = [], ""
        self.thread = threading.Thread(target=self.read, args=(stream,))
        self.thread.start()

    def read(self, stream):
        for line in stream:
            self.lines = [*self.lines[-200:], line]
            if found := re.match(r"#(\d+)\s.*cov: (\d+)", line):
                self.reached = f"{found.group(1)} inputs, coverage {found.group(2)}"

    def statistic(self, name):
        found = [m.group(1) for line in self.lines if (m := re.match(rf"stat::{name}:\s*(\d+)", line))]
        return found[0] if found else "?"


def fuzz(program, options):
    corpus = begin_corpus(program, options)
    begin = told = time.monotonic()
    run = subprocess.Popen([program, *limits(options), f"-artifact_prefix={program.parent}/{program.name}-",
                            "-print_final_stats=1", corpus],
                           # Freed memory is kept apart for a while; 256 MiB of it would cost half of the speed.
                           env={**os.environ, "ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=8"},
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    output = Output(run.stderr)
    while output.thread.is_alive():
        output.thread.join(1)
        if options.count and time.monotonic() - told >= TOLD_EVERY:
            told = time.monotonic()
            print(f"       {program.name}: {told - begin:.0f} s, {output.reached or 'nothing yet'}", flush=True)
    good = run.wait() == 0
    summary = f"{output.statistic('number_of_executed_units')} inputs"
    if options.count:
        summary += (f", {output.reached.partition(', ')[2]}, slowest {output.statistic('slowest_unit_time_sec')} s, "
                    f"{output.statistic('peak_rss_mb')} MiB at most, {time.monotonic() - begin:.0f} s")
    print(f"  {'ok  ' if good else 'FAIL'} {program.name}: {summary}, {len(list(corpus.iterdir()))} kept", flush=True)
    if not good:
        print("".join(output.lines)[-4000:], file=sys.stderr)
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--count", type=int)
    parser.add_argument("directory", type=pathlib.Path)
    options = parser.parse_args()
    programs = sorted(p for p in options.directory.glob("made_*" if options.count else "*")
                      if p.is_file() and os.access(p, os.X_OK) and "." not in p.name and "-" not in p.name)
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        good = list(pool.map(lambda p: fuzz(p, options), programs))
    print(f"{sum(good)} passed, {len(good) - sum(good)} failed")
    sys.exit(0 if programs and all(good) else 1)


main()
