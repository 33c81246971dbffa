"""How fast ResNet-32 trains on CIFAR-10: our trainer with one and two ranks, PyTorch and TensorFlow, one thread each.

The trainer and PyTorch also take turns in bfloat16, which is for processors with AMX or AVX512-BF16. All take turns, round after round,
so that a slow minute of the machine hits each of them. Two processes of a peer that know nothing of each other show what
two cores give at best; our two ranks also exchange their gradients.
"""
import concurrent.futures
import re
import statistics
import subprocess

import programs
import summary

HERE = programs.ROOT / "bench"


def peer(script, module, *more):
    def command(options, data, directory, ranks):
        return [programs.peer_python(module), HERE / script, "--data-dir", data, "--steps", options.steps,
                "--batch-size", options.batch_size, "--log-every", options.log_every, *more]
    return command


def ours(options, data, directory, ranks, *more):
    return programs.trainer(options.build, ranks, data, directory, options.steps, "--batch-size", options.batch_size,
                            "--log-every", options.log_every, "--save-checkpoint-steps", 10 * options.steps, *more)


def ours_bfloat16(options, data, directory, ranks):
    return ours(options, data, directory, ranks, "--precision", "bfloat16")


def ours_threads(options, data, directory, ranks):
    """One rank, whose two threads each compute as much as a rank alone."""
    return ours(options, data, directory, 1, "--threads", 2, "--batch-size", 2 * options.batch_size)


# name, command, processes; ours with 2 is one run of two ranks, a peer's are two runs beside each other.
CONTENDERS = [
    ("evalboard, 1 rank", ours, 1),
    ("PyTorch, 1 process", peer("resnet32_torch.py", "torch"), 1),
    ("TensorFlow, 1 process", peer("resnet32_tensorflow.py", "tensorflow"), 1),
    ("evalboard in bfloat16, 1 rank", ours_bfloat16, 1),
    ("PyTorch in bfloat16, 1 process", peer("resnet32_torch.py", "torch", "--bfloat16"), 1),
    ("evalboard, 2 ranks", ours, 2),
    ("evalboard, 1 rank of 2 threads", ours_threads, 2),
    ("evalboard, 2 x 1 rank apart", ours, -2),
    ("PyTorch, 2 processes apart", peer("resnet32_torch.py", "torch"), -2),
]


def measure(options, data, command, processes):
    """Images/s of all processes together."""
    with programs.scratch(options.build) as directory, concurrent.futures.ThreadPoolExecutor() as pool:
        def one(number):
            place = directory / str(number)
            place.mkdir()
            times = programs.step_times(command(options, data, place, max(processes, 1)), place / "log")
            return programs.images_per_second(times, options.batch_size * max(processes, 1), options.warm_up)
        return sum(pool.map(one, range(max(-processes, 1))))


def roof_of(options):
    """Milliseconds that the sums of a step take at least in float32: forward, and twice as many backward. Winograd's algorithm has
    fewer products than sums, so that a step may take less. None: not known."""
    said = subprocess.run([programs.program(options.build, "trainer"), "describe", "resnet32"], capture_output=True, text=True,
                          env=programs.ENVIRONMENT).stdout
    macs = re.search(r"(\d+) MACs forward", said)
    seconds = macs and summary.roof(options, "product_gflops", 3 * 2 * int(macs.group(1)) * options.batch_size)
    return 1000 * seconds if seconds else None


def summarize(options, found):
    """found: {name: images/s of each round}. As time of an image, beside the best peer of as many processes and of no better
    precision."""
    middle = {name: 1000 / statistics.median(values) for name, values in found.items()}
    roof = roof_of(options)
    for name, _, processes in CONTENDERS:
        if not name.startswith("evalboard") or name not in middle:
            continue
        peers = [other for other, _, number in CONTENDERS if other in middle and not other.startswith("evalboard") and
                 abs(number) == abs(processes) and ("bfloat16" in other) <= ("bfloat16" in name)]
        best = min(peers, key=middle.get, default=None)
        summary.add(f"image of ResNet-32 training, {name.split(', ')[1]}{' in bfloat16' if 'bfloat16' in name else ''}", "ms", middle[name],
                    best and middle[best], best or "", roof and "bfloat16" not in name and roof / options.batch_size / abs(processes) or None,
                    "compute", [1000 / speed for speed in found[name]])


def run(options):
    data, note = programs.cifar10(options.cifar10_dir, options.build)
    print(f"\nResNet-32 training, batch {options.batch_size} a process, {options.steps} steps of which the first"
          f" {options.warm_up} are not counted, median of {options.rounds} rounds, one thread a process"
          + (f"\ndata: {note}" if note else ""), flush=True)
    found, missing = {}, {}
    for number in range(options.rounds):
        for name, command, processes in CONTENDERS:
            if name in missing or any(word in name for word in options.without):
                continue
            try:
                speed = measure(options, data, command, processes)
                found.setdefault(name, []).append(speed)
                programs.say(f"  round {number + 1}: {name}: {speed:.1f} images/s")
            except programs.Missing as why:
                missing[name] = why
            except RuntimeError as why:
                missing[name] = why
                programs.say(f"  {name}: {why}")
    summarize(options, found)
    middle = {name: statistics.median(values) for name, values in found.items()}
    rows = []
    for name, _, _ in CONTENDERS:
        if name not in middle:
            continue
        base = "PyTorch, 1 process" if name.endswith(("1 rank", "1 process")) else "PyTorch, 2 processes apart"
        single = f"{name.split(',')[0]}, {'1 rank' if 'rank' in name else '1 process'}"
        rows.append([name, f"{middle[name]:.1f}", f"{min(found[name]):.1f} - {max(found[name]):.1f}",
                     f"{middle[name] / middle[base]:.2f}" if base in middle else "-",
                     f"{middle[name] / middle[single]:.2f}" if single in middle else "-"])
    programs.table(["", "images/s", "least - most", "/ PyTorch", "/ one process"], rows)
    for name, why in missing.items():
        print(f"missing: {name}: {why}")
    return rows
