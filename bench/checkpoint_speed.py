"""Writing and reading checkpoints in memory (a tmpfs): our bundles beside TensorFlow's Saver, PyTorch's save and load, and
safetensors. Each is a process that stays; each round asks all of them in turn, writing to a new name and reading it
back, and deletes what was written outside of the time. Ours checks every CRC, as TensorFlow does, and the values.
"""
import contextlib
import os
import pathlib
import shutil
import statistics
import subprocess

import programs
import summary

TENSORS = 40


class Worker:
    def __init__(self, name, command, directory, verbs=("write", "read")):
        self.name, self.directory, self.verbs = name, directory, verbs
        self.directory.mkdir()
        self.seconds = {verb: [] for verb in verbs}
        self.process = subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})

    def round(self, number):
        for verb in self.verbs:
            self.process.stdin.write(f"{verb} {self.directory}/model.ckpt-{number}\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"{self.name}: ended with {self.process.wait()}")
            self.seconds[verb].append(float(line))
        for path in self.directory.iterdir():
            path.unlink()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.directory)


def workers(options, megabytes, where):
    here = pathlib.Path(__file__).resolve().parent
    program = programs.helper(options.build, "bench/checkpoint_speed")
    for threads in (1, 2):
        yield Worker(f"ours, {threads} thread{'s' * (threads > 1)}", [program, megabytes, TENSORS, threads],
                     where / f"ours{threads}", ("write", "read", "fresh"))
    for module in ("tensorflow", "torch", "safetensors"):
        try:
            python = programs.peer_python(module)
        except programs.Missing as missing:
            print(missing)
            continue
        yield Worker(module, [python, here / "checkpoint_peer.py", module, megabytes, TENSORS], where / module)


def summarize(options, megabytes, found):
    """found: {(who, verb): milliseconds of each round}"""
    middle = {key: statistics.median(times) for key, times in found.items()}
    for verb, name in (("write", "write_gb_per_second"), ("read", "copy_gb_per_second")):
        peers = [(ms, who) for (who, what), ms in middle.items() if what == verb and not who.startswith("ours")]
        least = summary.roof(options, name, 1e6 * megabytes)
        summary.add(f"{verb} a checkpoint of {megabytes} MB", "ms", middle["ours, 1 thread", verb],
                    *([*min(peers)] if peers else [None, ""]), least and 1000 * least, "memory",
                    found["ours, 1 thread", verb])


def run(options):
    for megabytes in (100, 1000):
        with contextlib.ExitStack() as stack:
            where = stack.enter_context(programs.scratch(options.build, in_memory=True))
            all_of_them = list(workers(options, megabytes, where))
            for worker in all_of_them:
                stack.callback(worker.close)
            for number in range(options.checkpoint_rounds + 1):  # the first only warms up
                for worker in all_of_them:
                    worker.round(number)
            figures = {(w.name, verb): [megabytes / s for s in seconds[1:]]
                       for w in all_of_them for verb, seconds in w.seconds.items()}
            print(f"\n{megabytes} MB in {TENSORS} tensors, MB/s, median (best) of {options.checkpoint_rounds}; x: medians "
                  "beside TensorFlow's", flush=True)
            rows = []
            for (name, verb), speeds in figures.items():
                peer = figures.get(("tensorflow", "write" if verb == "write" else "read"))
                rows.append([f"{name}, {verb}", f"{statistics.median(speeds):.0f}", f"({max(speeds):.0f})",
                             f"{statistics.median(speeds) / statistics.median(peer):.2f}" if peer else "-"])
            programs.table(["", "median", "best", "x"], rows)
            summarize(options, megabytes, {key: [1000 * megabytes / speed for speed in speeds] for key, speeds in figures.items()})
    print("fresh: read into memory taken for it; wanted of 2 threads: write 1.5, read 2.5")
    return True
