"""How fast logs are read: exported, checked, inspected, on one core, from a warm page cache. Each beside a peer in the
same run: tbparse for export, TensorBoard's own file loader for verify (it compares both CRCs and decodes, no more),
EventAccumulator and `tensorboard --inspect` for inspect. Peers get a tenth of the data and are compared per unit.
"""
import collections
import os
import pathlib
import subprocess
import time

import programs
import summary

Run = collections.namedtuple("Run", "seconds cpu mebibytes system")

TBPARSE = "import sys; from tbparse import SummaryReader; SummaryReader(sys.argv[1]).scalars.to_csv(sys.argv[2])"
LOADER = """import collections, sys
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
collections.deque(RawEventFileLoader(sys.argv[1]).Load(), maxlen=0)"""
ACCUMULATOR = """import pathlib, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for run in sorted({p.parent for p in pathlib.Path(sys.argv[1]).rglob('*tfevents*')}):
    a = EventAccumulator(str(run), size_guidance={'scalars': 0})
    a.Reload()
    print(run, a.Tags()['scalars'], [(p[0].step, p[-1].step, len(p)) for p in map(a.Scalars, a.Tags()['scalars'])])"""


def one_core():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure_all(command, rounds=3, good=(0,), given=None):
    """Some runs on one core. given: a file on standard input."""
    runs = []
    for _ in range(rounds):
        started = time.monotonic()
        with open(given or os.devnull) as file:
            process = subprocess.Popen(list(map(str, command)), stdin=file, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL, env=programs.ENVIRONMENT, preexec_fn=one_core)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in good:
            raise RuntimeError(f"{' '.join(map(str, command))} ended with {process.returncode}")
        runs.append(Run(time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, usage.ru_stime))
    return runs


def best_of(runs):
    """The fastest; memory is the most of all."""
    return min(runs)._replace(mebibytes=max(run.mebibytes for run in runs))


def measure(command, rounds=3, good=(0,), given=None):
    """The fastest of some runs on one core; memory is the most of all. given: a file on standard input."""
    return best_of(measure_all(command, rounds, good, given))


class Logs:
    """Logs made for one benchmark, in memory where there is a tmpfs; gone afterwards."""

    def __init__(self, build):
        self.maker = programs.helper(build, "bench/event_log")
        self.place = programs.scratch(build, in_memory=True)

    def __enter__(self):
        self.path = self.place.__enter__()
        return self

    def __exit__(self, *exception):
        self.place.__exit__(*exception)

    def make(self, kind, count):
        directory = self.path / f"{kind}-{count}"
        if kind in ("runs", "curves", "large"):
            subprocess.run([self.maker, kind, str(count), directory], check=True)
            return directory
        directory.mkdir()
        file = directory / "events.out.tfevents.1700000000.host.1.0"
        subprocess.run([self.maker, kind, str(count), file], check=True)
        return file


def peer(rows, name, module, command, count):
    """A row for a peer, or one that says that it is missing; returns seconds per unit."""
    try:
        run = measure([programs.peer_python(module), *command], rounds=1)
    except (programs.Missing, RuntimeError) as missing:
        rows.append((f"{name}: missing ({missing})", "", "", "", "", ""))
        return None
    rows.append((name, f"{run.seconds:.2f}", f"{run.cpu:.2f}", f"{run.mebibytes:.0f}", f"{run.seconds / count * 1e9:.0f}",
                 ""))
    return run.seconds / count


def ours(rows, name, command, count, wanted):
    runs = measure_all(command, good=(0, 1))
    run = best_of(runs)
    file = pathlib.Path(command[-1])
    roof = programs.copy_seconds(file.stat().st_size) if file.is_file() else None
    summary.add(name, "s", run.cpu, None, "", roof, summary.limit_of(run, roof), [run.cpu for run in runs])
    rows.append((name, f"{run.seconds:.2f}", f"{run.cpu:.2f}", f"{run.mebibytes:.0f}", f"{run.seconds / count * 1e9:.0f}",
                 wanted))
    return run.seconds / count


def ratio(text, our, their, peer_name=""):
    if their:
        summary.add(f"{text}, per unit", "ns", our * 1e9, their * 1e9, peer_name)
        print(f"{text}: {their / our:.0f} times as fast as the peer, per unit")


def export_speed(options):
    tool, n, rows = programs.program(options.build, "eventlog"), options.points, []
    with Logs(options.build) as logs:
        file, few = logs.make("scalars", n), logs.make("scalars", n // 10)
        out = logs.path / "out.csv"
        first = ours(rows, f"eventlog export, {n:,} points", [tool, "export", "-f", "-o", out, file], n,
                     "<= 3 s, 300 MiB")
        ours(rows, "eventlog export --order=file", [tool, "export", "-f", "--order=file", "-o", out, file], n,
             "<= 3 s, 20 MiB")
        theirs = peer(rows, f"tbparse, {n // 10:,} points", "tbparse", ["-c", TBPARSE, few.parent, out], n // 10)
    print("\nexport_speed: 37 series of one file to CSV", flush=True)
    programs.table(("", "seconds", "CPU s", "MiB", "ns a point", "wanted of 10^7"), rows)
    ratio("export", first, theirs, "tbparse")
    return [first]


def verify_speed(options):
    tool, rows, slowest = programs.program(options.build, "eventlog"), [], 0
    with Logs(options.build) as logs:
        for kind, size in (("scalars", 53), ("tensors", 73), ("histograms", 1067), ("mixed", 188)):
            count = max(options.log_bytes // size, 10)
            file = logs.make(kind, count)
            run = measure([tool, "verify", file])
            speed = file.stat().st_size / 1e9 / run.seconds
            slowest = max(slowest, 1 / speed)
            rows.append((f"eventlog verify, {kind}", f"{file.stat().st_size / 1e6:.0f}", f"{run.seconds:.2f}",
                         f"{run.mebibytes:.0f}", f"{speed:.2f}", ">= 1"))
            file.unlink()
        file, theirs = logs.make("scalars", max(options.log_bytes // 530, 10)), None
        try:
            run = measure([programs.peer_python("tensorboard"), "-c", LOADER, file], rounds=1)
            theirs = run.seconds / (file.stat().st_size / 1e9)
            rows.append(("TensorBoard's file loader, scalars", f"{file.stat().st_size / 1e6:.0f}", f"{run.seconds:.2f}",
                         f"{run.mebibytes:.0f}", f"{1 / theirs:.3f}", ""))
        except (programs.Missing, RuntimeError) as missing:
            rows.append((f"TensorBoard's file loader: missing ({missing})", "", "", "", "", ""))
    print("\nverify_speed: every CRC and every rule", flush=True)
    programs.table(("", "MB", "seconds", "MiB", "GB/s", "wanted"), rows)
    ratio("verify, the slowest kind", slowest, theirs, "TensorBoard")
    return [slowest]


def inspect_speed(options):
    tool, n, rows = programs.program(options.build, "eventlog"), options.points, []
    with Logs(options.build) as logs:
        file, few = logs.make("scalars", n), logs.make("scalars", n // 10)
        runs, some = logs.make("runs", 5000), logs.make("runs", 500)
        many = ours(rows, "eventlog inspect, 5,000 runs x 10 points", [tool, "inspect", runs], 50000, "<= 0.3 s")
        accumulated = peer(rows, "EventAccumulator, 500 runs x 10 points", "tensorboard", ["-c", ACCUMULATOR, some], 5000)
        one = ours(rows, f"eventlog inspect, {n:,} points", [tool, "inspect", file], n, "<= 1.2 s")
        theirs = peer(rows, f"tensorboard --inspect, {n // 10:,} points", "tensorboard",
                      ["-m", "tensorboard.main", "--inspect", "--event_file", few], n // 10)
    print("\ninspect_speed: what is in a log", flush=True)
    programs.table(("", "seconds", "CPU s", "MiB", "ns a point", "wanted"), rows)
    ratio("5,000 runs", many, accumulated, "EventAccumulator")
    ratio("one file", one, theirs, "tensorboard --inspect")
    return [one]
