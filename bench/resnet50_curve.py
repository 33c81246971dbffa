"""How ResNet-50 learns: our trainer, 2 ranks of 32 images, beside PyTorch from the same initial weights, on the same batches,
with the same recipe: CIFAR-10, each pixel as 2x2, so 64x64; torchvision's net for 10 classes; momentum 0.9, weight decay 0.0001.

Both compute the same but for rounding, which at these initial weights grows to several hundredths of the loss within two steps.
So PyTorch trains twice, with its values in either order (channels last, channels first), which differ by rounding alone: how
far these two part is the noise that ours is held against.
"""
import concurrent.futures
import pathlib
import re
import shutil
import statistics
import subprocess

import programs
import resnet32_accuracy
import resnet50_speed

HERE = programs.ROOT / "bench"
SIDE, WORKERS, BATCH, RATE, DECAY, WINDOWS = 64, 2, 32, 0.0025, 0.0001, 10
FIELDS = f"label=1,image={SIDE}x{SIDE}x3"


def doubled(record):
    """A record of CIFAR-10 as the label and 64x64 pixels of three bytes."""
    wide = bytearray(32 * 6 * 32)
    for colour in range(3):
        plane = record[1 + 1024 * colour:1 + 1024 * (colour + 1)]
        wide[colour::6] = wide[colour + 3::6] = plane
    return record[:1] + b"".join(2 * wide[at:at + 192] for at in range(0, len(wide), 192))


def make_data(directory, data, options):
    """train.bin and test.bin: as many records as the training takes, and is tested on."""
    data = data if (data / "test_batch.bin").exists() else data / "cifar-10-batches-bin"
    for name, files, count in (("train.bin", [f"data_batch_{i}.bin" for i in range(1, 6)], options.curve_steps * WORKERS * BATCH),
                               ("test.bin", ["test_batch.bin"], options.num_examples)):
        content = b"".join((data / file).read_bytes() for file in files)
        with open(directory / name, "wb") as out:
            for at in range(0, min(len(content), 3073 * count), 3073):
                out.write(doubled(content[at:at + 3073]))


def make_model(options, path):
    text = subprocess.run([programs.program(options.build, "trainer"), "describe", "resnet50_torchvision", "--format=model"],
                          check=True, capture_output=True, text=True).stdout
    for pattern, new in (("input 224x224x3", f"input {SIDE}x{SIDE}x3"), ("classes 1000", "classes 10"), ("outputs=1000", "outputs=10"),
                         ("augment .*", "augment imagenet-eval"), ("schedule .*\n", "")):
        text, count = re.subn(pattern, new, text)
        assert count == 1, pattern
    path.write_text(text)


def losses(text):
    """Of each step."""
    return [float(loss) for loss in re.findall(r"\bstep: \d+, loss: ([0-9.]+)", text)]


def trainer(options, directory, seed, steps, checkpoints):
    """(its options for data, processor seconds, what it printed)"""
    data = ["--data", "records", "--record-fields", FIELDS, "--classes", 10, "--data-dir", directory]
    used, text = resnet50_speed.seconds_of(
        ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", WORKERS, programs.program(options.build, "trainer"), "--run-option",
         "mpi", "--model", directory / "net.model", *data, "--batch-size", BATCH, "--learning-rate", RATE, "--scale-learning-rate",
         "linear", "--seed", seed, "--log-every", 1, "--max-steps", steps, "--checkpoint-dir", checkpoints], subprocess.STDOUT)
    return data, used, text


def begin(options, directory, seed):
    """Writes the initial weights, and the order of the samples."""
    trainer(options, directory, seed, 1, directory / "begin")
    resnet32_accuracy.checked([programs.program(options.build, "checkpoint"), "convert", directory / "begin" / "model.ckpt-0",
                               directory / "initial.safetensors"])
    records = (directory / "train.bin").stat().st_size // (1 + 3 * SIDE * SIDE)
    (directory / "order").write_text(resnet32_accuracy.checked([
        programs.helper(options.build, "bench/sample_order"), records, seed, options.curve_steps * WORKERS * BATCH]))


def ours(options, directory, seed):
    """(losses, test accuracy, processor seconds a step)"""
    checkpoints, scores = directory / "checkpoints", directory / "eval"
    data, used, text = trainer(options, directory, seed, options.curve_steps, checkpoints)
    resnet32_accuracy.checked([programs.program(options.build, "evaluator"), "--checkpoint-dir", checkpoints, "--eval-dir", scores,
                               *data, "--batch-size", 100, "--num-examples", options.num_examples, "--once"])
    return losses(text), resnet32_accuracy.precisions(scores)[options.curve_steps], used / options.curve_steps


def torch(options, directory, *more):
    """The same."""
    text = resnet32_accuracy.checked([
        programs.peer_python("torch"), HERE / "resnet50_curve_torch.py", "--data-dir", directory, "--side", SIDE, "--weights",
        directory / "initial.safetensors", "--order", directory / "order", "--workers", WORKERS, "--batch-size", BATCH,
        "--learning-rate", WORKERS * RATE, "--decay", DECAY, *more])
    return losses(text), float(re.search("accuracy: (.*)", text)[1]), float(re.search("seconds a step: (.*)", text)[1])


SIDES = {
    "evalboard": ours,
    "PyTorch": lambda options, directory, seed: torch(options, directory),
    "channels first": lambda options, directory, seed: torch(options, directory, "--channels-first"),
}


def windows(values):
    """The means of at most WINDOWS equal parts."""
    size = -(-len(values) // WINDOWS)
    return {f"{at + 1} - {min(at + size, len(values))}": values[at:at + size] for at in range(0, len(values), size)}


def mean(values):
    return statistics.fmean(values)


def differences(name, values):
    """A row: the three sides, ours and channels first less PyTorch."""
    return [name, *(f"{value:.4f}" for value in values), f"{values[0] - values[1]:+.4f}", f"{values[2] - values[1]:+.4f}"]


def apart(means):
    """How far the losses of the windows are from PyTorch's, in words."""
    def of(k):
        differences = [values[k] - values[1] for values in means.values()]
        return f"{mean([d ** 2 for d in differences]) ** 0.5:.4f} ({mean(differences):+.4f} on average)"

    return f"losses of the {len(means)} windows are apart from PyTorch's, as a root mean square: ours {of(0)}, its own {of(2)}"


def tell(options, runs):
    """runs: of each seed, what each side gave. Returns the rows of the table."""
    parts = [[windows(side[0]) for side in sides] for sides in runs]
    means = {name: [mean([mean(sides[k][name]) for sides in parts]) for k in range(len(SIDES))] for name in parts[0][0]}
    rows = [differences(f"loss, steps {name}", values) for name, values in means.items()]
    rows.append(differences("test accuracy", [mean([sides[k][1] for sides in runs]) for k in range(len(SIDES))]))
    seconds = [mean([sides[k][2] for sides in runs]) for k in range(len(SIDES))]
    rows.append(["processor s a step", *(f"{value:.2f}" for value in seconds), "", ""])
    print(f"\nResNet-50 on CIFAR-10 at {SIDE}x{SIDE}, {WORKERS} workers x {BATCH} images, {options.curve_steps} steps,\n"
          f"learning rate {WORKERS * RATE}, {options.curve_seeds} seed{'s' * (options.curve_seeds > 1)}; differences are from PyTorch")
    programs.table(["", *SIDES, "ours", "first"], rows)
    for seed, sides in enumerate(parts, 1):
        print(f"seed {seed}: " + apart({name: [mean(side[name]) for side in sides] for name in means}))
    print("mean of the seeds: " + apart(means))
    return rows


def run(options):
    if not options.cifar10_dir:
        raise programs.Missing("CIFAR-10 itself (give --cifar10-dir; noise cannot be learned)")
    if not shutil.which("mpirun"):
        raise programs.Missing("mpirun is not installed; `make deps` installs it")
    runs = []
    with programs.scratch(options.build) as data:
        make_data(data, pathlib.Path(options.cifar10_dir), options)
        make_model(options, data / "net.model")
        for seed in range(1, options.curve_seeds + 1):
            with programs.scratch(options.build) as directory, concurrent.futures.ThreadPoolExecutor(programs.cores()) as pool:
                for path in data.iterdir():
                    (directory / path.name).symlink_to(path.resolve())
                begin(options, directory, seed)
                jobs = {name: pool.submit(side, options, directory, seed) for name, side in SIDES.items()}
                runs.append([job.result() for job in jobs.values()])
            for name, (curve, accuracy, _) in zip(SIDES, runs[-1]):
                programs.say(f"  seed {seed}: {name}: loss {curve[0]:.3f}, at the end {curve[-1]:.3f}, test accuracy {accuracy:.4f}")
    return tell(options, runs)
