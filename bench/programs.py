"""What the benchmarks share: running a program and timing the lines it prints, data, tables."""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
               "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


class Missing(Exception):
    """A program or a peer that a benchmark needs is not here; the text says how to get it."""


def say(text):
    print(text, file=sys.stderr, flush=True)


def step_times(command, log):
    """Runs a trainer that prints `step: N, ...` lines; returns [(N, seconds since start)]. Its output goes to log."""
    times, started = [], time.monotonic()
    with open(log, "w") as out, subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                                                 stderr=subprocess.STDOUT, text=True, env=ENVIRONMENT) as process:
        for line in process.stdout:
            if match := re.search(r"\bstep: (\d+), loss", line):
                times.append((int(match.group(1)), time.monotonic() - started))
            out.write(line)
    if process.returncode:
        tail = pathlib.Path(log).read_text().splitlines()[-3:]
        raise RuntimeError(f"{command[0]} ended with {process.returncode}: {' / '.join(tail)}")
    return times


def images_per_second(times, batch, warm_up):
    """Between the first line after the warm-up and the last one."""
    measured = [point for point in times if point[0] >= warm_up]
    if len(measured) < 2:
        raise RuntimeError(f"too few steps after the first {warm_up} to measure")
    (first, start), (last, end) = measured[0], measured[-1]
    return (last - first) * batch / (end - start)


def peer_python(module):
    """A python that has the module: the tests' virtual environment, or the one on the path."""
    for python in (ROOT / "build" / "venv" / "bin" / "python", shutil.which("python3")):
        if python and pathlib.Path(python).exists() and subprocess.run(
                [python, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"]
        ).returncode == 0:
            return python
    raise Missing(f"{module} is not installed; `make bench PEERS=all` installs it")


def program(build, name):
    path = pathlib.Path(build) / "bin" / name
    if not path.exists():
        raise Missing(f"{path} is not built; run `make`")
    return path


def helper(build, name):
    """A program that only benchmarks and tests use, "bench/train_step"."""
    path = pathlib.Path(build) / name
    if not path.exists():
        raise Missing(f"{path} is not built; `make bench` builds it")
    return path


def cifar10(directory, build):
    """The directory of CIFAR-10, or one with noise in its shape, made once: speed does not depend on the pixels."""
    if directory:
        return pathlib.Path(directory), ""
    directory = pathlib.Path(build) / "bench" / "cifar10-noise"
    if not (directory / "test_batch.bin").exists():
        directory.mkdir(parents=True, exist_ok=True)
        source = random.Random(1)
        for name in [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]:
            rows = bytearray(source.randbytes(10000 * 3073))
            rows[::3073] = bytes(source.randrange(10) for _ in range(10000))
            (directory / f"{name}.tmp").write_bytes(rows)
            (directory / f"{name}.tmp").rename(directory / name)
    return directory, "noise in CIFAR-10's shape (give --cifar10-dir for the real images)"


class scratch:
    """A directory that is gone afterwards, in_memory where there is a tmpfs: with scratch(build) as path."""

    def __init__(self, build, in_memory=False):
        shared = pathlib.Path("/dev/shm")
        self.parent = shared if in_memory and os.access(shared, os.W_OK) else pathlib.Path(build) / "bench"

    def __enter__(self):
        self.parent.mkdir(parents=True, exist_ok=True)
        self.path = pathlib.Path(tempfile.mkdtemp(dir=self.parent))
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path)


def trainer(build, ranks, data, directory, steps, *more):
    """The command line of our trainer with resnet32; checkpoints only at the end."""
    command = [program(build, "trainer"), "--run-option", "mpi" if ranks > 1 else "single", "--model", "resnet32",
               "--data", "cifar10", "--data-dir", data, "--checkpoint-dir", directory / "checkpoints",
               "--log-dir", directory / "train", "--max-steps", steps, *more]
    if ranks == 1:
        return command
    if not shutil.which("mpirun"):
        raise Missing("mpirun is not installed; `make deps` installs it")
    return ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks, *command]


def cores():
    return len(os.sched_getaffinity(0))


def copy_seconds(size):
    """Processor seconds to copy so many bytes in memory, the least of a few times: no program that reads them is faster."""
    source, target, times = bytes(size), bytearray(size), []
    for _ in range(5):
        started = time.process_time()
        target[:] = source
        times.append(time.process_time() - started)
    return min(times)


def table(header, rows, out=None):
    """Aligned columns: text to the left, numbers to the right. out: where to, not standard output."""
    cells = [list(map(str, row)) for row in [header, *rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    for number, row in enumerate(cells):
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip(), file=out)
        if number == 0:
            print("  ".join("-" * w for w in widths), file=out)
