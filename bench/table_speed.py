"""Words a second of language_model between hosts whose network is slow, 640 words of each worker a step: the hybrid, which sends
the rows of the table that a batch uses to servers, beside all workers' rows for all (all-gather, as Horovod does with
IndexedSlices) and the whole gradient (dense). Over hosts, with one worker on each, and a server beside it for the hybrid: those
of slow_network.py. Needs root, iproute2 and util-linux.

What a host sends by all-gather grows with the number of workers, until it is more than the whole table: sooner where the table is
small. So there are three vocabularies, each at a rate at which the network takes most of a step: all hosts share the cores of
this machine, and what these take would be noise. The column "of the wire" says how much of a step the bytes of the busiest
host take at this rate. Rounds take turns, and the median counts. Weights must be equal, bit for bit.

A link's queue holds 200 ms of its rate (--table-queue). With one of 4 MB, 5 s at 6 Mbit/s, TCP's timers expire while packets wait
in it, whoever pauses begins slowly again, and a connection needs seconds to be fast: links idle, more of them where more
connections share a host, as with workers and servers.
"""
import csv
import os
import pathlib
import statistics
import subprocess
import tempfile

import programs
import slow_network

STEPS, SEQUENCES = 20, 32  # words of a sequence, sequences of a worker
CELLS = {"dense": (1, ["--run-option", "mpi"]),
         "all-gather": (1, ["--run-option", "mpi", "--sparse-exchange", "all-gather"]),
         "hybrid": (2, ["--run-option", "hybrid", "--servers-per-host", "1", "--partitions", "HOSTS", "--sparse-reduce", "mean"])}
# words: megabits a second, hosts
VOCABULARIES = {500: (6, [2, 4, 8]), 10000: (50, [2, 4, 8]), 100000: (100, [2, 4])}


def model(options, directory, words):
    """language_model of so many words, as a file."""
    text = subprocess.run([programs.program(options.build, "trainer"), "describe", "language_model", "--format=model"], check=True,
                          capture_output=True, text=True).stdout
    path = pathlib.Path(directory) / f"words-{words}.model"
    path.write_text(text.replace("10000", str(words)))
    return path


def seconds_a_step(options, log):
    """Without the first, in which connections are made, and without what comes after the last: of the hybrid rank 0 then
    fetches the whole tables."""
    points = subprocess.run([programs.program(options.build, "eventlog"), "export", log, "--tag", "loss", "--format", "csv"], check=True,
                            capture_output=True, text=True).stdout
    times = [float(row["wall_time"]) for row in csv.DictReader(points.splitlines())]
    return (times[-1] - times[0]) / (len(times) - 1)


def measured(options, words, hosts, megabits, cell):
    """(seconds a step without the first, bytes a step that the busiest host sends or gets, hash of the weights)"""
    each, how = CELLS[cell]
    network = None
    with tempfile.TemporaryDirectory() as directory:
        try:
            network = slow_network.Network(directory, hosts, megabits, options.network_congestion,
                                           options.table_queue * megabits * 125)
            summary = network.train(
                programs.program(options.build, "trainer"), [each] * hosts, "--model", str(model(options, directory, words)), "--data",
                "synthetic", "--batch-size", str(SEQUENCES), "--max-steps", str(options.table_steps), "--log-every", "1",
                "--log-dir", f"{directory}/log", "--quiet", "--json", "--deadline", "300", *(str(hosts) if word == "HOSTS" else word for word in how))
        finally:
            if network:
                network.close()
        seconds = seconds_a_step(options, f"{directory}/log")
    ways = {}
    for link in summary["links"]:
        sums = ways.setdefault(link["host"], [0, 0])
        sums[0] += link["sent_to_other_hosts_per_step"]
        sums[1] += link["received_from_other_hosts_per_step"]
    return seconds, max(map(max, ways.values())), summary["weights"]


def rows_of(words, hosts, megabits, found):
    """found: of each cell, its rounds."""
    dense, rows = found["dense"], []
    middle = {cell: statistics.median(seconds for seconds, _, _ in rounds) for cell, rounds in found.items()}
    for cell, rounds in found.items():
        wire = rounds[0][1] * (1 + slow_network.HEADERS / slow_network.SEGMENT) * 8 / (megabits * 1e6)
        speeds = sorted(hosts * SEQUENCES * STEPS / seconds for seconds, _, _ in rounds)
        rows.append((f"{words:7} {hosts} {cell}", f"{hosts * SEQUENCES * STEPS / middle[cell]:.0f}",
                     f"{speeds[0]:.0f}-{speeds[-1]:.0f}", f"{middle['dense'] / middle[cell]:.2f}", f"{rounds[0][1] / 1e6:.2f}",
                     f"{100 * wire / middle[cell]:.0f} %",
                     "" if cell == "dense" else "equal" if all(r[2] == dense[0][2] for r in rounds) else "differ"))
    return rows


def run(options):
    if os.geteuid() != 0:
        raise programs.Missing("network namespaces need root")
    rows, rates = [], []
    for words in options.table_words:
        megabits, several = VOCABULARIES.get(words, VOCABULARIES[10000])
        megabits, several = options.table_megabits or megabits, options.table_hosts or several
        rates.append(f"{words} words at {megabits} Mbit/s")
        found = {(hosts, cell): [] for hosts in several for cell in CELLS}
        for number in range(options.table_rounds):
            for hosts, cell in found:
                found[hosts, cell].append(measured(options, words, hosts, megabits, cell))
                programs.say(f"  round {number + 1}: {words} words, {hosts} hosts, {cell}: {found[hosts, cell][-1][0]:.2f} s a step")
        for hosts in several:
            rows += rows_of(words, hosts, megabits, {cell: found[hosts, cell] for cell in CELLS})
    print(f"\nlanguage_model, {SEQUENCES * STEPS} words of each worker a step, median of {options.table_rounds}, {options.table_steps} "
          f"steps without the first;\n{', '.join(rates)}; queues of {options.table_queue} ms")
    programs.table(("  words hosts", "words/s", "least-most", "/ dense", "MB/step", "of the wire", "weights"), rows)
    return rows
