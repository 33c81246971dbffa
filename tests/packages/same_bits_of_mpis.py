#!/usr/bin/env python3
"""Whether the weights are the same with every MPI: trains the models of the matrix (tests/matrix/cells.py) for 12 steps with
--reproducible, with each MPI, each strategy and 1 to 4 workers, and compares the hashes of the weights. One hash a model is right.

usage: same_bits_of_mpis.py [--models NAME,...] [--workers N,...] [--data-dir MODEL=DIR]... [--steps N]
                            MPI=TRAINER[@MPIRUN|@PREFIX]...

MPI is any name, TRAINER a trainer that was built with that MPI, MPIRUN the program that starts it, PREFIX the directory whose
bin/mpirun and lib it runs with (as an unpacked wheel of PyPI has them); without it mpirun is that of PATH. Open MPI's libraries 4 and 5 take the same TRAINER. Without
--data-dir resnet32 is trained on images of noise. Exit status: 0 one hash a model; 1 two, or a training failed.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "matrix")]

from cells import MICRO_SHARDS, MODELS  # noqa: E402  where it is, is known now
from cifar10_files import write_cifar  # noqa: E402

LIMIT = 1800  # seconds for a training, on a busy machine
STRATEGIES = {"mpi": [], "mpi, messages": ["--transport", "mpi"], "ring": [], "ps": ["--servers", "1"],
              "ps, 2 servers": ["--servers", "2"], "hybrid": ["--servers", "1"], "mirrored": []}


class Mpi:
    def __init__(self, text):
        self.name, _, where = text.partition("=")
        self.trainer, _, prefix = where.partition("@")
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OPENBLAS_NUM_THREADS": "1"}
        self.mpirun = "mpirun"
        if os.path.isfile(prefix):
            self.mpirun = prefix
        elif prefix:
            self.mpirun = f"{prefix}/bin/mpirun"
            self.environment |= {"OPAL_PREFIX": prefix, "PMIX_PREFIX": prefix, "PRTE_PREFIX": prefix, "LD_LIBRARY_PATH": f"{prefix}/lib"}
        self.version = self.run([self.mpirun, "--version"]).stdout
        self.options = ["--oversubscribe", "--bind-to", "none"] if "(Open MPI)" in self.version else ["-bind-to", "none"]

    def run(self, words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT,
                              env=self.environment, check=False)

    def weights(self, strategy, workers, options):
        """Their hash after a training, or what it said instead."""
        kind, added = strategy.split(",")[0], STRATEGIES[strategy]
        count = workers + (int(added[-1]) if "--servers" in added else 0)
        start = [self.trainer, "--run-option", kind, *added, *options]
        words = [*start, "--threads", workers] if kind == "mirrored" else [self.mpirun, *self.options, "-n", count, *start]
        run = self.run(words)
        return json.loads(run.stdout)["weights"] if run.returncode == 0 else f"status {run.returncode}: {run.stderr.strip()[-300:]}"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.partition("usage: ")[2].partition("\n\n")[0])
    parser.add_argument("--models", default="lenet,resnet32,next_word_narrow")
    parser.add_argument("--workers", default="1,2,3,4")
    parser.add_argument("--data-dir", action="append", default=[])
    parser.add_argument("--steps", default="12")
    parser.add_argument("mpis", nargs="+", type=Mpi)
    given = parser.parse_args()
    directories = dict(word.split("=", 1) for word in given.data_dir)
    noise = tempfile.TemporaryDirectory()  # in place of CIFAR-10
    directories.setdefault("resnet32", write_cifar(pathlib.Path(noise.name)))
    differ = 0
    for mpi in given.mpis:
        print(f"{mpi.name}: {' '.join(mpi.version.split()[:6])}", flush=True)
    for name in given.models.split(","):
        model, found = MODELS[name], collections.defaultdict(list)
        options = ["--model", model.of or name, *model.options, "--data", model.data, "--reproducible", "--micro-shards", MICRO_SHARDS,
                   "--global-batch", model.batch, "--max-steps", given.steps, "--json", "--quiet",
                   *(["--data-dir", directories[name]] if name in directories else [])]
        for strategy in STRATEGIES:
            for workers in map(int, given.workers.split(",")) if strategy != "hybrid" or model.tables else ():
                for mpi in given.mpis if strategy != "mirrored" else given.mpis[:1]:
                    found[mpi.weights(strategy, workers, options)].append(f"{mpi.name}: {strategy}, {workers} workers")
        differ |= len(found) != 1 or next(iter(found)).startswith("status")
        for weights, trainings in found.items():
            print(f"{name}: {weights}: {len(trainings)} trainings" + (f": {'; '.join(trainings)}" if len(found) > 1 else ""), flush=True)
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
