"""What benchmarks measured, in one table and as JSON: ours, the peer, how many times as fast, what the machine allows at
best (the roof), what limits, and how that compares with an earlier run (`--compare FILE` of bench/run.py).
"""
import json
import pathlib
import platform
import subprocess
import time

import programs

RESULTS = []
ROOFS = {}  # of one core of this machine: what machine_roof.c measures


def add(what, unit, ours, peer=None, peer_name="", roof=None, limit=""):
    """A result: smaller is better. peer: of the same work; roof: what the machine needs at least for it, both in the same
    unit as ours. limit: what takes the time, "compute", "memory" or "system calls"."""
    RESULTS.append({"what": what, "unit": unit, "ours": ours, "peer": peer, "peer_name": peer_name, "roof": roof,
                    "limit": limit})


def measure_roofs(build):
    """Once, before the rows that are compared with them. {} where the program is not built, or OpenBLAS missing."""
    if not ROOFS:
        try:
            said = subprocess.run([programs.helper(build, "bench/machine_roof")], capture_output=True, text=True,
                                  env=programs.ENVIRONMENT).stdout.split()
        except programs.Missing:
            said = []
        ROOFS.update(zip(("product_gflops", "copy_gb_per_second", "write_gb_per_second", "system_call_ns"), map(float, said)))
    return ROOFS


def roof(options, name, amount):
    """Seconds for so many operations (product_gflops) or bytes; None where that was not measured."""
    fastest = measure_roofs(options.build).get(name)
    return amount / fastest / 1e9 if fastest else None


def limit_of(run, roof=None):
    """What takes the time of a programs' run with its processor time and the system's part of it."""
    return "system calls" if run.system > run.cpu / 2 else "memory" if roof and run.cpu < 2 * roof else "compute"


def figure(value):
    return "" if value is None else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def show(earlier):
    """The table of all results. earlier: those of another run, which is best one of the same machine."""
    before = {(row["what"], row["unit"]): row["ours"] for row in earlier}
    rows = []
    for r in RESULTS:
        was = before.get((r["what"], r["unit"]))
        rows.append((r["what"], figure(r["ours"]), r["unit"], figure(r["peer"]), r["peer_name"],
                     f"{r['peer'] / r['ours']:.1f} x" if r["peer"] else "", figure(r["roof"]), r["limit"],
                     *([figure(was), f"{was / r['ours']:.2f} x" if was else ""] if earlier else [])))
    print("\nall of it; smaller is better", flush=True)
    programs.table(("", "ours", "unit", "peer", "which", "peer / ours", "roof", "limited by",
                    *(["before", "before / now"] if earlier else [])), rows)
    if ROOFS:
        print("one core of this machine at best: {product_gflops:.0f} GFLOP/s in products of float32, {copy_gb_per_second:.1f} GB/s "
              "copied in memory,\n{write_gb_per_second:.1f} GB/s written to a file in memory, {system_call_ns:.0f} ns a system call"
              .format(**ROOFS))


def read(path):
    """The results of a file that write() made."""
    return json.loads(pathlib.Path(path).read_text())["results"]


def write(path):
    document = {"version": 1, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "machine": platform.machine(), "cores": programs.cores(), "roofs": ROOFS, "results": RESULTS}
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.rename(path)
