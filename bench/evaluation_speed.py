"""Evaluating a checkpoint on 10,000 test images: our evaluator and PyTorch, each in float32 and bfloat16, and TensorFlow, with 1
and with 2 threads. The better peer of ours in float32 is the best in float32, of ours in bfloat16 the best of all.

All are resident and take turns, round after round, so that a slow minute of the machine hits each of them:
  images/s     of one evaluation, the reading of the checkpoint included
  checkpoint   milliseconds from the rename of a checkpoint's index to its line in the ledger, which follows the flush
               of its events; of a peer: from being told until its result is printed (it watches and writes nothing)
  processor    images for each second of processor time that the process took, all threads together: what other programs
               on the same cores disturb least
  fresh        seconds from the start of a process to its first result: how most evaluation scripts work
"""
import json
import os
import shutil
import statistics
import subprocess
import time

import programs
import summary

MODELS = ("resnet32", "cifar10_cnn")
DEADLINE = 300


def processor_seconds(process):
    """User and system time of all its threads so far, to a hundredth."""
    fields = open(f"/proc/{process.pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Ours:
    name, precision = "evalboard", "float32"

    def __init__(self, options, data, directory, model, threads):
        self.directory, self.source, self.number = directory, directory / "source", 0
        trainer = programs.program(options.build, "trainer")
        subprocess.run([trainer, "--run-option", "single", "--model", model, "--data", "cifar10", "--data-dir", data,
                        "--checkpoint-dir", self.source, "--max-steps", "1", "--batch-size", "8", "--quiet"],
                       check=True, env=programs.ENVIRONMENT)
        (directory / "watched").mkdir()
        self.ledger = directory / "eval" / "evaluations.jsonl"
        self.command = [programs.program(options.build, "evaluator"), "--model", model, "--data", "cifar10",
                        "--data-dir", data, "--threads", str(threads), "--num-examples", str(options.num_examples),
                        "--precision", self.precision]
        self.log = open(directory / "log", "w")
        self.process = subprocess.Popen([*self.command, "--checkpoint-dir", directory / "watched", "--eval-dir",
                                         directory / "eval", "--forever"], stderr=self.log, env=programs.ENVIRONMENT)

    def lines(self):
        return self.ledger.read_text().count("\n") if self.ledger.exists() else 0

    def evaluate(self):
        """(seconds of the evaluation, seconds from rename to ledger)"""
        self.number += 1
        name, watched = f"model.ckpt-{self.number}", self.directory / "watched"
        shutil.copy(self.source / "model.ckpt-1.data-00000-of-00001", watched / f"{name}.data-00000-of-00001")
        shutil.copy(self.source / "model.ckpt-1.index", watched / f"{name}.index.tmp")
        started = time.monotonic()
        os.rename(watched / f"{name}.index.tmp", watched / f"{name}.index")
        while self.lines() < self.number:
            if self.process.poll() is not None or time.monotonic() - started > DEADLINE:
                raise RuntimeError(f"the evaluator did not evaluate {name}")
            time.sleep(0.001)
        whole = time.monotonic() - started
        record = json.loads(self.ledger.read_text().splitlines()[-1])
        if record["status"] != "done":
            raise RuntimeError(record["reason"])
        return record["seconds"], whole

    def fresh(self):
        shutil.rmtree(self.directory / "fresh", ignore_errors=True)
        started = time.monotonic()
        subprocess.run([*self.command, "--checkpoint-dir", self.source, "--eval-dir", self.directory / "fresh",
                        "--latest-only", "--once"], check=True, stderr=subprocess.DEVNULL, env=programs.ENVIRONMENT)
        return time.monotonic() - started

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class OursInBfloat16(Ours):
    name, precision = "evalboard in bfloat16", "bfloat16"


class Peer:
    precision, more = "float32", ()

    def __init__(self, script, module, options, data, directory, model, threads):
        self.command = [programs.peer_python(module), programs.ROOT / "bench" / script, "--model", model, "--data-dir",
                        data, "--checkpoint", directory / script.split(".")[0], "--threads", str(threads),
                        "--num-examples", str(options.num_examples), *self.more]
        self.environment = {**programs.ENVIRONMENT, "OMP_NUM_THREADS": str(threads)}
        self.log = open(directory / f"{script}.log", "w")
        self.process = self.start()
        self.answer("ready")

    def start(self):
        return subprocess.Popen(list(map(str, self.command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=self.log, text=True, env=self.environment)

    def answer(self, word, process=None):
        for line in (process or self.process).stdout:
            if line.startswith(word):
                return line.split()
        raise RuntimeError(f"{self.command[1]} ended; see its log")

    def evaluate(self):
        started = time.monotonic()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        words = self.answer("loaded")
        return float(words[1]) + float(words[3]), time.monotonic() - started

    def fresh(self):
        started = time.monotonic()
        process = self.start()
        process.stdin.write("\n")
        process.stdin.flush()
        self.answer("loaded", process)
        taken = time.monotonic() - started
        process.communicate()
        return taken

    def close(self):
        self.process.communicate()
        self.log.close()


class Torch(Peer):
    name = "PyTorch"

    def __init__(self, *arguments):
        super().__init__("evaluation_torch.py", "torch", *arguments)


class TorchInBfloat16(Torch):
    """Weights and activations rounded; the loss is of float32."""
    name, precision, more = "PyTorch in bfloat16", "bfloat16", ("--bfloat16",)


class TensorFlow(Peer):
    name = "TensorFlow"

    def __init__(self, *arguments):
        super().__init__("evaluation_tensorflow.py", "tensorflow", *arguments)


KINDS = Ours, OursInBfloat16, Torch, TorchInBfloat16, TensorFlow
OURS = Ours.name, OursInBfloat16.name


def best_peer(ours, values):
    """The least of values, {who: what it takes}, and whose it is: of all peers for ours in bfloat16, else of those in float32;
    (None, "") without such."""
    all_precisions = ours == OursInBfloat16.name
    return min(((values[kind.name], kind.name) for kind in KINDS if kind.name in values and issubclass(kind, Peer)
                and (all_precisions or kind.precision == "float32")), default=(None, ""))


def measure(options, data, directory, model, threads, missing):
    """{name: ([seconds of evaluations], [of checkpoints], [of fresh processes], [of processor time])}"""
    found, contenders = {}, []
    try:
        for kind in KINDS:
            place = directory / f"{model}-{threads}-{kind.name}"
            place.mkdir()
            try:
                contenders.append(kind(options, data, place, model, threads))
                contenders[-1].evaluate()  # compiles, allocates, warms up
            except programs.Missing as why:
                missing[kind.name] = why
        for number in range(options.rounds):
            for contender in contenders:
                before = processor_seconds(contender.process)
                seconds, whole = contender.evaluate()
                processor = processor_seconds(contender.process) - before
                fresh = contender.fresh() if number == 0 else None
                row = found.setdefault(contender.name, ([], [], [], []))
                for values, value in zip(row, (seconds, whole, fresh, processor)):
                    if value is not None:
                        values.append(value)
                programs.say(f"  {model}, {threads} threads, round {number + 1}: {contender.name}: "
                             f"{options.num_examples / seconds:.0f} images/s")
    finally:
        for contender in contenders:
            contender.close()
    return found


def summarize(options, what, found):
    """found: {who: milliseconds of processor time of an image, in each round}"""
    middle = {who: statistics.median(times) for who, times in found.items()}
    for name, kind in ((Ours.name, what), (OursInBfloat16.name, f"{what}, bfloat16")):
        if name in found:
            summary.add(f"evaluation of an image by {kind}, processor time", "ms", middle[name], *best_peer(name, middle), None, "compute",
                        found[name])


def run(options):
    data, note = programs.cifar10(options.cifar10_dir, options.build)
    print(f"\nEvaluation of {options.num_examples} images, median of {options.rounds} rounds, best in brackets"
          + (f"\ndata: {note}" if note else ""), flush=True)
    rows, missing = [], {}
    with programs.scratch(options.build) as directory:
        for model in MODELS:
            for threads in (1, 2):
                found = measure(options, data, directory, model, threads, missing)
                middles = {name: statistics.median(row[0]) for name, row in found.items()}
                costs = {name: statistics.median(row[3]) for name, row in found.items()}
                summarize(options, f"{model}, {threads} thread{'s' if threads > 1 else ''}",
                          {name: [1000 * seconds / options.num_examples for seconds in row[3]] for name, row in found.items()})
                for name, (seconds, whole, fresh, processor) in found.items():
                    middle, cost = middles[name], max(costs[name], 0.01)
                    (peer, _), (peer_cost, _) = best_peer(name, middles), best_peer(name, costs)
                    rows.append([f"{model}, {threads} thread{'s' if threads > 1 else ''}, {name}",
                                 f"{options.num_examples / middle:.0f} ({options.num_examples / min(seconds):.0f})",
                                 f"{peer / middle:.2f}" if peer and name in OURS else "",
                                 f"{options.num_examples / cost:.0f}",
                                 f"{peer_cost / cost:.2f}" if peer and name in OURS else "",
                                 f"{1e3 * statistics.median(whole):.0f}", f"{statistics.median(fresh):.2f}"])
    programs.table(["", "images/s", "/ better peer", "processor", "/ better", "checkpoint, ms", "fresh, s"], rows)
    for name, why in missing.items():
        print(f"missing: {name}: {why}")
    return rows
