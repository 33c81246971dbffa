"""What benchmarks measured, in one table and as JSON: ours, the peer, how many times as fast, what the machine allows at
best (the roof), what limits, and how that compares with an earlier run (`--compare FILE` of bench/run.py). A change counts
where all measurements of one run are on one side of all those of the other one.
"""
import json
import pathlib
import platform
import subprocess
import time

import programs

RESULTS = []
ROOFS = {}  # of one core of this machine: what machine_roof.c measures


def add(what, unit, ours, peer=None, peer_name="", roof=None, limit="", measured=()):
    """A result: smaller is better. peer: of the same work; roof: what the machine needs at least for it; measured: all
    measurements of which ours is the middle or the least: all in the same unit as ours. limit: what takes the time, "compute",
    "memory" or "system calls"."""
    RESULTS.append({"what": what, "unit": unit, "ours": ours, "peer": peer, "peer_name": peer_name, "roof": roof,
                    "limit": limit, "measured": list(measured)})


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


def change(was, now):
    """"better" or "worse": by more than the spread of the measurements of both. "": not so. "?": measured once, not known."""
    before, after = was.get("measured", ()), now["measured"]
    if min(len(before), len(after)) < 2:
        return "?"
    return "better" if max(after) < min(before) else "worse" if min(after) > max(before) else ""


def spread(row):
    """"12 ms (11 to 13)"."""
    return f"{figure(row['ours'])} {row['unit']} ({figure(min(row['measured']))} to {figure(max(row['measured']))})"


def compare(earlier):
    """{(what, unit): (row before, change)} of all results that were there before."""
    before = {(row["what"], row["unit"]): row for row in earlier}
    now = {(row["what"], row["unit"]): row for row in RESULTS}
    return {key: (before[key], change(before[key], row)) for key, row in now.items() if key in before}


def show_changes(compared, absent):
    """What is better or worse, a line each. absent: results that were there before, and are not now."""
    words = [word for _, word in compared.values()]
    print(f"\nof {len(compared)} results that were measured before, too, {words.count('worse')} are worse and {words.count('better')} better "
          f"by more than the spread of both runs; {words.count('?')} were measured once, so that their spread is not known"
          + (f"; {absent} of before are not measured now" if absent else ""))
    for r in RESULTS:
        was, word = compared.get((r["what"], r["unit"]), (None, ""))
        if word in ("worse", "better"):
            print(f"{word}: {r['what']}: {spread(was)} before, {spread(r)} now: {r['ours'] / was['ours']:.2f} times")


def show(earlier, roofs):
    """The table of all results. earlier, roofs: those of another run, which is best one of the same machine."""
    compared, rows = compare(earlier), []
    for r in RESULTS:
        was, word = compared.get((r["what"], r["unit"]), (None, ""))
        rows.append((r["what"], figure(r["ours"]), r["unit"], figure(r["peer"]), r["peer_name"] if r["peer"] else "",
                     f"{r['peer'] / r['ours']:.1f} x" if r["peer"] else "", figure(r["roof"]), r["limit"],
                     *([figure(was["ours"]), f"{was['ours'] / r['ours']:.2f} x", word] if was else ["", "", ""] if earlier else [])))
    print("\nall of it; smaller is better", flush=True)
    programs.table(("", "ours", "unit", "peer", "which", "peer / ours", "roof", "limited by",
                    *(["before", "before / now", "change"] if earlier else [])), rows)
    if earlier:
        show_changes(compared, len(earlier) - len(compared))
        if ROOFS and all(roofs.get(name) for name in ROOFS):
            now = {name: ROOFS[name] / roofs[name] for name in ROOFS}
            print("this machine now, of what it did then: {product_gflops:.2f} in products, {copy_gb_per_second:.2f} in copies, "
                  "{write_gb_per_second:.2f} in writes;\n{system_call_ns:.2f} times the time of a system call".format(**now))
    if ROOFS:
        print("one core of this machine at best: {product_gflops:.0f} GFLOP/s in products of float32, {copy_gb_per_second:.1f} GB/s "
              "copied in memory,\n{write_gb_per_second:.1f} GB/s written to a file in memory, {system_call_ns:.0f} ns a system call"
              .format(**ROOFS))


def read(path):
    """The results and the roofs of a file that write() made."""
    document = json.loads(pathlib.Path(path).read_text())
    return document["results"], document.get("roofs", {})


def write(path):
    document = {"version": 1, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "machine": platform.machine(), "cores": programs.cores(), "roofs": ROOFS, "results": RESULTS}
    temporary = pathlib.Path(f"{path}.tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.rename(path)
