"""The curve of the homework's LSTM on MNIST: test accuracy every 50 steps of 3 workers with 32 images each, our trainer
(ranks that add their gradients) and evaluator beside TensorFlow with the same recipe (96 images a step, Adam 0.001,
55,000 training images, Glorot uniform), and what was published.

The two draw other random numbers, so single figures differ; what to compare are the means and their spread over seeds.
"""
import re
import shutil

import programs
import published
import resnet32_accuracy

HERE = programs.ROOT / "bench"
WORKERS, BATCH, STEPS, EVERY = 3, 32, 250, 50
PUBLISHED = {step: accuracies[0] for step, (accuracies, _) in published.LSTM["Horovod"].items() if step}


def ours(options, directory, seed):
    """step -> accuracy"""
    if not shutil.which("mpirun"):
        raise programs.Missing("mpirun is not installed; `make deps` installs it")
    common = ["--model", "mnist_lstm", "--data", "mnist", "--data-dir", options.mnist_dir, "--checkpoint-dir",
              directory / "checkpoints"]
    resnet32_accuracy.checked(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", WORKERS, programs.program(
        options.build, "trainer"), "--run-option", "mpi", *common, "--batch-size", BATCH, "--max-steps", STEPS,
        "--save-checkpoint-steps", EVERY, "--keep", 0, "--seed", seed])
    resnet32_accuracy.checked([programs.program(options.build, "evaluator"), *common, "--eval-dir", directory / "eval", "--once"])
    return resnet32_accuracy.precisions(directory / "eval")


def tensorflow(options, directory, seed):
    out = resnet32_accuracy.checked([
        programs.peer_python("tensorflow"), HERE / "mnist_lstm_tensorflow.py", "--data-dir", options.mnist_dir,
        "--batch-size", WORKERS * BATCH, "--steps", STEPS, "--evaluate", EVERY, "--seed", seed])
    return {int(step): float(accuracy) for step, accuracy in re.findall(r"step (\d+), accuracy ([0-9.]+)", out)}


def row_of(name, runs):
    if not runs:
        return []
    spreads = [resnet32_accuracy.spread([run[step] for run in runs]) for step in PUBLISHED]
    return [[name] + [f"{mean:.3f} +- {deviation:.3f}" for mean, deviation in spreads]]


def run(options):
    if not options.mnist_dir:
        print("\nmnist_lstm_accuracy: missing: MNIST itself (give --mnist-dir)")
        return []
    print(f"\nLSTM of 64 units on MNIST, {WORKERS} workers with {BATCH} images a step, test accuracy, mean and deviation of"
          f" {options.lstm_seeds} seed{'s' * (options.lstm_seeds > 1)}", flush=True)
    rows = []
    for name, side in (("evalboard", ours), ("TensorFlow", tensorflow)):
        runs = []
        try:
            for seed in range(1, options.lstm_seeds + 1):
                with programs.scratch(options.build) as directory:
                    runs.append(side(options, directory, seed))
        except (programs.Missing, RuntimeError) as why:
            print(f"missing: {name}: {why}")
        rows += row_of(name, runs)
    programs.table([""] + [f"step {step}" for step in PUBLISHED],
                   [*rows, ["published"] + [f"{accuracy:.4f}" for accuracy in PUBLISHED.values()]])
    return rows
