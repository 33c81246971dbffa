"""What training ResNet-32 costs: processor time of a step and peak memory, ours in float32 and bfloat16, PyTorch's likewise,
TensorFlow's, one thread each. Processor time hardly changes when other programs run; that of a step is what a long training
takes more than a short one. All take turns.
"""
import os
import statistics
import subprocess

import programs
import resnet32_speed
import summary

CONTENDERS = {
    "evalboard": resnet32_speed.ours,
    "evalboard in bfloat16": resnet32_speed.ours_bfloat16,
    "PyTorch": resnet32_speed.peer("resnet32_torch.py", "torch"),
    "PyTorch in bfloat16": resnet32_speed.peer("resnet32_torch.py", "torch", "--bfloat16"),
    "TensorFlow": resnet32_speed.peer("resnet32_tensorflow.py", "tensorflow"),
}


class Few:
    """The options, with as many steps."""

    def __init__(self, options, steps):
        self.__dict__.update(vars(options), steps=steps)


def cost(options, contender, data, steps):
    """Seconds of processor, and MiB at most, of so many steps."""
    with programs.scratch(options.build) as directory:
        words = [str(word) for word in contender(Few(options, steps), data, directory, 1)]
        with open(directory / "said", "w+") as said:
            process = subprocess.Popen(words, stdout=said, stderr=said, env=programs.ENVIRONMENT)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                said.seek(0)
                raise RuntimeError(f"{words[0]} ended with {process.returncode}: {said.read()[-300:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def report(found, roof):
    """Prints the table, and adds to the summary. roof: of a step in float32; found: {name: (milliseconds of each round, MiB of each)}."""
    middle = {name: [statistics.median(values) for values in both] for name, both in found.items()}
    programs.table(["", "ms a step", "least - most", "MiB"],
                   [[name, f"{ms:.0f}", f"{min(found[name][0]):.0f} - {max(found[name][0]):.0f}", f"{memory:.0f}"]
                    for name, (ms, memory) in middle.items()])
    for ours, what in (("evalboard", "float32"), ("evalboard in bfloat16", "bfloat16")):
        if ours not in middle:
            continue
        peers = [name for name in middle if not name.startswith("evalboard") and
                 ("bfloat16" in name) <= (what == "bfloat16")]  # in bfloat16 a peer may take what is faster
        best = min(peers, key=lambda name: middle[name][0], default=None)
        summary.add(f"step of ResNet-32 in {what}, processor time", "ms", middle[ours][0], best and middle[best][0], best or "",
                    roof if what == "float32" else None, "compute", found[ours][0])
    if "evalboard" in middle:
        theirs = middle.get("TensorFlow")
        summary.add("peak memory of training ResNet-32", "MiB", middle["evalboard"][1], theirs and theirs[1], "TensorFlow", measured=found["evalboard"][1])


def run(options):
    data, note = programs.cifar10(options.cifar10_dir, options.build)
    print(f"\nResNet-32 training, batch {options.batch_size}, one thread, median of {options.rounds} rounds of"
          f" {options.warm_up} and {options.steps} steps" + (f"\ndata: {note}" if note else ""), flush=True)
    found, missing = {}, {}
    for number in range(options.rounds):
        for name, contender in CONTENDERS.items():
            if name in missing or any(word in name for word in options.without):
                continue
            try:
                (short, _), (long, memory) = (cost(options, contender, data, n) for n in (options.warm_up, options.steps))
            except (programs.Missing, RuntimeError) as why:
                missing[name] = why
                continue
            milliseconds = 1000 * (long - short) / (options.steps - options.warm_up)
            programs.say(f"  round {number + 1}: {name}: {milliseconds:.0f} ms, {memory:.0f} MiB")
            for values, value in zip(found.setdefault(name, ([], [])), (milliseconds, memory)):
                values.append(value)
    report(found, resnet32_speed.roof_of(options))
    for name, why in missing.items():
        print(f"missing: {name}: {why}")
    return found
