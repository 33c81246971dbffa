"""How far the losses of a training part when the same global batch is split over other numbers of ranks: each model at
its own optimizer and rate, 20 steps of 24 images without augmentation, against one rank. Wanted: 1e-4.
What is left is rounding, and where rounding flips a ReLU or the winner of a pooling window, that flip.
"""
import json
import pathlib
import subprocess
import tempfile

import programs

GLOBAL_BATCH, STEPS = 24, 20
HOWS = (("2 ranks", 2, 2, ["mpi"]), ("3 ranks", 3, 3, ["mpi"]), ("4 ranks", 4, 4, ["mpi"]),
        ("ps, 3 workers, 2 servers", 5, 3, ["ps", "--servers", "2"]))


def losses(binaries, model, ranks, workers, how, seed):
    """The loss of every step, as written for TensorBoard."""
    with tempfile.TemporaryDirectory() as log:
        subprocess.run(["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), binaries / "trainer",
                        *model, "--run-option", *how, "--batch-size", str(GLOBAL_BATCH // workers), "--max-steps",
                        str(STEPS), "--no-augment", "--log-every", "1", "--log-dir", log, "--seed", str(seed),
                        "--quiet"], check=True, env=programs.ENVIRONMENT)
        run = subprocess.run([binaries / "eventlog", "export", "--format=jsonl", "--tag", "loss", log],
                             capture_output=True, text=True, check=True)
    values = [json.loads(line)["value"] for line in run.stdout.splitlines()]
    assert len(values) == STEPS
    return values


def run(options):
    binaries = pathlib.Path(options.build) / "bin"
    models = {"lenet": ["--model", "lenet", "--data", "fashion-mnist"]}
    if options.cifar10_dir:
        models["cifar10_cnn"] = ["--model", "cifar10_cnn", "--data", "cifar10", "--data-dir", options.cifar10_dir]
    else:
        print("\nstrategy_agreement: missing: cifar10_cnn needs --cifar10-dir")
    print(f"\nlargest relative difference of {STEPS} losses from one rank's, wanted 1e-4\n{'':22}"
          + "".join(f"{name:>26}" for name, *_ in HOWS))
    for name, model in models.items():
        for seed in range(1, options.agreement_seeds + 1):
            one = losses(binaries, model, 1, 1, ["mpi"], seed)
            parts = [max(abs(a - b) / abs(a) for a, b in zip(one, losses(binaries, model, ranks, workers, how, seed)))
                     for _, ranks, workers, how in HOWS]
            print(f"{name + ', seed ' + str(seed):22}" + "".join(f"{part:26.1e}" for part in parts), flush=True)
    return True
