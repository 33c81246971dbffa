"""Words a second of a language model with a large table, over hosts whose network is slow: the hybrid, which sends the rows of
the table that a batch uses, beside ways that send the whole gradient. 640 words a step of all workers, vocabularies of
10,000 and 100,000; the hosts are those of slow_network.py, one worker on each, with a server beside it for hybrid and ps.

Weights must be equal, bit for bit, among mpi, its all-gather of rows (as Horovod does with IndexedSlices) and hybrid. Needs
root, iproute2 and util-linux.
"""
import os
import pathlib
import subprocess
import tempfile

import programs
import slow_network

UNITS, STEPS, SEQUENCES = 200, 20, 32  # of language_model; a sequence has STEPS words
CELLS = [("dense (mpi)", 1, ["--run-option", "mpi"]),
         ("rows all-gathered (mpi)", 1, ["--run-option", "mpi", "--sparse-exchange", "all-gather"]),
         ("rows and dense (ps)", 2, ["--run-option", "ps", "--servers-per-host", "1"]),
         ("hybrid", 2, ["--run-option", "hybrid", "--servers-per-host", "1", "--sparse-reduce", "mean"])]


def model(options, directory, words):
    """language_model of so many words, as a file."""
    text = subprocess.run([programs.program(options.build, "trainer"), "describe", "language_model", "--format=model"], check=True,
                          capture_output=True, text=True).stdout
    path = pathlib.Path(directory) / f"words-{words}.model"
    path.write_text(text.replace("10000", str(words)))
    return path


def measured(options, directory, hosts, words, each, how):
    """(words a second without the first step, bytes a step that the busiest host sends or gets, hash of the weights)"""
    network = None
    try:
        network = slow_network.Network(directory, hosts, options.network_megabits, options.network_congestion)
        summary = network.train(
            programs.program(options.build, "trainer"), [each] * hosts, "--model", str(model(options, directory, words)), "--data",
            "synthetic", "--global-batch", str(SEQUENCES), "--max-steps", str(options.table_steps), "--log-every", "100000",
            "--quiet", "--json", *how)
    finally:
        if network:
            network.close()
    seconds = (summary["seconds"] - summary["first_step_seconds"]) / (summary["steps"] - 1)
    ways = {}
    for link in summary["links"]:
        sums = ways.setdefault(link["host"], [0, 0])
        sums[0] += link["sent_to_other_hosts_per_step"]
        sums[1] += link["received_from_other_hosts_per_step"]
    return SEQUENCES * STEPS / seconds, max(map(max, ways.values())), summary["weights"]


def run(options):
    if os.geteuid() != 0:
        raise programs.Missing("network namespaces need root")
    rows = []
    for words in options.table_words:
        for hosts in options.table_hosts:
            found = {}
            for name, each, how in CELLS:
                if any(word in name for word in options.without):
                    continue
                with tempfile.TemporaryDirectory() as directory:
                    found[name] = measured(options, directory, hosts, words, each, how)
                speed, sent, weights = found[name]
                dense = found.get(CELLS[0][0])
                rows.append((f"{words} words, {hosts} hosts, {name}", f"{speed:.0f}", f"{speed / dense[0]:.2f}" if dense else "",
                             f"{sent / 1e6:.2f}", "" if not dense or "ps" in name else "equal" if weights == dense[2] else "differ"))
    print(f"\nlanguage_model, {SEQUENCES * STEPS} words a step of all workers, between hosts at {options.network_megabits} "
          f"Mbit/s, {options.table_steps} steps")
    programs.table(("", "words/s", "against dense", "MB/step of a host", "weights"), rows)
    return rows
