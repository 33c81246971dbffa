"""How soon the programs answer: --help, an evaluator until it watches, a trainer until its first step is done, and from
the rename of a checkpoint's index to the start of its evaluation. Prints medians beside what is wanted, in the same run
beside a process that does nothing (/bin/true) and the import with which every TensorFlow evaluator begins.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import programs
import summary


def seconds_until(command, mark=None, stop=True):
    """Seconds from starting the command until `mark` stands in its standard error (None: until it ends)."""
    started = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=programs.ENVIRONMENT)
    for line in iter(process.stderr.readline, b""):
        if mark and mark in line.decode(errors="replace"):
            break
    taken = time.monotonic() - started
    if stop and mark:
        process.terminate()
    process.stderr.read()
    process.wait()
    return taken


def row(name, wanted_ms, figures, peer=None, peer_name="", roof=None, limit="system calls"):
    """Prints a row, and adds it to the summary where something is wanted. peer, roof: milliseconds. Returns the median."""
    milliseconds = sorted(1000 * x for x in figures)
    wanted = f"{wanted_ms:.0f}" if wanted_ms else "-"
    print(f"{name:58}{statistics.median(milliseconds):10.1f}{milliseconds[0]:10.1f}{milliseconds[-1]:10.1f}{wanted:>8}",
          flush=True)
    middle = statistics.median(milliseconds)
    if wanted_ms:
        summary.add(f"start-up: {name}", "ms", middle, peer, peer_name, roof, limit, milliseconds)
    return middle


def latency(binaries, writer, times):
    """Seconds from an index's last change (its rename) to the start of its evaluation: `lag` in the ledger. The next
    checkpoint is written when the one before is done, so the evaluator is idle each time."""
    with tempfile.TemporaryDirectory() as directory:
        where = pathlib.Path(directory)
        (where / "ckpt").mkdir()
        evaluator = subprocess.Popen([binaries / "evaluator", "--checkpoint-dir", where / "ckpt", "--eval-dir",
                                      where / "eval", "--model", "lenet", "--data", "fashion-mnist",
                                      "--num-examples", "100", "--forever"], stderr=subprocess.DEVNULL,
                                     env=programs.ENVIRONMENT)
        ledger, lines = where / "eval" / "evaluations.jsonl", []
        try:
            for step in range(1, times + 1):
                subprocess.run([writer, "--directory", where / "ckpt", "--first", str(step), "--last", str(step)],
                               check=True, stdout=subprocess.DEVNULL)
                deadline = time.monotonic() + 10
                while len(lines) < step and time.monotonic() < deadline:
                    lines = ledger.read_text().splitlines() if ledger.exists() else []
                    time.sleep(0.001)
        finally:
            evaluator.terminate()
            evaluator.wait()
    return [json.loads(line)["lag"] for line in lines[1:]]  # the first one waits for the data set to be read


def run(options):
    binaries, times = pathlib.Path(options.build) / "bin", 15
    writer = programs.helper(options.build, "tests/programs/write_checkpoint")
    print(f"\nstart-up, milliseconds, {times} times each\n{'':58}{'median':>10}{'least':>10}{'most':>10}{'wanted':>8}")
    least = row("/bin/true", None, [seconds_until(["/bin/true"]) for _ in range(times)])
    theirs = None
    try:
        python = programs.peer_python("tensorflow")
        theirs = row("python -c 'import tensorflow'", None, [seconds_until([python, "-c", "import tensorflow"]) for _ in range(3)])
    except programs.Missing as missing:
        print(missing)
    peer = (theirs, "import tensorflow" if theirs else "", least)
    for program in ("trainer", "evaluator", "eventlog"):
        row(f"{program} --help", 3, [seconds_until([binaries / program, "--help"]) for _ in range(times)], roof=least)
    with tempfile.TemporaryDirectory() as directory:
        where = pathlib.Path(directory)
        (where / "empty").mkdir()
        data = ["--model", "lenet", "--data", "fashion-mnist"]
        row("evaluator on an empty directory until it watches", 15, [
            seconds_until([binaries / "evaluator", "--checkpoint-dir", where / "empty", "--eval-dir", where / "eval",
                           *data], "watching") for _ in range(times)], *peer)
        row("trainer, one rank, until lenet's first step is done", 300, [
            seconds_until([binaries / "trainer", *data, "--max-steps", "1000", "--log-every", "1"], "step: 1,")
            for _ in range(times)], *peer, "compute")
    row("rename of the index to the start of its evaluation", 50, latency(binaries, writer, 200))
    return True
