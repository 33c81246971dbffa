#!/usr/bin/env python3
"""The five published comparisons of ways to train, made again at a size that fits two cores in minutes: each published
figure (bench/published.py), ours under it, and their ratio. `make tables` runs this.

Each is a `trainer compare`, which goes on where it was ended: Ctrl-C loses nothing but the run at work. All of it is
kept in OUTPUT: tables.txt, tables.csv, and for each comparison its curves and all figures.
"""
import argparse
import csv
import io
import json
import pathlib
import shlex
import shutil
import signal
import statistics
import string
import subprocess
import sys
import textwrap
import time
import typing

import processors
import programs
import published

ROOT = pathlib.Path(__file__).resolve().parents[1]
FASHION_MNIST = pathlib.Path("/usr/share/datasets/fashion-mnist")
FIELDS = ["comparison", "figure", "at", "system", "strategy", "workers", "worker", "published", "ours", "ours_against_published", "note"]
WIDTH = 80
BEAT = 9  # seconds after which a pipe, too, is told how far a run is


class Ended(BaseException):
    """SIGTERM or SIGHUP, which only this process gets."""


class Stopped(Exception):
    """Ctrl-C, or a signal that ended a run."""


class Failed(Exception):
    """A run went wrong; the text says which."""


def step(options, count):
    return max(2, round(count * options.scale))


def run(command, directory, **more):
    """Runs it to its end, also after Ctrl-C, which it gets itself; returns its exit status. directory: where its trainings are."""
    began = time.monotonic()
    with subprocess.Popen(list(map(str, command)), env=programs.ENVIRONMENT, **more) as process:
        try:
            while True:
                try:
                    return process.wait(BEAT)
                except subprocess.TimeoutExpired:
                    if not sys.stderr.isatty():
                        programs.say(f"  {directory.name}: {time.monotonic() - began:.0f} s{how_far(directory)}")
        except KeyboardInterrupt:
            process.wait()
            raise Stopped from None
        except Ended:
            process.terminate()
            process.wait()
            raise


def how_far(directory):
    """", round-1/ps-3 at step 40 of 250" of the training that was heard of last, or ""."""
    try:
        newest = max(directory.glob("**/training.json"), key=lambda path: path.stat().st_mtime)
        state = json.loads(newest.read_text())
        return f", {newest.parent.parent.relative_to(directory.parent)} at step {state['global_step']} of {state['max_steps']}"
    except (ValueError, KeyError, OSError):
        return ""


def checked(command, log):
    with open(log, "a") as out:
        status = run(command, log.parent, stdout=out, stderr=subprocess.STDOUT)
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
    checked([sys.executable, ROOT / "demo/make_captions.py", *mnist(options), made, "--train", "600", "--val", "60"], log)
    checked([dataset, "vocabulary", made], log)
    checked([dataset, "encode", made, "--model", "lenet", "--checkpoint", encoder / f"model.ckpt-{step(options, 100)}",
             "--tiles", "2"], log)
    return made


def show_and_tell(options, directory):
    made = captions(options, directory.parent / "captions")
    return ["--strategies", "ps,mpi,hybrid", "--ranks", "2", "--model", "show_and_tell", "--data", "captions", "--data-dir",
            made, "--batch-size", "8", "--max-steps", step(options, 201), "--log-every", step(options, 20), "--evaluate", "never"]


def mnist_lstm(options, _):
    steps = step(options, 250)
    return ["--strategies", "ps,mpi,hybrid", "--ranks", "2,3", "--model", "mnist_lstm", *mnist(options), "--batch-size", "32",
            "--max-steps", steps, "--log-every", max(1, steps // 5), "--evaluations", "5", "--num-examples", options.num_examples]


def workers(counts):
    """Those for which there are cores, two at least."""
    return ",".join(str(n) for n in counts if n <= max(2, programs.cores()))


def resnet50(options, _):
    return ["--strategies", "ring,mirrored", "--ranks", workers([1, 2, 3]), "--model", "resnet50b", "--data", "synthetic",
            "--batch-size", "1", "--max-steps", step(options, 8), "--log-every", step(options, 2), "--evaluate", "never"]


# Images a step of all workers together, and steps of an epoch where epochs are not whole.
CNN_BATCH, CNN_STEPS = 64, 4


def epoch_steps(options):
    images = published.EPOCH_BATCH * published.EPOCH_STEPS
    return images // CNN_BATCH if options.max_epochs else step(options, CNN_STEPS)


def epochs(options):
    return options.max_epochs or 2


def mnist_cnn(options, _):
    return ["--strategies", "mirrored,mirrored:weights=shared", "--ranks", workers([1, 2, 4, 8]), "--model", "mnist_cnn",
            *mnist(options), "--global-batch", CNN_BATCH, "--max-steps", epochs(options) * epoch_steps(options),
            "--log-every", "1", "--save-checkpoint-steps", epoch_steps(options), "--evaluate", "never"]


class Comparison(typing.NamedTuple):
    options: typing.Callable  # (options, directory): those of trainer compare
    pairs: typing.Callable    # (Measured): each published figure with ours
    title: str
    differs: str              # what is different here
    log: typing.Callable = lambda measured: ()  # the lines of the published log


COMPARISONS = {
    "resnet32": Comparison(
        resnet32, published.resnet32, "ResNet-32 on CIFAR-10: a parameter server against MPI (Parallax)",
        "3 workers share the cores of this machine, with 16 images each instead of 128; {steps} steps instead of "
        "2600 and 3500, so precisions are of the beginning."),
    "show_and_tell": Comparison(
        show_and_tell, published.show_and_tell, "Show and Tell on COCO, 2 workers: mean of steps 101 to 200",
        "No COCO and no GPU here: made captions of small images, of few words, encoded beforehand, so "
        "the decoder alone is trained, with 8 captions a step instead of 32."),
    "mnist_lstm": Comparison(
        mnist_lstm, published.mnist_lstm,
        "an LSTM of 64 units on MNIST, 32 images a worker: test accuracy, and steps a second of each worker",
        "Steps, batch, optimizer and initial values are the published ones. All workers share the cores of this machine. "
        "In synchronous training all have the same weights and speed, so ours stands under each of theirs.",
        lambda measured: measured.throughput_log()),
    "resnet50": Comparison(
        resnet50, published.resnet50, "ResNet-50 on ImageNet: speed against one machine with 8 GPUs",
        "No GPU and no ImageNet here: noise of 224x224, 1 image a worker instead of 128 on each GPU; a worker is a "
        "process or a thread of this machine."),
    "mnist_cnn": Comparison(
        mnist_cnn, published.mnist_cnn, "a CNN on MNIST, 1 to 8 GPUs: seconds an epoch, weights shared or copied",
        "No GPU here: a worker is a thread; 64 images a step of all workers instead of 1024. An epoch of {epoch} images is "
        "measured, the first not counted, and seconds are for the published 54,272 and 9,216 images.",
        lambda measured: measured.epoch_log()),
}


def why_not(name, options, pair):
    """Why a figure of ours is not that of the published data."""
    if pair.ours is None:
        return pair.never or "not run here"
    if name == "resnet32" and pair.figure == "precision" and not options.cifar10_dir:
        return "noise: give --cifar10-dir"
    if name == "mnist_lstm" and pair.figure.startswith("accuracy") and not options.mnist_dir and not pair.note:
        return "Fashion-MNIST: give --mnist-dir"
    return pair.note


# ---- what was measured ------------------------------------------------------------------------------------------------

class Epoch(typing.NamedTuple):
    """Medians over the epochs but the first; None: not measured."""
    train: typing.Optional[float] = None  # seconds for as many images as were published
    test: typing.Optional[float] = None


class Measured:
    """The figures of a finished `trainer compare`: medians over its rounds; None: not measured."""

    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        said = read([programs.program(options.build, "trainer"), "compare", "--output", directory, "--format", "json"])
        self.cells = {(cell["strategy"], cell["workers"]): cell for cell in json.loads(said)["cells"] if cell["rounds"]}
        self.steps = step(options, 200)

    def median(self, strategy, count, figure):
        figures = self.cells.get((strategy, count), {}).get(figure)
        return figures["median"] if figures else None

    def rounds(self, strategy, count):
        cell = self.cells.get((strategy, count))
        return sorted(self.directory.glob(f"round-*/{cell['cell']}")) if cell else []

    def evaluations(self, place):
        """{step: line of the ledger}"""
        lines = map(json.loads, (place / "eval/evaluations.jsonl").read_text().splitlines())
        return {line["step"]: line for line in lines if line["status"] == "done"}

    def points(self, place, tag):
        """{step: (value, wall time)} of the training's curve"""
        said = read([programs.program(self.options.build, "eventlog"), "export", "--format=csv", "--tag", tag, place / "train"])
        return {int(row["step"]): (float(row["value"]), float(row["wall_time"])) for row in csv.DictReader(io.StringIO(said))}

    def over_rounds(self, strategy, count, figure):
        figures = [figure(place) for place in self.rounds(strategy, count)]
        return statistics.median(figures) if figures and None not in figures else None

    def precision_at(self, strategy, count, at):
        return self.over_rounds(strategy, count, lambda place: self.evaluations(place).get(at, {}).get("metrics", {}).get("precision"))

    def speed_at(self, strategy, count, at):
        """Of the steps since the point of the curve before."""
        return self.over_rounds(strategy, count, lambda place: self.points(place, "global_step/sec").get(at, [None])[0])

    def epoch_lines(self, place):
        """[(training's accuracy, loss, test accuracy, loss, seconds of both)], an epoch each"""
        count, lines = epoch_steps(self.options), []
        losses, precisions, tests = self.points(place, "loss"), self.points(place, "precision"), self.evaluations(place)
        for last in range(count, epochs(self.options) * count + 1, count):
            mean = [statistics.fmean(curve[at][0] for at in range(last - count + 1, last + 1)) for curve in (precisions, losses)]
            # The first step has no point before it; the others' mean stands for it.
            first = max(1, last - count)
            seconds = (losses[last][1] - losses[first][1]) * count / (last - first)
            test = tests[last]
            lines.append((*mean, test["metrics"]["precision"], test["metrics"]["loss"], seconds, test["seconds"]))
        return lines

    def epoch(self, strategy, count):
        places = self.rounds(strategy, count)
        if not places:
            return Epoch()
        lines = [line for place in places for line in self.epoch_lines(place)[1:] or self.epoch_lines(place)]
        images, tested = epoch_steps(self.options) * CNN_BATCH, self.options.num_examples
        return Epoch(statistics.median(line[4] for line in lines) * published.EPOCH_BATCH * published.EPOCH_STEPS / images,
                     statistics.median(line[5] for line in lines) * published.TEST_IMAGES / tested)

    def first_rounds(self):
        """(its heading, its directory) of each cell"""
        for (strategy, count) in self.cells:
            for place in self.rounds(strategy, count)[:1]:
                yield f"{strategy}, {count} worker{'s' if count > 1 else ''}:", place

    def epoch_log(self):
        for heading, place in self.first_rounds():
            yield heading
            for number, (accuracy, loss, tested, test_loss, seconds, test_seconds) in enumerate(self.epoch_lines(place), 1):
                yield (f"[{number:2}/{epochs(self.options):2}] (train) acc: {100 * accuracy:.2f}%, loss: {loss:.3f} | "
                       f"(test) acc: {100 * tested:.2f}%, loss: {test_loss:.3f} | {seconds:.2f}s, {test_seconds:.2f}s")

    def throughput_log(self):
        for heading, place in self.first_rounds():
            speeds, tests = self.points(place, "global_step/sec"), self.evaluations(place)
            yield heading
            for at in sorted(speeds.keys() & tests.keys()):
                yield (f"step: {at}, test accuracy: {tests[at]['metrics']['precision']:f}, "
                       f"throughput: {speeds[at][0]:f} steps/sec")


def read(command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout


def test_epochs(options, directory):
    """Scores the checkpoint of each epoch with as many threads as the training had."""
    measured = Measured(options, directory)
    for strategy, count in measured.cells:
        for place in measured.rounds(strategy, count):
            checked([programs.program(options.build, "evaluator"), "--checkpoint-dir", place / "ckpt", "--eval-dir", place / "eval",
                     "--model", "mnist_cnn", *mnist(options), "--threads", count, "--num-examples", options.num_examples, "--once"],
                    place / "evaluator.txt")


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
    """(its table as text, the rows of its CSV)"""
    comparison = COMPARISONS[name]
    directory, trainer = options.output / name, programs.program(options.build, "trainer")
    programs.say(f"{number} of {count}: {name}: {comparison.title}")
    arguments = comparison.options(options, directory)
    begin(directory, arguments)
    status = run([trainer, "compare", "--output", directory, "--rounds", options.rounds, *arguments], directory,
                 stdout=subprocess.DEVNULL)
    if status >= 128 or status < 0:
        raise Stopped
    if status:
        raise Failed(f"{name}: trainer compare ended with {status}; see {directory}")
    if name == "mnist_cnn":
        test_epochs(options, directory)
    measured = Measured(options, directory)
    pairs = comparison.pairs(measured)
    for pair in pairs:
        pair.note = why_not(name, options, pair)
    differs = comparison.differs.format(steps=measured.steps, epoch=epoch_steps(options) * CNN_BATCH)
    head = [textwrap.fill(line, WIDTH) for line in (f"{comparison.title[0].upper()}{comparison.title[1:]}.", f"Here: {differs}")]
    text = "\n".join(head) + f"\n\n{table(pairs)}"
    busy = max(cell["other_programs_share"]["most"] if cell["other_programs_share"] else 0 for cell in measured.cells.values())
    if busy > processors.BUSY:
        text += f"Other programs used up to {100 * busy:.0f} % of the processors, so these speeds say little.\n"
    lines = list(comparison.log(measured))
    if lines:
        text += "\n".join(("\nAs the published log has it:", *lines)) + "\n"
    return text, [row(name, pair) for pair in pairs]


def row(name, pair):
    known = {"ours": repr(pair.ours), "ours_against_published": repr(pair.ratio)} if pair.ours is not None else {}
    return {"comparison": name, "figure": pair.figure, "at": pair.at, "system": pair.system, "strategy": pair.strategy,
            "workers": pair.workers, "worker": pair.worker or "", "published": repr(pair.published), "note": pair.note, **known}


def digits(x):
    """Three digits at least, none of them an exponent."""
    return f"{x:.3g}" if x < 100 else f"{x:,.0f}"


def table(pairs):
    """Each published row with ours under it, and the ratio of the two; a figure a column, of several workers side by side."""
    columns = list(dict.fromkeys(pair.figure for pair in pairs))
    notes = list(dict.fromkeys(pair.note for pair in pairs if pair.note))
    rows = []
    for system, at, count in dict.fromkeys((pair.system, pair.at, pair.workers) for pair in pairs):
        of = {column: [pair for pair in pairs if (pair.figure, pair.system, pair.at, pair.workers) == (column, system, at, count)]
              for column in columns}
        measured = [pair for cell in of.values() for pair in cell if pair.ours is not None]

        def line(label, show, noted):
            cells = []
            for cell in of.values():
                shown = list(dict.fromkeys(map(show, cell))) if len(set(map(show, cell))) == 1 else list(map(show, cell))
                mark = {string.ascii_lowercase[notes.index(pair.note)] for pair in cell if pair.note and noted(pair)}
                cells.append(f"{' '.join(shown)} {''.join(sorted(mark)):1}")
            rows.append((label, count, *cells))

        line(f"{system}{', ' * bool(at)}{at}", lambda pair: f"{pair.published:.6g}", lambda pair: pair.ours is None)
        if measured:
            line(f"  here: {measured[0].strategy}", lambda pair: "-" if pair.ours is None else digits(pair.ours),
                 lambda pair: pair.ours is not None)
            line("  ours/published", lambda pair: "-" if pair.ours is None else digits(pair.ratio), lambda pair: False)
    out = io.StringIO()
    programs.table(("", "workers", *(f"{column}  " for column in columns)), rows, out)
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
    listed = "".join(f"\n  {name:15}{comparison.title}" for name, comparison in COMPARISONS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__}{listed}", formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default="build", help="where the programs are (build)")
    parser.add_argument("--output", type=pathlib.Path, help="(BUILD/tables)")
    parser.add_argument("--only", action="append", choices=COMPARISONS, metavar="NAME", help="make this one; may be given again")
    parser.add_argument("--rounds", type=int, default=1, help="trainings of each cell, of which the median counts (1)")
    parser.add_argument("--scale", type=float, default=1, help="train so many times as many steps (1)")
    parser.add_argument("--num-examples", type=int, default=1000, help="test images of an evaluation (1000)")
    parser.add_argument("--max-epochs", type=int, metavar="N",
                        help="train mnist_cnn for N whole epochs (2 of a few steps; a whole one takes an hour)")
    parser.add_argument("--cifar10-dir", type=pathlib.Path, help="CIFAR-10 in its binary version; without it noise is trained on")
    parser.add_argument("--mnist-dir", type=pathlib.Path, help="MNIST; without it Fashion-MNIST is trained on")
    options = parser.parse_args()
    options.output = options.output or options.build / "tables"
    return options


def end(number, _):
    raise Ended(number)


def main():
    options = parse()
    names = [name for name in COMPARISONS if not options.only or name in options.only]
    made, status = 0, 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    try:
        for number, name in enumerate(names, 1):
            try:
                text, rows = compared(name, options, number, len(names))
            except (Failed, programs.Missing) as why:
                programs.say(f"{name}: left out: {why}")
                status = 1
                continue
            print(f"\n{text}", flush=True)
            keep(options, name, text, rows)
            made += 1
    except (Stopped, KeyboardInterrupt):
        programs.say("ended; the same command goes on from here")
        sys.exit(130)
    except Ended as ended:
        programs.say("ended; the same command goes on from here")
        sys.exit(128 + ended.args[0])
    if made:
        print(f"all of it: {options.output}/tables.txt and tables.csv; curves: tensorboard --logdir {options.output}")
    sys.exit(status)


if __name__ == "__main__":
    main()
