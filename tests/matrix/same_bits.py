#!/usr/bin/env python3
"""The matrix of equal weights: trains each model for 50 steps with --reproducible in every cell (cells.py), that is with every
synchronous strategy, number of workers, size of buckets, number of servers and layout of hosts, and killed at step 37 and
resumed by another strategy and number of workers; and compares the hashes of the weights and the curves. One hash a model is
right. Layouts with several hosts are network namespaces, which need root.

usage: same_bits.py [--jobs J] [--model NAME,...] [--only WORD]... [--layout NAME,...] [--data-dir NAME=DIR]... [--results DIR]
                    [--count N] [--slow] [--list] [--again]

Results are kept in --results, so that what was ended goes on: only cells that are missing or differ are run, unless the trainer
was built anew. Exit status: 0 all are equal; 1 a cell differs, fails or was not run.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "mpi")]

import bridged_hosts  # noqa: E402  where its modules are, is known now
import ranks  # noqa: E402
import two_hosts  # noqa: E402
from cells import KILLED_AT, LAYOUTS, MICRO_SHARDS, MODELS, MOST_MESSAGES, SAVED_EVERY, STEPS, cells, reference  # noqa: E402

MOMENT = ranks.BUILD / "tests/campaign/moment.so"
LIMIT = 1800       # seconds for a training, on a busy machine
DEADLINE = 600     # seconds that a rank waits for another
TOLD_EVERY = 30    # seconds, where nobody sees a line that changes
CURVES = ("loss", "precision", "learning_rate")


class Failed(Exception):
    """A training did not end as it must."""


class Refused(Exception):
    """The trainer does not do that, by design, and says why."""


def said_why(said):
    lines = [line for line in said.splitlines() if line.startswith("trainer: ")]
    return lines[0].removeprefix("trainer: ") if lines else said.strip()[-300:]


class Bench:
    """Runs trainings of one job at a time; several jobs have a bench each."""

    def __init__(self, top, data, steps=STEPS):
        self.top, self.data, self.hosts, self.steps = pathlib.Path(tempfile.mkdtemp(dir=top)), data, None, steps
        self.process, self.counted = None, {}

    def model(self, name):
        model, where = MODELS[name], self.data.get(name)
        return ["--model", model.of or name, *model.options, "--data", model.data, *(["--data-dir", where] if where else []), "--reproducible",
                "--micro-shards", MICRO_SHARDS, "--global-batch", model.batch]

    def launcher(self, training, exported=()):
        """The words before the trainer's, and the environment."""
        if not training.ranks:
            return [], ranks.ENVIRONMENT
        variables = [word for name in exported for word in ("-x", name)]
        if LAYOUTS[training.layout] == 1:
            return [*ranks.command(training.ranks)[:-1], *variables], ranks.ENVIRONMENT
        if not self.hosts:
            self.hosts = bridged_hosts.Hosts(tempfile.mkdtemp(dir=self.top), "abcd")
        places = ",".join(f"{host}:{count}" for host, count in training.places())
        return [*self.hosts.inside("a"), "mpirun", "--host", places, "--bind-to", "none", *variables,
                *(["--map-by", "node"] if "in turn" in training.layout else []), "-n", training.ranks], {**self.hosts.variables(), **two_hosts.KEEPALIVE}

    def run(self, training, *options, **moment):
        """One training: (status, what it printed, what it said)."""
        words, environment = self.launcher(training, moment)
        words += [ranks.TRAINER, *self.model(training.model), *training.arguments(), *options]
        self.process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL, env={**environment, **moment})
        try:
            printed, said = self.process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"hangs: {LIMIT} s: {self.end()[-300:]}") from None
        return self.process.returncode, printed, said

    def kill_all(self):
        """Kills what still runs, and all that it started; its cell fails then."""
        if self.process is None or self.process.poll() is not None:
            return
        pids = [*ranks.rank_processes(self.process).values(), self.process.pid]
        if self.hosts:  # with these all that runs on them, also what nsenter has started; the next training makes others
            self.hosts.close()
            self.hosts = None
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end(self):
        """The same; what it said."""
        self.kill_all()
        return self.process.communicate()[1] if self.process else ""

    def summary(self, training, *options):
        """Of a training that must succeed: what --json has, and what was said."""
        status, printed, said = self.run(training, *options)
        if status == 2:
            raise Refused(said_why(said))
        if status != 0 or not printed.startswith("{"):
            raise Failed(f"status {status}: {said_why(said)}")
        return json.loads(printed), said

    def products(self, name):
        """How often each micro-shard of a model calls cblas_sgemm, by which a moment within a step is found."""
        if name not in self.counted:
            self.counted[name] = self.count_products(name)
        return self.counted[name]

    def count_products(self, name):
        counts = self.top / "counts"
        counts.mkdir(exist_ok=True)
        training = reference(name).training
        status, _, said = self.run(training, "--max-steps", 1, "--quiet", LD_PRELOAD=str(MOMENT), MOMENT_COUNTS=str(counts))
        found = re.search(r"^cblas_sgemm (\d+)$", (counts / "0").read_text(), re.M)
        if status != 0 or not found or int(found[1]) % MICRO_SHARDS:
            raise Failed(f"status {status}, {found and found[1]} products in a step: {said_why(said)}")
        return int(found[1]) // MICRO_SHARDS

    def kill(self, cell, place):
        """Trains until the victim kills itself in the middle of step 37."""
        killed, fired = cell.killed, place / "fired"
        a_step = self.products(killed.model) * killed.shards(cell.victim)
        status, _, said = self.run(
            killed, *self.wanted(place), LD_PRELOAD=str(MOMENT), MOMENT_RANK=str(cell.victim), MOMENT_CALL="cblas_sgemm",
            MOMENT_AT=str((KILLED_AT - 1) * a_step + a_step // 2 + 1), MOMENT_DOES="kill", MOMENT_FIRED=str(fired))
        if status == 2:
            raise Refused(said_why(said))
        if not fired.exists() or status == 0:
            raise Failed(f"not killed at step {KILLED_AT}: status {status}: {said_why(said)}")
        last = max([0, *map(int, re.findall(r"^step: (\d+), loss", said, re.M))])
        if last >= KILLED_AT:
            raise Failed(f"killed only after step {last}")

    def wanted(self, place):
        return ["--max-steps", self.steps, "--log-every", 1, "--hash-every", 10, "--json", "--deadline", DEADLINE,
                "--log-dir", place / "log",
                *(["--checkpoint-dir", place / "ckpt", "--save-checkpoint-steps", SAVED_EVERY, "--take-over"]
                  if (place / "ckpt").exists() else [])]

    def cell(self, cell):
        """What is kept of a cell."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self.top))
        try:
            first = 0
            if cell.killed:
                (place / "ckpt").mkdir()
                self.kill(cell, place)
            summary, said = self.summary(cell.training, *self.wanted(place))
            if cell.killed:
                first = self.steps - summary["steps"]
                if first >= KILLED_AT or f"model.ckpt-{first}" not in said:
                    raise Failed(f"resumed from step {first}: {said_why(said)}")
            if len(summary["hosts"]) != LAYOUTS[cell.layout] or summary["workers"] != cell.training.workers:
                raise Failed(f"{summary['workers']} workers on {len(summary['hosts'])} hosts")
            return {"status": "ran", "weights": summary["weights"], "from": first,
                    "hashes": {str(row["step"]): row["weights"] for row in summary["hashes"]},
                    "curve": self.curve(place / "log", first)}
        except Refused as refused:
            return {"status": "refused", "why": f"{refused}"}
        except (Failed, AssertionError, OSError, KeyError, ValueError) as failed:
            return {"status": "failed", "why": f"{failed}"[:600]}
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def curve(self, log, first):
        """{step: digest of the points, all of their digits}, of every step, those before a resume as well."""
        found = collections.defaultdict(dict)
        for tag, points in ranks.curves(log).items():
            for step, value in points if tag in CURVES else ():
                if found[step].setdefault(tag, value) != value:
                    raise Failed(f"step {step} has two values of {tag}")
        if sorted(found) != list(range(1, self.steps + 1)) and not first:
            raise Failed(f"the curve has the steps {sorted(found)}")
        return {str(step): hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()[:16]
                for step, values in sorted(found.items())}

    def close(self):
        self.kill_all()
        if self.hosts:
            self.hosts.close()


def differs(result, right):
    """How a cell differs from the reference; '': it does not."""
    if result["status"] != "ran":
        return result["why"]
    steps = [step for step, found in result["hashes"].items() if found != right["hashes"].get(step)]
    if result["weights"] != right["weights"] or steps:
        return f"other weights, {result['weights']}, from step {min(steps, key=int)}" if steps else "other weights"
    steps = [step for step, found in result["curve"].items() if found != right["curve"].get(step)]
    return f"another curve from step {min(steps, key=int)}" if steps else ""


class Results:
    """A file with a line for each cell that was run by this trainer."""

    def __init__(self, directory, again=False):
        directory.mkdir(parents=True, exist_ok=True)
        self.path, self.lock = directory / "results.jsonl", threading.Lock()
        self.build = hashlib.sha256(ranks.TRAINER.read_bytes()).hexdigest()[:16]
        self.found, self.old = {}, 0
        for line in self.path.read_text().splitlines() if self.path.exists() and not again else ():
            try:
                row = json.loads(line)
            except ValueError:  # cut by the end of a run
                continue
            if row["build"] == self.build:
                self.found[row["cell"]] = row
            else:
                self.old += 1
        # So that the file has no cut line, to which the next would be added.
        self.path.write_text("".join(json.dumps(row) + "\n" for row in self.found.values()))

    def add(self, cell, result):
        row = {"build": self.build, "cell": f"{cell}", **result}
        with self.lock:
            self.found[f"{cell}"] = row
            with open(self.path, "a") as file:
                file.write(json.dumps(row) + "\n")

    def right(self, model):
        row = self.found.get(f"{reference(model)}")
        return row if row and row["status"] == "ran" else None

    def difference(self, cell):
        """None: it was not run."""
        row, right = self.found.get(f"{cell}"), self.right(cell.training.model)
        return None if not row or not right else differs(row, right)

    def is_done(self, cell):
        row = self.found.get(f"{cell}")
        return row is not None and (row["status"] == "refused" or self.difference(cell) == "")


class Matrix:
    def __init__(self, chosen, results, data, top):
        self.chosen, self.results, self.data, self.top = chosen, results, data, top
        self.lock, self.told, self.done, self.bad = threading.Lock(), 0.0, 0, 0
        self.running, self.benches, self.ended = {}, [], False

    def tell(self, total):
        now = time.monotonic()
        if sys.stdout.isatty():
            line = f"{self.done} of {total} cells, {self.bad} wrong; {'; '.join(self.running.values())}"
            print(f"\r\033[K{line[:shutil.get_terminal_size().columns - 1]}", end="", flush=True)
        elif now - self.told >= TOLD_EVERY or self.done == total:
            self.told = now
            print(f"  {self.done} of {total} cells, {self.bad} wrong", flush=True)

    def wrong(self, cell, text):
        print(f"{chr(13) + chr(27) + '[K' if sys.stdout.isatty() else ''}  WRONG {cell}: {text}", flush=True)

    def run(self, jobs):
        models = dict.fromkeys(cell.training.model for cell in self.chosen)
        first = [reference(model) for model in models if not self.results.right(model)]
        missing = collections.deque(cell for cell in dict.fromkeys([*first, *self.chosen]) if not self.results.is_done(cell))
        total = len(missing)
        print(f"{len(self.chosen)} cells, of which {total} are to run"
              f"{f'; {self.results.old} results are of another build' if self.results.old else ''}", flush=True)

        def work(number):
            bench = self.benches[number]
            while True:
                with self.lock:
                    if not missing:
                        return
                    cell = missing.popleft()
                    self.running[number] = f"{cell}"
                    self.tell(total)
                result = bench.cell(cell)
                if self.ended:
                    return
                self.results.add(cell, result)
                difference = self.results.difference(cell)
                with self.lock:
                    self.done += 1
                    self.running.pop(number)
                    if difference and self.results.found[f"{cell}"]["status"] != "refused":
                        self.bad += 1
                        self.wrong(cell, difference)
                    self.tell(total)

        self.benches = [Bench(self.top, self.data) for _ in range(jobs)]
        try:
            for _ in first:  # before what is compared with them
                cell = missing.popleft()
                self.results.add(cell, self.benches[0].cell(cell))
                self.done += 1
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                try:
                    for worker in [pool.submit(work, number) for number in range(jobs)]:
                        worker.result()
                except BaseException:
                    with self.lock:
                        missing.clear()
                        self.ended = True
                    for bench in self.benches:
                        bench.kill_all()
                    raise
        finally:
            for bench in self.benches:
                bench.close()
        if sys.stdout.isatty():
            print()

    def table(self):
        """By model and strategy; then what differs. True: all are equal."""
        rows, wrong, refused = {}, [], collections.defaultdict(list)
        for cell in self.chosen:
            row = rows.setdefault((cell.training.model, cell.strategy), collections.Counter())
            row["cells"] += 1
            if cell.layout != "one host":
                row["hosts"] += 1
            difference = self.results.difference(cell)
            if difference is None:
                row["missing"] += 1
            elif self.results.found[f"{cell}"]["status"] == "refused":
                row["refused"] += 1
                refused[difference].append(cell)
            elif difference:
                wrong.append((cell, difference))
            else:
                row["equal"] += 1
        print(f"{'model':<17} {'strategy':<25} {'cells':>5} {'hosts':>5} {'equal':>5} {'refused':>7}  weights")
        for (model, strategy), row in sorted(rows.items()):
            one = row["equal"] + row["refused"] == row["cells"]
            right = self.results.right(model)
            left = row["cells"] - row["equal"] - row["refused"] - row["missing"]
            text = right["weights"] if one and right else ", ".join(
                f"{count} {word}" for count, word in ((left, "wrong"), (row["missing"], "not run")) if count)
            print(f"{model:<17} {strategy:<25} {row['cells']:>5} {row['hosts']:>5} {row['equal']:>5} {row['refused']:>7}  {text}")
        for why, those in refused.items():
            print(f"refused, {len(those)} cells: {why}")
        for cell, difference in wrong:
            print(f"wrong: {cell}: {difference}")
        return all(row["equal"] + row["refused"] == row["cells"] for row in rows.values())


def parsed(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cells at a time (the number of cores)")
    parser.add_argument("--model", default=",".join(MODELS), help=f"these models ({','.join(MODELS)})")
    parser.add_argument("--only", action="append", default=[], metavar="WORD",
                        help="cells with this in their names, as --list has them; all of these words, if given again")
    parser.add_argument("--layout", help=f"layouts with these names: {'; '.join(LAYOUTS)} (all that this user may make)")
    parser.add_argument("--data-dir", action="append", default=[], metavar="NAME=DIR", help="where the data set NAME is "
                        "(mnist's and text's: where Debian installs them; cifar10: small files of noise, made for the run)")
    parser.add_argument("--results", type=pathlib.Path, default=ranks.BUILD / "same-bits", help="(build/same-bits)")
    parser.add_argument("--count", type=int, help="the first N of each model's cells (all)")
    parser.add_argument("--slow", action="store_true", help=f"also those that send more than {MOST_MESSAGES:.0f} messages")
    parser.add_argument("--list", action="store_true", help="print the cells, and run none")
    parser.add_argument("--again", action="store_true", help="run cells that have a result, too")
    options = parser.parse_args(words)
    for name in options.model.split(","):
        if name not in MODELS:
            parser.error(f"--model {name}: not one of {', '.join(MODELS)}")
    for name in options.layout.split(",") if options.layout else ():
        if not any(name in layout for layout in LAYOUTS):
            parser.error(f"--layout {name}: not in a name of {'; '.join(LAYOUTS)}")
    return options


def main(words=None):
    options = parsed(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    layouts = options.layout.split(",") if options.layout else list(LAYOUTS) if os.geteuid() == 0 else ["one host"]
    chosen = [cell for cell in cells(options.model.split(",")) if all(word in f"{cell}" for word in options.only) and
              any(name in cell.layout for name in layouts)]
    slow = [cell for cell in chosen if cell.is_slow and not options.slow]
    chosen = [cell for cell in chosen if options.slow or not cell.is_slow]
    if options.count:
        place = collections.Counter()
        chosen = [cell for cell in chosen if place.update([cell.training.model]) or place[cell.training.model] <= options.count]
    if options.list:
        print(*chosen, sep="\n")
        return 0
    if not options.layout and os.geteuid() != 0:
        print("without root: only cells on one host")
    if slow:
        print(f"{len(slow)} cells are left out, which send more than {MOST_MESSAGES:.0f} messages; --slow runs them")
    given = dict(word.split("=", 1) for word in options.data_dir)
    data = {name: given.get(model.data) for name, model in MODELS.items()}
    top = pathlib.Path(tempfile.mkdtemp(prefix="evalboard-same-bits-"))
    try:
        if not data["resnet32"] and any(cell.training.model == "resnet32" for cell in chosen):
            print("resnet32 is trained on images of noise; --data-dir cifar10=DIR has others")
            data["resnet32"] = ranks.write_cifar(top / "cifar10")
        matrix = Matrix(chosen, Results(options.results, options.again), data, top)
        try:
            matrix.run(options.jobs)
        except KeyboardInterrupt:
            print("\nended; the next run goes on")
        return 0 if matrix.table() else 1
    finally:
        shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
