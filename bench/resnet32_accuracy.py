"""How well ResNet-32 does after a few hundred steps on CIFAR-10: our trainer and evaluator beside PyTorch with the same
recipe (batch, rate, momentum, decay, augmentation, initial distributions; evaluation with the moving statistics).

The two draw other random numbers, so single figures differ; what to compare are the means and their spread over seeds.
"""
import concurrent.futures
import json
import re
import subprocess

import programs

HERE = programs.ROOT / "bench"
RATE = 0.1


def checked(command):
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=programs.ENVIRONMENT)
    if run.returncode:
        raise RuntimeError(f"{command[0]} ended with {run.returncode}: {(run.stderr or run.stdout)[-300:]}")
    return run.stdout + run.stderr


def precisions(scores):
    """step -> precision, as the evaluator found it"""
    rows = map(json.loads, (scores / "evaluations.jsonl").read_text().splitlines())
    return {row["step"]: row["metrics"]["precision"] for row in rows if row.get("metrics")}


def ours(options, data, directory, seed):
    """step -> precision"""
    checked(programs.trainer(options.build, 1, data, directory, options.accuracy_steps, "--batch-size",
                             options.batch_size, "--learning-rate", RATE, "--optimizer", "momentum", "--seed", seed,
                             "--save-checkpoint-steps", options.evaluate_every, "--keep", 0, "--log-every", 10))
    scores = directory / "eval"
    checked([programs.program(options.build, "evaluator"), "--checkpoint-dir", directory / "checkpoints", "--eval-dir",
             scores, "--model", "resnet32", "--data", "cifar10", "--data-dir", data, "--batch-size", 100,
             "--num-examples", 10000, "--once"])
    return precisions(scores)


def torch(options, data, directory, seed):
    out = checked([programs.peer_python("torch"), HERE / "resnet32_torch.py", "--data-dir", data, "--steps",
                   options.accuracy_steps, "--batch-size", options.batch_size, "--learning-rate", RATE, "--seed", seed,
                   "--fresh", "--evaluate", options.evaluate_every])
    return {int(step): float(precision) for step, precision in re.findall(r"step (\d+), precision ([0-9.]+)", out)}


def spread(values):
    mean = sum(values) / len(values)
    return mean, (sum((v - mean) ** 2 for v in values) / max(len(values) - 1, 1)) ** 0.5


def run(options):
    if not options.cifar10_dir:
        print("\nresnet32_accuracy: missing: CIFAR-10 itself (give --cifar10-dir; noise cannot be learned)")
        return []
    data, _ = programs.cifar10(options.cifar10_dir, options.build)
    print(f"\nResNet-32, test precision after training with batch {options.batch_size}, learning rate {RATE}, momentum"
          f" 0.9, mean and deviation of {options.seeds} seed{'s' * (options.seeds > 1)}", flush=True)
    sides, jobs = {"evalboard": ours, "PyTorch": torch}, {}
    with programs.scratch(options.build) as directory, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for seed in range(1, options.seeds + 1):
            for name, side in sides.items():
                place = directory / f"{name}-{seed}"
                place.mkdir()
                jobs[name, seed] = pool.submit(side, options, data, place, seed)
        results, missing = {name: [] for name in sides}, {}
        for (name, seed), job in jobs.items():
            try:
                results[name].append(job.result())
                programs.say(f"  seed {seed}: {name}: {results[name][-1]}")
            except (programs.Missing, RuntimeError) as why:
                missing[name] = why
    steps = sorted({step for runs in results.values() for found in runs for step in found if step})
    rows = []
    for name, runs in results.items():
        if runs:
            values = [spread([found[step] for found in runs if step in found] or [float("nan")]) for step in steps]
            rows.append([name] + [f"{mean:.4f} +- {deviation:.4f}" for mean, deviation in values])
    programs.table([""] + [f"step {step}" for step in steps], rows)
    for name, why in missing.items():
        print(f"missing: {name}: {why}")
    return rows
