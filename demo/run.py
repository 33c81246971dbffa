#!/usr/bin/env python3
"""The main job on real data: LeNet on Fashion-MNIST, trained twice - all-reduce (mpi) and parameter server (ps) -
with an evaluator beside each training that scores every checkpoint while the training goes on.

usage: run.py --build DIR [--out DIR] [--steps N] [--open]       (`make demo` calls it; DEMO_ARGS=--open opens the page)
"""
import argparse
import json
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import environment  # noqa: E402

BATCH = 128          # samples a worker and step; two workers
SAVE_STEPS = 50
OPTIMIZER = ["--optimizer", "adam", "--learning-rate", "0.004"]
# Each run has a seed of its own, so that its curve is its own: with one seed the synchronous strategies add the same
# numbers in the same order and end with the same weights to the bit, and one curve would hide the other.
RUNS = (             # name, ranks, what it is, options of the trainer
    ("mpi", 2, "2 ranks, gradients summed by all-reduce", ["--seed", "1"]),
    ("ps", 3, "2 workers and 1 parameter server", ["--servers", "1", "--seed", "2"]),
)


def say(text):
    print(text, flush=True)


def last_line(path, mark):
    """The last line of a growing file that holds `mark`, or None."""
    try:
        lines = [line for line in path.read_text(errors="replace").splitlines() if mark in line]
    except OSError:
        return None
    return lines[-1] if lines else None


def ledger(path):
    """The evaluator's ledger: the evaluated checkpoints, in order. A line still being written is left out."""
    try:
        text = path.read_text()
    except OSError:
        return []
    lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [line for line in lines if "metrics" in line and "precision" in (line["metrics"] or {})]


def after(line, word):
    """The number behind `word` in a log line: after("step: 7, loss: 1.2", "loss: ") = 1.2."""
    return float(line.split(word, 1)[1].split(",")[0]) if line and word in line else None


class Progress:
    """One line that is rewritten on a terminal, a line every few seconds elsewhere."""

    def __init__(self):
        self.terminal, self.next = sys.stderr.isatty(), 0.0

    def show(self, text, end=False):
        now = time.monotonic()
        if now < self.next and not end:
            return
        self.next = now + (0.2 if self.terminal else 4)
        if self.terminal:
            sys.stderr.write("\r\033[K" + text + ("\n" if end else ""))
            sys.stderr.flush()
        else:
            say(text)


def train_and_evaluate(options, name, ranks, what, extra):
    """Runs one training with an evaluator beside it; returns the trainer's summary and the ledger."""
    out, binaries = options.out, options.build / "bin"
    checkpoints, logs = out / "checkpoints" / name, out / "runs" / name
    (out / "output").mkdir(parents=True, exist_ok=True)
    trainer_output, evaluator_output = (out / "output" / f"{name}-{part}.txt" for part in ("trainer", "evaluator"))
    summary_file = out / "output" / f"{name}-summary.json"
    data = ["--model", "lenet", "--data", "fashion-mnist"]
    mpirun = ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    trainer = [*mpirun, binaries / "trainer", "--run-option", name, *data, "--batch-size", BATCH, *extra, *OPTIMIZER,
               "--checkpoint-dir", checkpoints, "--save-checkpoint-steps", SAVE_STEPS, "--keep", 0,
               "--log-dir", logs / "train", "--log-every", 10, "--max-steps", options.steps, "--json"]
    evaluator = [binaries / "evaluator", *data, "--checkpoint-dir", checkpoints, "--eval-dir", logs / "eval"]
    trainer, evaluator = [str(word) for word in trainer], [str(word) for word in evaluator]

    say(f"\n{name}: {what}\n  {shlex.join(evaluator)} &\n  {shlex.join(trainer)}")
    started, progress = time.monotonic(), Progress()
    variables = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with open(trainer_output, "w") as told, open(evaluator_output, "w") as scored, open(summary_file, "w") as summary:
        processes = {"evaluator": subprocess.Popen(evaluator, stdout=scored, stderr=scored, start_new_session=True),
                     "trainer": subprocess.Popen(trainer, stdout=summary, stderr=told, env=variables,
                                                 start_new_session=True)}
        try:
            while any(p.poll() is None for p in processes.values()):
                for part, process in processes.items():
                    if process.poll():
                        raise RuntimeError(f"{part} failed with status {process.returncode}")
                line, done = last_line(trainer_output, "step: "), ledger(logs / "eval" / "evaluations.jsonl")
                text = f"  {name}: starting" if line is None else (
                    f"  {name}: step {after(line, 'step: '):.0f} of {options.steps}, loss {after(line, 'loss: '):.3f}, "
                    f"training precision {after(line, ' precision: '):.3f}")
                if done:
                    best = max(done, key=lambda x: x["metrics"]["precision"])
                    text += (f" | {len(done)} checkpoints evaluated, precision {done[-1]['metrics']['precision']:.4f} at "
                             f"step {done[-1]['step']}, best {best['metrics']['precision']:.4f}")
                progress.show(text)
                time.sleep(0.1)
            progress.show(text, end=True)
        except BaseException:
            for process in processes.values():
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
            for part in (trainer_output, evaluator_output):
                sys.stderr.write(f"\n--- end of {part}\n" + "\n".join(part.read_text().splitlines()[-8:]) + "\n")
            raise
    for part, process in processes.items():
        if process.returncode:
            sys.exit(f"demo: the {part} of {name} ended with status {process.returncode}; see {out}/output")
    done = ledger(logs / "eval" / "evaluations.jsonl")
    say(f"  {len(done)} checkpoints, all evaluated, in {time.monotonic() - started:.1f} s")
    return json.loads(summary_file.read_text().splitlines()[-1]), done


def table(results):
    head = ["run", "steps", "steps/s", "images/s", "checkpoints", "final precision", "best precision", "bytes sent a step"]
    rows = [head]
    for name, (summary, done) in results.items():
        rows.append([name, f"{summary['global_step']}", f"{summary['steps_per_second']:.1f}",
                     f"{summary['images_per_second']:.0f}", f"{len(done)}", f"{done[-1]['metrics']['precision']:.4f}",
                     f"{max(x['metrics']['precision'] for x in done):.4f}", f"{summary['bytes_per_step']:,.0f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        say("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo"), help="where everything goes (demo)")
    parser.add_argument("--steps", type=int, default=1000, help="updates of each training (1000)")
    parser.add_argument("--open", action="store_true", help="start TensorBoard at the end and open its page")
    options = parser.parse_args()
    started = time.monotonic()

    say("evalboard demo: LeNet on Fashion-MNIST (60,000 training and 10,000 test images), two ways of training")
    tensorboard = ["tensorboard", "--logdir", str(options.out / "runs")]
    try:
        python = environment.ensure("build/venv", [ROOT / "tests/requirements/tensorboard.txt"], say)
        tensorboard[0] = str(python.parent / "tensorboard")
    except RuntimeError as error:
        say(f"demo: going on without TensorBoard: {error}")
    for old in ("runs", "checkpoints", "output"):
        shutil.rmtree(options.out / old, ignore_errors=True)
    say(f"look at it while it runs:  {shlex.join(tensorboard)}")

    results = {name: train_and_evaluate(options, name, ranks, what, extra)
               for name, ranks, what, extra in RUNS}

    picture, scalars = options.out / "mpi-vs-ps.svg", options.out / "scalars.csv"
    eventlog = str(options.build / "bin" / "eventlog")
    say("")
    table(results)
    say("")
    subprocess.run([eventlog, "compare", *(options.out / "runs" / name / "eval" for name in results), "--tag", "precision",
                    "--tag", "loss", "-o", picture, "-f"],
                   check=True)
    subprocess.run([eventlog, "export", "--format=csv", options.out / "runs", "-o", scalars, "-f"], check=True)
    say(f"\nboth curves as a picture: {picture}\nevery scalar of all runs: {scalars}")
    say(f"in TensorBoard:           {shlex.join(tensorboard)}")
    say(f"the whole demo took {time.monotonic() - started:.0f} s")
    if options.open:
        subprocess.run([*tensorboard, "--port", "6006"])


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted")
