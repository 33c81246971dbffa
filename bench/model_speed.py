"""What a step of each small model costs in processor time: our trainer in float32 and bfloat16, PyTorch likewise, by itself and
compiled, and TensorFlow, one thread each. All take turns. Ours reads and transforms its input, where the peers take one batch again
and again; it is measured as what a long training takes more than a short one.
"""
import pathlib
import random
import re
import statistics
import subprocess

import programs
import summary
import training_cost

HERE = programs.ROOT / "bench"
# name: data, images a step, steps not counted, steps
MODELS = {
    "lenet": ("mnist", 128, 100, 500),
    "cifar10_cnn": ("cifar10", 128, 5, 25),
    "mnist_lstm": ("mnist", 32, 200, 1200),
    "mnist_cnn": ("mnist", 64, 2, 6),
}
PEERS = {
    "PyTorch": ("model_torch.py", "torch"),
    "PyTorch compiled": ("model_torch.py", "torch", "--compile"),
    "PyTorch in bfloat16": ("model_torch.py", "torch", "--bfloat16"),
    "PyTorch compiled in bfloat16": ("model_torch.py", "torch", "--compile", "--bfloat16"),
    "TensorFlow": ("model_tensorflow.py", "tensorflow"),
}
OURS = {"evalboard": "float32", "evalboard in bfloat16": "bfloat16"}


def noise_of_mnist(directory):
    """Noise in MNIST's shape: speed does not depend on the pixels."""
    noise = random.Random(1)
    for name, count in (("train", 10000), ("t10k", 1000)):
        for kind, shape, content in (("images-idx3", (2051, count, 28, 28), noise.randbytes(784 * count)),
                                     ("labels-idx1", (2049, count), bytes(i % 10 for i in range(count)))):
            (directory / f"{name}-{kind}-ubyte").write_bytes(b"".join(n.to_bytes(4, "big") for n in shape) + content)
    return directory


def ours(model, precision, data_dir):
    """A command for training_cost.cost()."""
    data, batch, _, _ = MODELS[model]

    def command(options, _, directory, ranks):
        return [programs.program(options.build, "trainer"), "--model", model, "--data", data, "--data-dir", data_dir, "--batch-size", batch,
                "--precision", precision, "--max-steps", options.steps, "--log-every", options.steps, "--checkpoint-dir",
                directory / "checkpoints", "--save-checkpoint-steps", 10 * options.steps]
    return command


def our_cost(options, model, precision, data_dir):
    """Milliseconds a step."""
    _, _, warm_up, steps = MODELS[model]
    (short, _), (long, _) = (training_cost.cost(options, ours(model, precision, data_dir), None, n) for n in (warm_up, steps))
    return 1000 * (long - short) / (steps - warm_up)


def peer_cost(model, script, module, *more):
    """The same."""
    _, batch, warm_up, steps = MODELS[model]
    command = [programs.peer_python(module), HERE / script, "--model", model, "--batch-size", batch, "--steps", steps, "--warm-up",
               warm_up, *more]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=programs.ENVIRONMENT)
    if not (found := re.search("seconds a step: (.*)", ended.stdout)):
        raise RuntimeError(f"{script} ended with {ended.returncode}: {ended.stderr[-300:]}")
    return 1000 * float(found[1])


def best(middle, model, precision):
    """The name of the fastest peer; in bfloat16 one may compute in float32, if that is faster."""
    times = {name: middle[model, name] for name in PEERS if (model, name) in middle and ("bfloat16" in name) <= (precision == "bfloat16")}
    return min(times, key=times.get, default=None)


def report(found):
    """found: {(model, contender): milliseconds of each round}. Returns the rows of the table."""
    middle = {key: statistics.median(values) for key, values in found.items()}
    rows = []
    for name in (*OURS, *PEERS):
        cells = [f"{middle[model, name]:.2f}" if (model, name) in middle else "-" for model in MODELS]
        if any(cell != "-" for cell in cells):
            rows.append([name, *cells])
    for name, precision in OURS.items():
        cells = []
        for model in MODELS:
            peer = best(middle, model, precision)
            if not peer or (model, name) not in middle:
                cells.append("-")
                continue
            cells.append(f"{middle[model, peer] / middle[model, name]:.2f} x")
            summary.add(f"step of {model} in {precision}, processor time", "ms", middle[model, name], middle[model, peer], peer, None,
                        "compute", found[model, name])
        rows.append([f"best peer / {name}", *cells])
    programs.table(["ms a step", *MODELS], rows)
    return rows


def run(options):
    print(f"\nTraining of the small models, one thread, processor time, median of {options.rounds} rounds; images a step: "
          + ", ".join(f"{model} {batch}" for model, (_, batch, _, _) in MODELS.items()), flush=True)
    found, missing = {}, {}
    with programs.scratch(options.build) as directory:
        data = {"mnist": pathlib.Path(options.mnist_dir) if options.mnist_dir else noise_of_mnist(directory),
                "cifar10": programs.cifar10(options.cifar10_dir, options.build)[0]}
        jobs = [(model, name) for model in MODELS for name in (*OURS, *PEERS) if not any(word in name for word in options.without)]
        for number in range(options.rounds):
            for model, name in jobs:
                if (model, name) in missing:
                    continue
                try:
                    cost = (our_cost(options, model, OURS[name], data[MODELS[model][0]]) if name in OURS else
                            peer_cost(model, *PEERS[name]))
                except (programs.Missing, RuntimeError) as why:
                    missing[model, name] = why
                    continue
                programs.say(f"  round {number + 1}: {model}: {name}: {cost:.2f} ms")
                found.setdefault((model, name), []).append(cost)
    rows = report(found)
    for (model, name), why in missing.items():
        print(f"missing: {model}: {name}: {why}")
    return rows
