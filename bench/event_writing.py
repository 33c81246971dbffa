"""Scalars a second into one event file, from one thread, closing included: ours, PyTorch's and tensorboardX's
SummaryWriter, TensorFlow eager and TensorFlow in one tf.function that loops; in turn, medians and the best of rounds.
Wanted: 5 million a second, and eight times the fastest of the others.
"""
import statistics
import subprocess

import programs
import summary

HERE = programs.ROOT / "bench"
PEER = HERE / "event_writing_peer.py"
MODULES = {"torch": "torch", "tensorboardX": "tensorboardX", "eager": "tensorflow", "function": "tensorflow"}


def writers(options):
    """[(name, scalars, command up to the directory, words behind the count)]; None for the command: missing."""
    ours = programs.helper(options.build, "bench/event_writing")
    lines = [("evalboard", 5_000_000, [ours], []), ("evalboard, with a queue of 8 MiB", 5_000_000, [ours], [8 << 20])]
    for name, kind, count in (("PyTorch SummaryWriter", "torch", 50_000), ("tensorboardX", "tensorboardX", 50_000),
                              ("TensorFlow, eager", "eager", 20_000),
                              ("TensorFlow, one tf.function", "function", 1_000_000)):
        try:
            lines.append((name, count, [programs.peer_python(MODULES[kind]), PEER, kind], []))
        except programs.Missing as missing:
            print(f"{name}: missing: {missing}")
    return lines


def run(options):
    print(f"\nscalars a second into one event file, one thread, closing included, {options.rounds} rounds in turn",
          flush=True)
    lines, rates = writers(options), {}
    for _ in range(options.rounds):
        for name, count, command, words in lines:
            with programs.scratch(options.build) as directory:
                ran = subprocess.run(list(map(str, [*command, directory / "run", count, *words])), text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                     env={**programs.ENVIRONMENT, "TF_CPP_MIN_LOG_LEVEL": "3"})
            if ran.returncode:
                raise RuntimeError(f"{name}: {ran.stderr[-300:]}")
            rates.setdefault(name, []).append(count / float(ran.stdout.split()[-1]))
    middle = {name: statistics.median(values) for name, values in rates.items()}
    fastest = max((rate for name, rate in middle.items() if not name.startswith("evalboard")), default=None)
    programs.table(["", "scalars", "median /s", "best /s", "of the fastest other"],
                   [[name, count, f"{middle[name]:,.0f}", f"{max(rates[name]):,.0f}",
                     f"{middle[name] / fastest:.2f}" if fastest else "-"] for name, count, *_ in lines])
    summary.add("a scalar written", "ns", 1e9 / middle["evalboard"], fastest and 1e9 / fastest, "the fastest peer",
                measured=[1e9 / rate for rate in rates["evalboard"]])
    print("wanted: 5,000,000 /s and 8 times the fastest other")
    return list(rates)
