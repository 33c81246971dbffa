#!/usr/bin/env python3
"""The main job on real data: LeNet on Fashion-MNIST, trained three times from the same seed - all-reduce (mpi), parameter
server (ps) and asynchronous parameter server (ps --async) - with an evaluator beside each training that scores every
checkpoint while the training goes on. At the end the curves stand side by side, over steps and over time.

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
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "bench")]
import environment  # noqa: E402
import processors  # noqa: E402

BATCH = 128          # images of a worker in a step; each run has two workers
CHECKPOINTS = 20     # of each run at most, and one at the start
TRAINING = ["--optimizer", "adam", "--learning-rate", "0.004", "--seed", "1"]
# name, ranks, what it is, options of the trainer, updates for the same number of images: an asynchronous update is made of
# one worker's images, a synchronous one of both workers'.
RUNS = (
    ("mpi", 2, "all-reduce: 2 workers add up their gradients", ["--run-option", "mpi"], 1),
    ("ps", 3, "parameter server: 2 workers send their gradients to a third rank", ["--run-option", "ps"], 1),
    ("ps-async", 3, "the same, but no worker waits for the other", ["--run-option", "ps", "--async"], 2),
)
# TensorBoard's Custom Scalars page: title and tag of each chart.
CHARTS = (("best precision on test images: mpi equals ps", "all three/best precision$"),
          ("best precision on test images, after so many seconds", "all three/best precision after seconds$"),
          ("images a second", "images/sec$"), ("loss: eval on test images, train on batches", "loss$"))


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
            sys.stderr.write("\r\033[K" + text[:shutil.get_terminal_size().columns - 1] + ("\n" if end else ""))
            sys.stderr.flush()
        else:
            say(text)


def train_and_evaluate(options, name, ranks, what, extra, updates):
    """Runs one training with an evaluator beside it; returns the trainer's summary and the ledger."""
    steps = updates * options.steps
    out, binaries = options.out, options.build / "bin"
    checkpoints, logs = out / "checkpoints" / name, out / "runs" / name
    (out / "output").mkdir(parents=True, exist_ok=True)
    trainer_output, evaluator_output = (out / "output" / f"{name}-{part}.txt" for part in ("trainer", "evaluator"))
    summary_file = out / "output" / f"{name}-summary.json"
    data = ["--model", "lenet", "--data", "fashion-mnist"]
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    trainer = [*mpirun, binaries / "trainer", *extra, *data, "--batch-size", BATCH, *TRAINING,
               "--checkpoint-dir", checkpoints, "--save-checkpoint-steps", -(-steps // CHECKPOINTS),
               "--log-dir", logs / "train", "--log-every", 10 * updates, "--max-steps", steps, "--json"]
    evaluator = [binaries / "evaluator", *data, "--checkpoint-dir", checkpoints, "--eval-dir", logs / "eval",
                 "--wall-time", "checkpoint"]
    trainer, evaluator = [str(word) for word in trainer], [str(word) for word in evaluator]

    say(f"\n{name}: {what}\n  {shlex.join(evaluator)} &\n  {shlex.join(trainer)}")
    started, progress, others = time.monotonic(), Progress(), processors.Others()
    variables = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    with open(trainer_output, "w") as told, open(evaluator_output, "w") as scored, open(summary_file, "w") as summary:
        processes = {}
        try:
            processes["evaluator"] = subprocess.Popen(evaluator, stdout=scored, stderr=scored, start_new_session=True)
            processes["trainer"] = subprocess.Popen(trainer, stdout=summary, stderr=told, env=variables,
                                                    start_new_session=True)
            while any(p.poll() is None for p in processes.values()):
                for part, process in processes.items():
                    if process.poll():
                        raise RuntimeError(f"{part} failed with status {process.returncode}")
                line, done = last_line(trainer_output, "step: "), ledger(logs / "eval" / "evaluations.jsonl")
                text = f"  {name}: starting" if line is None else (
                    f"  {name}: step {after(line, 'step: '):.0f} of {steps}, loss {after(line, 'loss: '):.3f}, "
                    f"training precision {after(line, ' precision: '):.3f}")
                if done:
                    best = max(done, key=lambda x: x["metrics"]["precision"])
                    text += (f" | {len(done)} evaluated, precision {done[-1]['metrics']['precision']:.4f} at "
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
    if note := others.note():
        say(f"  {note}")
    return json.loads(summary_file.read_text().splitlines()[-1]), done


def table(results):
    head = ["run", "steps", "steps/s", "images/s", "bytes/step", "checkpoints", "precision", "best"]
    rows = [head]
    for name, (summary, done) in results.items():
        rows.append([name, f"{summary['global_step']}", f"{summary['steps_per_second']:.1f}",
                     f"{summary['images_per_second']:.0f}", f"{summary['bytes_per_step']:,.0f}", f"{len(done)}",
                     f"{done[-1]['metrics']['precision']:.4f}", f"{max(x['metrics']['precision'] for x in done):.4f}"])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    for row in rows:
        say("  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))))


def layout(options):
    """Puts the charts of all runs on TensorBoard's Custom Scalars page; a log has one layout, in any of its runs."""
    charts = [word for title, tag in CHARTS for word in ("--chart", f"mpi, ps and ps --async/{title}={tag}")]
    subprocess.run([options.build / "bin/eventlog", "write", "--dir", options.out / "runs" / RUNS[0][0] / "eval", *charts],
                   check=True)


def add_points(options, run, points):
    """Adds points (tag, step, value, wall time) to a run of the log."""
    lines = "".join(json.dumps({"tag": tag, "step": step, "value": value, "wall_time": wall}) + "\n" for tag, step, value, wall in points)
    subprocess.run([options.build / "bin/eventlog", "write", "--dir", options.out / "runs" / run, "-"], input=lines, text=True, check=True)


def answer(options, results):
    """What the demo asks, on TensorBoard's first page: the best precisions of the three strategies on one chart, a colour each,
    over steps and beside it over seconds (names put these two first); below, the difference of mpi and ps, as one curve lies on
    the other, and precisions."""
    precisions = {}
    for name, (_, done) in results.items():
        start = done[0]["point_time"]
        points = []
        for line in done:
            step, wall, metrics = line["step"], line["point_time"], line["metrics"]
            points += [("all three/precision", step, metrics["precision"], wall),
                       ("all three/best precision", step, metrics["best_precision"], wall),
                       ("all three/best precision after seconds", round(wall - start), metrics["best_precision"], wall)]
        add_points(options, f"{name}/eval", points)  # with runs of their own there were more than TensorBoard has colours
        precisions[name] = {line["step"]: (line["metrics"]["precision"], line["point_time"]) for line in done}
    both = precisions["mpi"].keys() & precisions["ps"].keys()
    add_points(options, "mpi minus ps", [("all three/mpi minus ps, 0 is equal", step, precisions["mpi"][step][0] -
                                          precisions["ps"][step][0], precisions["mpi"][step][1]) for step in sorted(both)])


def draw(options, results):
    """Precision over steps and over time, the speed in the legend: in the terminal and as a picture, whose path it returns."""
    drawn = options.out / "mpi-vs-ps.svg"
    labels = [word for name, (summary, _) in results.items()
              for word in ("--label", f"{name}/eval={name.replace('-', ' --')} ({summary['images_per_second']:,.0f} images/s)")]
    curves = [*(options.out / "runs" / name / "eval" for name in results), "--tag", "precision", "--x", "step,relative",
              "--clip-outliers", "on", "--title", "LeNet on Fashion-MNIST: precision on the test images", *labels]
    subprocess.run([options.build / "bin/eventlog", "plot", *curves], check=True)
    subprocess.run([options.build / "bin/eventlog", "compare", *curves, "-o", drawn, "-f"], check=True)
    return drawn


def prove_equal(options):
    """mpi and ps end with the same weights, bit for bit: shows it, or ends the demo."""
    last = [str(options.out / "checkpoints" / name / f"model.ckpt-{options.steps}") for name in ("mpi", "ps")]
    command = [str(options.build / "bin/checkpoint"), "compare", *last]
    say("\nThe curves of mpi and ps over steps are equal by design: both add the same gradients in the same order. The proof,\n"
        f"their checkpoints after the last step:\n  {shlex.join(command)}")
    compared = subprocess.run(command, capture_output=True, text=True)
    say(textwrap.indent((compared.stdout + compared.stderr).strip(), "  "))
    if compared.returncode:
        raise RuntimeError("the checkpoints of mpi and ps differ")
    say("What differs is the time they take. ps --async makes an update of each worker's gradients as they come: more and\n"
        "smaller updates, made with weights that are a little old, so its curve is its own.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build"))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("demo"), help="where everything goes (demo)")
    parser.add_argument("--steps", type=int, default=800, help="updates of mpi and ps, twice as many of ps --async (800)")
    parser.add_argument("--open", action="store_true", help="start TensorBoard at the end")
    options = parser.parse_args()
    started = time.monotonic()

    say("evalboard demo: LeNet on Fashion-MNIST (60,000 training and 10,000 test images), three ways of training")
    tensorboard = ["tensorboard", "--logdir", str(options.out / "runs")]
    try:
        python = environment.ensure("build/venv", [ROOT / "tests/requirements/tensorboard.txt"], say)
        tensorboard[0] = str(python.parent / "tensorboard")
        environment.require_localhost()
    except RuntimeError as error:
        say(f"demo: TensorBoard cannot start here yet: {error}")
    for old in ("runs", "checkpoints", "output"):
        shutil.rmtree(options.out / old, ignore_errors=True)
    layout(options)
    say(f"look at it while it runs:  {shlex.join(tensorboard)}\n"
        "                           and open http://localhost:6006")

    results = {run[0]: train_and_evaluate(options, *run) for run in RUNS}

    scalars = options.out / "scalars.csv"
    say("")
    table(results)
    say("")
    answer(options, results)
    drawn = draw(options, results)
    prove_equal(options)
    subprocess.run([options.build / "bin/eventlog", "export", "--format=csv", options.out / "runs", "-o", scalars, "-f"],
                   check=True)
    say(f"\nthe curves as a picture:   {drawn}\nevery scalar of all runs:  {scalars}")
    say(f"in TensorBoard:            {shlex.join(tensorboard)}\n"
        "                           and open http://localhost:6006: first of all, all three compared")
    say(f"the whole demo took {time.monotonic() - started:.0f} s")
    if options.open:
        subprocess.run(tensorboard)


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"demo: {error}")
    except KeyboardInterrupt:
        sys.exit("demo: interrupted")
