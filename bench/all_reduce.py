"""Milliseconds of an all-reduce of floats on one host: ours in shared memory, MPI_Allreduce, PyTorch's gloo; two ranks."""
import pathlib
import subprocess
import tempfile

import programs
import summary

COUNTS = (464154, 1 << 20, 1 << 24)  # of resnet32, and rounder ones
RANKS = 2


def lines(text):
    """{count: the figures after it}"""
    return {int(words[0]): list(map(float, words[1:])) for words in map(str.split, text.splitlines())}


def ours_and_mpi(options, count, rounds):
    run = subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(RANKS),
                          programs.helper(options.build, "bench/all_reduce"), str(rounds), str(count)],
                         stdout=subprocess.PIPE, text=True, check=True, env=programs.ENVIRONMENT)
    return lines(run.stdout)[count]


def gloo(count, rounds):
    """None where PyTorch is not installed."""
    try:
        python = programs.peer_python("torch")
    except programs.Missing as missing:
        print(f"\nall_reduce: missing: {missing}")
        return None
    with tempfile.TemporaryDirectory() as directory:
        ranks = [subprocess.Popen([python, pathlib.Path(__file__).with_name("all_reduce_torch.py"), str(rank), str(RANKS),
                                   f"{directory}/store", str(rounds), str(count)], stdout=subprocess.PIPE, text=True,
                                  env=programs.ENVIRONMENT) for rank in range(RANKS)]
        said = [rank.communicate()[0] for rank in ranks]
    return lines(said[0])[count][0]


def run(options):
    rows = []
    for count in COUNTS:
        rounds = 20 if count >= 1 << 24 else 200
        ours, mpi = ours_and_mpi(options, count, rounds)
        torch = gloo(count, rounds)
        rows.append((f"{count:,} floats", f"{ours:.2f}", f"{mpi:.2f}", "-" if torch is None else f"{torch:.2f}",
                     f"{min(mpi, torch or mpi) / ours:.2f}"))
        copied = summary.roof(options, "copy_gb_per_second", 4 * count)  # a rank reads half of the other's, and its own sums
        summary.add(f"all-reduce of {count:,} floats, {RANKS} ranks", "ms", ours, *min(
            (time, name) for time, name in ((mpi, "MPI_Allreduce"), (torch, "gloo")) if time), copied and 1000 * copied, "memory")
    print(f"\nall-reduce in shared memory, {RANKS} ranks: ms, median")
    programs.table(("", "ours", "MPI_Allreduce", "gloo", "better of them / ours"), rows)
    return rows
