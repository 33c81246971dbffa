"""What `trainer plan` predicts beside what is measured, in one run: lenet between hosts whose network is slow (slow_network.py).

The plan knows nothing of the measurements: it measures a step alone, and messages between two of the hosts. Each cell must be
within a tenth; the bound is on this ratio, as the network decides, not the machine.
"""
import os
import tempfile

import programs
import slow_network

WITHIN = 0.1
MODEL = ["--model", "lenet", "--batch-size", "8"]
# what is measured: ranks on each host, the trainer's options; and what the plan has for it: workers, its options
CELLS = [
    ("mpi, 4 ranks on 2 hosts", [2, 2], ["--run-option", "mpi"], 4, ["--strategies", "mpi", "--ranks-per-host", "2"]),
    ("mpi, 6 ranks on 2 hosts", [3, 3], ["--run-option", "mpi"], 6, ["--strategies", "mpi", "--ranks-per-host", "3"]),
    ("mpi, 4 hosts", [1, 1, 1, 1], ["--run-option", "mpi"], 4, ["--strategies", "mpi"]),
    ("ring, 4 hosts", [1, 1, 1, 1], ["--run-option", "ring"], 4, ["--strategies", "ring"]),
    ("ps, 4 workers, 1 server, 5 hosts", [1, 1, 1, 1, 1], ["--run-option", "ps"], 4, ["--strategies", "ps", "--servers", "1"]),
    ("ps, 4 workers, 4 servers, 4 hosts", [2, 2, 2, 2], ["--run-option", "ps", "--servers-per-host", "1"], 4,
     ["--strategies", "ps"]),
    ("ps, 4 workers on 2 hosts, 1 server", [2, 2, 1], ["--run-option", "ps"], 4,
     ["--strategies", "ps", "--ranks-per-host", "2", "--servers", "1"]),
    ("ps, the same, each worker for itself", [2, 2, 1], ["--run-option", "ps", "--local-aggregation", "off"], 4,
     ["--strategies", "ps", "--ranks-per-host", "2", "--servers", "1", "--local-aggregation", "off"]),
]


def predicted(options, workers, how):
    """Milliseconds a step, by a plan that measures between two hosts."""
    with tempfile.TemporaryDirectory() as directory:
        network = None
        try:
            network = slow_network.Network(directory, 2, options.network_megabits, options.network_congestion)
            plan = network.train(programs.program(options.build, "trainer"), [1, 1], "plan", *MODEL, "--ranks", str(workers),
                                 "--format", "json", *how)
        finally:
            if network:
                network.close()
    return plan["rows"][0]["seconds_per_step"] * 1e3


def run(options):
    if os.geteuid() != 0:
        raise programs.Missing("network namespaces need root")
    rows = []
    for name, slots, how, workers, plan in CELLS:
        if any(word in name for word in options.without):
            continue
        rounds = sorted(slow_network.measured(options, slots, how)[0] for _ in range(options.network_rounds))
        step, expected = rounds[len(rounds) // 2], predicted(options, workers, plan)
        error = expected / step - 1
        rows.append((name, f"{step:.0f}", f"{rounds[0]:.0f}-{rounds[-1]:.0f}", f"{expected:.0f}", f"{100 * error:+.1f} %",
                     "" if abs(error) <= WITHIN else f"more than {100 * WITHIN:.0f} %"))
    print(f"\nlenet, ms a step between hosts at {options.network_megabits} Mbit/s, TCP {options.network_congestion}, "
          "predicted and measured")
    programs.table(("", "measured", "lowest-highest", "predicted", "error", ""), rows)
    return rows
