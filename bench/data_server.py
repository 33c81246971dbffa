"""How fast eventlog-server loads logs and answers, beside the data server that comes with TensorBoard: both are started as
TensorBoard starts them and asked by the same gRPC client, in turn. The stock one keeps 1000 points of a curve and checks
no sum of data; ours keeps every point and checks all. Its memory holds the compressed points.
"""
import json
import statistics
import subprocess

import programs
import summary
from log_reading_speed import Logs

TAGS, LARGE_RUNS = 37, 8  # of bench/event_log.c
# name: kind and count for event_log, curves, their last step; None and {points}: by --points
LOGS = {
    "one run, {points:,} points": ("scalars", lambda points: points, TAGS, None),
    "8 runs x {large:,} points": ("large", lambda points: points * 3 // 10 // TAGS * TAGS, LARGE_RUNS * TAGS, None),
    "500 runs x 10,000 points": ("curves", lambda _: 500, 5000, 999),
    "5,000 runs x 10 points": ("runs", lambda _: 5000, 5000, 9),
}


def ask(python, program, logs, logdir, series, last):
    run = subprocess.run(list(map(str, [python, "bench/data_server_peer.py", program, logdir, series, last, logs.path])),
                         capture_output=True, text=True, cwd=programs.ROOT, env=programs.ENVIRONMENT)
    if run.returncode:
        raise RuntimeError(f"{program}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout)


def middle(runs, key):
    return statistics.median(run[key] for run in runs)


def row(name, runs):
    return (name, f"{middle(runs, 'load'):.3f}", f"{middle(runs, 'cpu'):.2f}", f"{middle(runs, 'first'):.3f}",
            f"{middle(runs, 'mebibytes'):.0f}", f"{middle(runs, 'files'):.0f}")


def latency_rows(name, runs):
    for points, found in runs[-1]["latency"].items():
        rest = [run["latency"][points] for run in runs]
        yield (name, points, found["bytes"], f"{statistics.median(x['median'] for x in rest):.2f}",
               f"{statistics.median(x['p99'] for x in rest):.2f}")


WORDS = {"ours": "eventlog-server", "stock": "tensorboard-data-server"}


def run(options):
    python, server = programs.peer_python("tensorboard_data_server"), programs.program(options.build, "eventlog-server").resolve()
    points = options.points // TAGS * TAGS
    rows, latency, ratios = [], [], []
    for text, (kind, count_of, series, last) in LOGS.items():
        count = count_of(points)
        name = text.format(points=points, large=count)
        if any(word in name for word in options.without):
            continue
        with Logs(options.build) as logs:
            made = logs.make(kind, count)
            logdir, last = (made if made.is_dir() else made.parent), count // TAGS - 1 if last is None else last
            found = {which: [] for which in WORDS}
            for _ in range(options.rounds):
                for which, program in (("ours", server), ("stock", "stock")):
                    found[which].append(ask(python, program, logs, logdir, series, last))
        rows += [row(f"{name}: {word}", found[which]) for which, word in WORDS.items()]
        if kind == "curves":
            for which in ("ours", "stock"):
                latency += latency_rows(WORDS[which], found[which])
        for key, unit, words in (("load", "s", "until all is shown"), ("cpu", "s", "processor time"), ("mebibytes", "MiB", "memory")):
            mine, stock = middle(found["ours"], key), middle(found["stock"], key)
            summary.add(f"{name}: {words}", unit, mine, stock, "data server", measured=[run[key] for run in found["ours"]])
            ratios.append((name, words, f"{mine / stock:.2f}" if stock else ""))
    print(f"\ndata_server: medians of {options.rounds} rounds, from the start of the process until all curves are shown", flush=True)
    programs.table(("", "s", "CPU s", "first data s", "MiB", "open files"), rows)
    if latency:
        print("\nReadScalars of one curve by gRPC's Python client, milliseconds", flush=True)
        programs.table(("", "points", "bytes", "median", "p99"), latency)
    print("\nours / stock", flush=True)
    programs.table(("", "", "ratio"), ratios)
    return rows
