#!/usr/bin/env python3
"""Runs all tests and prints last `N passed, N failed, N skipped`. Called by `make test`.

usage: run.py --build DIR [--peers all] [--sanitizer NAMES] [--only WORD] [--folders FOLDERS] TEST_PROGRAM...

First what the Python tests need is installed into build/venv, and that is said. Then come lint, the C test programs (two
at a time) and the Python tests: mpi/ (ranks under mpirun), faults/ (killed processes), evaluator/, checkpoint/ and tool/
(programs by their command lines), peers/ (TensorBoard and a browser; with --peers all also TensorFlow, PyTorch,
safetensors), newcomer/ (make, make install and README as a newcomer has them), abi/ (how libraries are compiled)
and runner/ (what runs the tests). Where nothing else is printed, a line says every few seconds what is running.
With --sanitizer only the C test programs run: they are what was built with it.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import environment
import progress

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEADLINE = 600  # seconds for one C test program


def say(text):
    print(text, flush=True)


class Count(collections.Counter):
    def line(self):
        return f"{self['passed']} passed, {self['failed']} failed, {self['skipped']} skipped"


def run_c_test(program, variables, told):
    """Runs a cmocka program; returns (Count, seconds, text to show)."""
    count, started = Count(), time.monotonic()
    told.begin(program)
    try:
        run = subprocess.run([program], capture_output=True, text=True, errors="replace", timeout=DEADLINE,
                             env={**os.environ, **variables, "CMOCKA_MESSAGE_OUTPUT": "TAP"})
        output, status = run.stdout + run.stderr, run.returncode
    except subprocess.TimeoutExpired as timeout:
        output, status = str(timeout), -1
    told.end(program)
    for line in output.splitlines():
        if match := re.match(r"(not )?ok \d+(.*)", line):
            count["skipped" if "# SKIP" in match.group(2) else "failed" if match.group(1) else "passed"] += 1
    # A program that dies, or that a sanitizer stops, fails even when no test of it said so.
    if status and not count["failed"]:
        count["failed"] += 1
    if not count:
        count["failed"] += 1
        output += "\nno test ran"
    show = output if count["failed"] else "\n".join(x for x in output.splitlines() if "# SKIP" in x)
    return count, time.monotonic() - started, show


# The files that take longest first, so that no worker is left alone with one.
FOLDERS = ("tests/newcomer", "tests/peers/test_tensorboard_page.py", "tests/mpi", "tests/faults", "tests/evaluator",
           "tests/peers", "tests/tool", "tests/checkpoint", "tests/python", "tests/abi", "tests/runner")


def c_tests(programs, sanitizer):
    # For libraries that are loaded late LeakSanitizer guesses where their thread-local memory is, and dies of bad guesses
    # ("Tracer caught signal 11"). Without guesses all leaks are found still.
    variables = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "ASAN_OPTIONS": "intercept_tls_get_addr=0",
                 "TSAN_OPTIONS": "halt_on_error=1", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    total = Count()
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool, progress.Progress(say) as told:
        for program, (count, seconds, show) in zip(programs, pool.map(lambda p: run_c_test(p, variables, told), programs)):
            total += count
            told.said()
            print(f"  {'FAIL' if count['failed'] else 'ok  '} {program}: {count.line()} ({seconds:.1f} s)", flush=True)
            if show:
                print("\n".join("       " + line for line in show.splitlines()[-60:]), flush=True)
    return total


def python_tests(build, python, only, folders):
    """One pytest over the folders, three files at a time, as most tests wait; its JUnit file is counted."""
    report = pathlib.Path(build) / "pytest.xml"
    report.unlink(missing_ok=True)
    variables = {"EVALBOARD_BUILD": str(build), "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3",
                 "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [str(python), "-m", "pytest", "-q", "-rsfE", "--durations=15", "-p", "no:cacheprovider", f"--junitxml={report}",
               "-n", "3", "--dist", "loadfile", "--no-loadscope-reorder", *(["-k", only] if only else []), *folders]
    status = subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}).returncode
    count = Count()
    if report.exists():
        for suite in xml.etree.ElementTree.parse(report).getroot().iter("testsuite"):
            bad = int(suite.get("failures")) + int(suite.get("errors"))
            count["failed"] += bad
            count["skipped"] += int(suite.get("skipped"))
            count["passed"] += int(suite.get("tests")) - bad - int(suite.get("skipped"))
    if status not in (0, 1, 5) or (status == 1 and not count["failed"]):
        count["failed"] += 1
    return count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--peers", default="")
    parser.add_argument("--sanitizer", default="")
    parser.add_argument("--only", default="", help="pytest's -k, and part of the names of C test programs")
    parser.add_argument("--folders", default="", help="of Python tests, or files, instead of all; without lint")
    parser.add_argument("programs", nargs="*")
    options = parser.parse_args()
    os.chdir(ROOT)
    for name in "MAKEFLAGS", "MFLAGS", "MAKELEVEL":  # the jobs of the make around are not for those that tests start
        os.environ.pop(name, None)
    total, started, python = Count(), time.monotonic(), None

    if not options.sanitizer:
        requirements = ["tensorboard", "test"] + (["peers"] if options.peers == "all" else [])
        try:
            python = environment.ensure("build/venv", [f"tests/requirements/{name}.txt" for name in requirements], say)
        except RuntimeError as error:
            say(f"the Python tests will not run: {error}")
            total["failed"] += 1
    if not options.only and not options.folders and not options.sanitizer:
        with progress.running("make lint", say):
            status = subprocess.run(["make", "-s", "lint"]).returncode
        total["failed" if status else "passed"] += 1
    programs = [p for p in options.programs if options.only in p]
    print(f"C tests{' with ' + options.sanitizer if options.sanitizer else ''}:", flush=True)
    total += c_tests(programs, options.sanitizer)
    if python:
        say("Python tests:")
        total += python_tests(options.build, python, options.only, options.folders.split() or FOLDERS)
    print(f"{time.monotonic() - started:.0f} seconds")
    print(total.line())
    sys.exit(1 if total["failed"] else 0)


main()
