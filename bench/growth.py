"""How the work of each command of eventlog grows with points, tags and runs: processor time a decade, MB/s, memory a point.

The exponent is that of time between the two largest sizes, where that takes a tenth of a second: 1 is linear, 2 is
quadratic. With points it is that of the program's own time, as the kernel's ("system") is that of fresh memory for files of
gigabytes, which has its own course; with tags and runs the kernel's time counts, too. What seems not linear is measured
again, up to twice, and the fastest counts. Memory below Python's own, some 15 MiB, is not seen, as the kernel counts it in.
"""
import math
import shutil

import programs
from log_reading_speed import Logs, measure

POINTS_EACH = {"points": 1, "tags": 10, "runs": 10}
KINDS = {"points": "scalars", "tags": "tags", "runs": "runs"}
LEAST_SECONDS, MOST_EXPONENT, LEAST_MEBIBYTES = 0.1, 1.25, 20
ROUNDS = 3  # at most, where the first is too long: other work on the machine only adds
COMMANDS = [line.split() for line in """
inspect LOG
inspect --json LOG
tags LOG
stats LOG
stats --diverged LOG
compare --json LOG
compare -o OUT.svg LOG
plot LOG
verify LOG
tail -n 10 LOG
export -o OUT.csv LOG
export --order file -o OUT.csv LOG
export -o OUT.csv.gz LOG
export --format wide --dup last -o OUT.csv LOG
export -o OUT.json LOG
export -o OUT.jsonl LOG
export --format jsonl-series -o OUT LOG
export --format tb-csv -o OUT/ LOG
export --format reduce --lax-tags -o OUT.csv LOG
export -o OUT.prom LOG
export -o OUT.sqlite LOG
merge --prefix LOG -o OUT
merge --keep-runs LOG -o OUT
merge --join LOG -o OUT
rename-tag layer_00/loss=loss LOG -o OUT
drop-tag layer_00/* LOG -o OUT
downsample --max-points 5 LOG -o OUT
split --by run LOG -o OUT
prune --fewer-than 5 LOG
write -d OUT -
repair FILE -o OUT
""".split("\n") if line]


def size_of(log):
    return sum(path.stat().st_size for path in ([log] if log.is_file() else log.rglob("*")) if path.is_file())


class Growing:
    """A log of one size, and what its commands take."""

    def __init__(self, logs, tool, by, count):
        self.logs, self.tool, self.points = logs, tool, count * POINTS_EACH[by]
        self.log = logs.make(KINDS[by], count)
        self.bytes = size_of(self.log)
        self.count = count

    def words(self, command):
        directory = self.log if self.log.is_dir() else self.log.parent
        replaced = {"LOG": str(directory), "DIRECTORY": str(directory), "FILE": str(next(directory.rglob("*tfevents*")))}
        return [replaced.get(word, word.replace("OUT", str(self.logs.path / "out"))) for word in command]

    def clear(self):
        for path in self.logs.path.glob("out*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def measure(self, command):
        points = self.logs.path / "points.csv" if command[0] == "write" else None
        if points:
            measure([self.tool, "export", "-f", "-o", points, self.log], rounds=1)
        self.clear()
        run = measure([self.tool, *self.words(command)], rounds=1, good=(0, 1), given=points)
        self.clear()
        return run

    def release(self):
        shutil.rmtree(self.log if self.log.is_dir() else self.log.parent)


def judged(by, run):
    return run.cpu - run.system if by == "points" else run.cpu


def exponent(by, sizes, runs):
    """Of time over size, or None where all is over too soon to tell."""
    few, many = sizes[-2:]
    before, after = (judged(by, run) for run in runs[-2:])
    if after < LEAST_SECONDS:
        return None
    return math.log(after / max(before, LEAST_SECONDS / 10)) / math.log(many / few)


def row(by, command, logs, runs):
    power = exponent(by, [log.count for log in logs], runs)
    grown = runs[-1].mebibytes * 2**20 / logs[-1].points if runs[-1].mebibytes > LEAST_MEBIBYTES else None
    said = "too short" if power is None else f"{power:.2f}" + (" NOT LINEAR" if power > MOST_EXPONENT else "")
    return (" ".join(command), *(f"{run.cpu:.2f}" for run in runs), f"{runs[-1].system:.2f}",
            f"{logs[-1].bytes / 1e6 / runs[-1].cpu:.0f}",
            f"{runs[-1].mebibytes:.0f}", "" if grown is None else f"{grown:.0f}", said)


def table(options, by, powers):
    tool, sizes = programs.program(options.build, "eventlog"), [round(10**power) for power in powers]
    measured = {}
    with Logs(options.build) as place:
        logs = []
        for size in sizes:
            logs.append(Growing(place, tool, by, size))
            for number, command in enumerate(COMMANDS):
                runs = measured.setdefault(number, [])
                runs.append(logs[-1].measure(command))
                again = ROUNDS - 1
                while again and len(runs) > 1 and (exponent(by, sizes[:len(runs)], runs) or 0) > MOST_EXPONENT:
                    runs[-1], again = min(runs[-1], logs[-1].measure(command), key=lambda run: judged(by, run)), again - 1
            logs[-1].release()
    print(f"\ngrowth with {by}: processor seconds at so many {by}"
          + (f" of {POINTS_EACH[by]} points each" if POINTS_EACH[by] > 1 else ""), flush=True)
    programs.table(("", *(f"{size:,}" for size in sizes), "system", "MB/s", "MiB", "bytes a point", "exponent"),
                   [row(by, command, logs, measured[number]) for number, command in enumerate(COMMANDS)])
    return measured


def powers_of(text):
    """"4,5,7.7": powers of ten, two at least."""
    powers = [float(word) for word in text.split(",")]
    if len(powers) < 2 or powers != sorted(set(powers)):
        raise ValueError(text)
    return powers


def run(options):
    return [table(options, by, getattr(options, f"growth_{by}")) for by in KINDS]
