#!/usr/bin/env python3
"""The five published comparisons of ways to train, made again at a size that fits two cores in minutes: each published
row, ours under it, and their ratio. `make tables` runs this.

Each is a `trainer compare`, which goes on where it was ended: Ctrl-C loses nothing but the run at work. All of it is
kept in OUTPUT: tables.txt, tables.csv, and for each comparison its curves and all figures.
"""
import argparse
import csv
import io
import os
import pathlib
import shlex
import shutil
import string
import subprocess
import sys
import textwrap

import programs

FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")
FIELDS = ["comparison", "table", "figure", "system", "strategy", "workers", "published", "ours", "ours_against_published", "note"]
COLUMNS = ("", "workers", "value", "ours/published", "")
WIDTH = 80
# Figures that are of their machines, whatever trains on them: their ratio says how the machines compare.
OF_MACHINES = {"steps/s": "other machines, another size", "seconds an epoch": "other machines"}


class Stopped(Exception):
    """Ctrl-C, or a signal that ended a run."""


class Failed(Exception):
    """A run went wrong; the text says which."""


def step(options, count):
    return max(2, round(count * options.scale))


def run(command, **more):
    """Runs it to its end, also after Ctrl-C, which it gets itself; returns its exit status."""
    with subprocess.Popen(list(map(str, command)), env=programs.ENVIRONMENT, **more) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise Stopped from None


def checked(command, log):
    with open(log, "a") as out:
        status = run(command, stdout=out, stderr=subprocess.STDOUT)
    if status in (130, 143, -2, -15):
        raise Stopped
    if status:
        raise Failed(f"{shlex.join(map(str, command[:2]))} ended with {status}; see {log}")


# ---- the comparisons: options of trainer compare ----------------------------------------------------------------------

def mnist(options):
    if options.mnist_dir:
        return ["--data", "mnist", "--data-dir", options.mnist_dir]
    if not FASHION_MNIST.exists():
        raise programs.Missing("MNIST: give --mnist-dir, or install Debian's dataset-fashion-mnist")
    return ["--data", "fashion-mnist"]


def resnet32(options, _):
    data = ["--data", "cifar10", "--data-dir", options.cifar10_dir] if options.cifar10_dir else ["--data", "synthetic"]
    return ["--strategies", "mpi,ps", "--ranks", "3", "--model", "resnet32", *data, "--batch-size", "16", "--max-steps",
            step(options, 200), "--log-every", step(options, 20), "--evaluations", "1", "--num-examples", options.num_examples]


def captions(options, directory):
    """Made ones, once, with what a small trained net makes of their images."""
    made = directory / "made"
    if (made / "features").exists():
        return made
    programs.say("show_and_tell: making captions and features")
    shutil.rmtree(made, ignore_errors=True)
    log, dataset = directory / "made.log", programs.program(options.build, "dataset")
    directory.mkdir(parents=True, exist_ok=True)
    encoder = directory / "encoder"
    checked([programs.program(options.build, "trainer"), "--model", "lenet", *mnist(options), "--max-steps", step(options, 100),
             "--checkpoint-dir", encoder], log)
    checked([dataset, "make-captions", *mnist(options), made, "--train", "600", "--val", "60"], log)
    checked([dataset, "vocabulary", made], log)
    checked([dataset, "encode", made, "--model", "lenet", "--checkpoint", encoder / f"model.ckpt-{step(options, 100)}",
             "--tiles", "2"], log)
    return made


def show_and_tell(options, directory):
    made = captions(options, directory.parent / "captions")
    return ["--strategies", "ps,mpi,hybrid", "--ranks", "2", "--model", "show_and_tell", "--data", "captions", "--data-dir",
            made, "--batch-size", "8", "--max-steps", step(options, 201), "--log-every", step(options, 20), "--evaluate", "never"]


def mnist_lstm(options, _):
    return ["--strategies", "mpi", "--ranks", "3", "--model", "mnist_lstm", *mnist(options), "--batch-size", "32",
            "--max-steps", step(options, 250), "--evaluations", "5", "--num-examples", options.num_examples]


def workers(counts):
    """Those for which there are cores, two at least."""
    return ",".join(str(n) for n in counts if n <= max(2, programs.cores()))


def resnet50(options, _):
    return ["--strategies", "ring,mirrored", "--ranks", workers([1, 2, 3]), "--model", "resnet50b", "--data", "synthetic",
            "--batch-size", "1", "--max-steps", step(options, 8), "--log-every", step(options, 2), "--evaluate", "never"]


def mnist_cnn(options, _):
    return ["--strategies", "mirrored,mirrored:weights=shared", "--ranks", workers([1, 2, 4, 8]), "--model", "mnist_cnn",
            *mnist(options), "--global-batch", "64", "--max-steps", step(options, 8), "--log-every", step(options, 2),
            "--evaluate", "never"]


# name: options, the published table, what was published, what differs here
COMPARISONS = {
    "resnet32": (resnet32, "ps-against-mpi", "ResNet-32 on CIFAR-10, 3 workers: a parameter server against MPI (Parallax)",
                 "3 workers share the cores of this machine, with 16 images each instead of 128; {steps} steps instead of "
                 "2600 and 3500, so precisions are of the beginning."),
    "show_and_tell": (show_and_tell, "steps-101-200", "Show and Tell on COCO, 2 workers: mean of steps 101 to 200",
                      "No COCO and no GPU here: made captions of small images, of few words, encoded beforehand, so "
                      "the decoder alone is trained, with 8 captions a step instead of 32."),
    "mnist_lstm": (mnist_lstm, "per-worker", "an LSTM of 64 units on MNIST, 3 workers with 32 images each: test accuracy",
                   "Steps, batch, optimizer and initial values are the published ones."),
    "resnet50": (resnet50, "ratios", "ResNet-50 on ImageNet: speed against one machine with 8 GPUs",
                 "No GPU and no ImageNet here: noise of 224x224, 1 image a worker instead of 128 on each GPU; a worker is a "
                 "process or a thread of this machine."),
    "mnist_cnn": (mnist_cnn, "epoch-seconds", "a CNN on MNIST, 1 to 8 GPUs: seconds an epoch, weights shared or copied",
                  "No GPU here: a worker is a thread; 64 images a step of all workers instead of 1024; an epoch is worked out "
                  "from some steps."),
}


def why_not(name, options, row):
    """Why a figure of ours is not that of the published data."""
    accuracy = "precision" in row["figure"] or "accuracy" in row["figure"]
    if name == "resnet32" and accuracy and not options.cifar10_dir:
        return "noise: give --cifar10-dir"
    if name == "mnist_lstm" and accuracy and not options.mnist_dir:
        return "Fashion-MNIST: give --mnist-dir"
    return OF_MACHINES.get(row["figure"], "")


# ---- running and telling ----------------------------------------------------------------------------------------------

def begin(directory, arguments):
    """Goes on with what is there if it was begun with the same options; what was with others is removed."""
    words, kept = shlex.join(map(str, arguments)), directory.with_name(f"{directory.name}.options")
    if directory.exists() and (not kept.exists() or kept.read_text() != words):
        programs.say(f"{directory}: made with other options; begins anew")
        shutil.rmtree(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    write(kept, words)


def compared(name, options, number, count):
    """(its tables as text, the rows of its CSV)"""
    make, table, title, differs = COMPARISONS[name]
    directory, trainer = options.output / name, programs.program(options.build, "trainer")
    programs.say(f"{number} of {count}: {name}: {title}")
    arguments = make(options, directory)
    begin(directory, arguments)
    status = run([trainer, "compare", "--output", directory, "--rounds", options.rounds, *arguments], stdout=subprocess.DEVNULL)
    if status >= 128 or status < 0:
        raise Stopped
    if status:
        raise Failed(f"{name}: trainer compare ended with {status}; see {directory}")
    show = [trainer, "compare", "--output", directory, "--table", table]
    text = subprocess.run(show, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": str(WIDTH)}).stdout
    rows = subprocess.run([*show, "--format", "csv"], check=True, capture_output=True, text=True).stdout
    rows = [{"comparison": name, **row} for row in csv.DictReader(io.StringIO(rows))]
    for row in rows:
        row["note"] = why_not(name, options, row) if row["ours"] else "not run here"
    head = [textwrap.fill(line, WIDTH) for line in (f"{title}.", f"Here: {differs.format(steps=step(options, 200))}")]
    return "\n".join(head) + f"\n\n{text.partition(chr(10) * 2)[2]}", rows


def figure(text):
    return f"{float(text):.3g}" if text else "-"


def pairs(rows):
    """Each published row with ours under it."""
    lines, notes = [], []
    for row in rows:
        if row["note"] and row["note"] not in notes:
            notes.append(row["note"])
        lines.append((f"{row['figure']}, {row['system']}", row["workers"], figure(row["published"]), "", ""))
        lines.append((f"  here: {row['strategy']}", row["workers"], figure(row["ours"]), figure(row["ours_against_published"]),
                      string.ascii_lowercase[notes.index(row["note"])] if row["note"] else ""))
    out = io.StringIO()
    programs.table(COLUMNS, lines, out)
    for letter, note in zip(string.ascii_lowercase, notes):
        print(f"{letter}: {note}", file=out)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def write(path, text):
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.rename(path)


def keep(options, name, text, rows):
    """The comparison in NAME.txt and NAME.csv, and with those that were made before in tables.txt and tables.csv."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writerows(rows)
    for end, content, first in ((".txt", text, ""), (".csv", out.getvalue(), ",".join(FIELDS) + "\n")):
        write(options.output / f"{name}{end}", first + content)
        made = [options.output / f"{each}{end}" for each in COMPARISONS]
        parts = [path.read_text()[len(first):] for path in made if path.exists()]
        write(options.output / f"tables{end}", first + ("\n\n" if end == ".txt" else "").join(parts))


def parse():
    listed = "".join(f"\n  {name:15}{title}" for name, (_, _, title, _) in COMPARISONS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__}{listed}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build", help="where the programs are (build)")
    parser.add_argument("--output", type=pathlib.Path, help="(BUILD/tables)")
    parser.add_argument("--only", action="append", choices=COMPARISONS, metavar="NAME", help="make this one; may be given again")
    parser.add_argument("--rounds", type=int, default=1, help="trainings of each cell, of which the median counts (1)")
    parser.add_argument("--scale", type=float, default=1, help="train so many times as many steps (1)")
    parser.add_argument("--num-examples", type=int, default=1000, help="test images of an evaluation (1000)")
    parser.add_argument("--cifar10-dir", type=pathlib.Path, help="CIFAR-10 in its binary version; without it noise is trained on")
    parser.add_argument("--mnist-dir", type=pathlib.Path, help="MNIST; without it Fashion-MNIST is trained on")
    options = parser.parse_args()
    options.output = options.output or options.build / "tables"
    return options


def main():
    options = parse()
    names = [name for name in COMPARISONS if not options.only or name in options.only]
    made, status = 0, 0
    try:
        for number, name in enumerate(names, 1):
            try:
                text, rows = compared(name, options, number, len(names))
            except (Failed, programs.Missing) as why:
                programs.say(f"{name}: left out: {why}")
                status = 1
                continue
            text = f"{text}\n{pairs(rows)}"
            print(f"\n{text}", flush=True)
            keep(options, name, text, rows)
            made += 1
    except (Stopped, KeyboardInterrupt):
        programs.say("ended; the same command goes on from here")
        sys.exit(130)
    if made:
        print(f"all of it: {options.output}/tables.txt and tables.csv; curves: tensorboard --logdir {options.output}")
    sys.exit(status)


main()
