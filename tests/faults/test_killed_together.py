"""kill -9 of trainer, evaluator and the command it runs, at random moments while all of them work, in each mode.

What must hold at the end: every checkpoint that was saved is evaluated, none has two lines in the ledger, steps of a run
never go down, and every point that TensorBoard reads is the ledger's. EVALBOARD_KILLS=200 is the acceptance table's.
"""
import os
import random
import signal
import subprocess
import time

import pytest

from evaluators import BUILD, EVALUATOR, KILLS, alive, ledger, points, script
from waiting import DEADLINE, wait_for


TRAINER = BUILD / "bin/trainer"
BUILT_IN = ["--model", "lenet", "--data", "fashion-mnist", "--num-examples", "50"]
MODES = {"built-in": [*BUILT_IN],
         "threads": [*BUILT_IN, "--threads", "2", "--metrics", "all"],
         "pinned": [*BUILT_IN, "--pin", "--keep-best"],
         "command": ["--exec", "COMMAND", "--jobs", "2", "--retries", "3", "--best-metric", "value"],
         "several": [*BUILT_IN, "--watch-tree", "TREE"]}
LEFT = 5  # evaluated checkpoints that are not tidied away


class Work:
    """Trainings that save all the time and an evaluator beside them, each killed and started again as told.

    In mode several there is one of a single process and one of two ranks, each with a run of its own.
    """

    def __init__(self, directory, mode):
        self.directory, self.saved, self.processes = directory, {}, {}
        self.pids = directory / "pids"
        self.pids.mkdir()
        several = mode == "several"
        self.trainings = ["one", "two"] if several else ["one"]
        self.runs = {name: directory / (f"eval/{name}/eval" if several else "eval") for name in self.trainings}
        command = script(directory, f"touch '{self.pids}/'$$; echo value $1; rm '{self.pids}/'$$\n") + " {step}"
        words = {"COMMAND": command, "TREE": str(directory / "tree")}
        place = ["--eval-root", directory / "eval"] if several else [
            "--checkpoint-dir", directory / "tree/one", "--eval-dir", directory / "eval"]
        self.commands = {"evaluator": [EVALUATOR, *place, *[words.get(word, word) for word in MODES[mode]],
                                       "--poll-interval", "0.2", "--forever"]}
        for name in self.trainings:
            checkpoints = directory / "tree" / name
            checkpoints.mkdir(parents=True)
            self.saved[name] = set()
            # Killed ranks leave their shared memory behind: here it goes with the test's directory.
            ranks = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_vader_backing_directory",
                     str(directory), "-n", "2"] if name == "two" else []
            self.commands[name] = [*ranks, TRAINER, "--run-option", "mpi" if ranks else "single", *BUILT_IN[:4],
                                   "--batch-size", "4", "--checkpoint-dir", checkpoints, "--keep", "0",
                                   "--save-checkpoint-seconds", "0.05", "--max-steps", "1000000"]

    def start(self, name):
        with open(self.directory / f"{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(self.commands[name], stdout=log, stderr=log, start_new_session=True)

    def kill(self, name):
        if name == "command":
            for path in list(self.pids.iterdir()):
                try:
                    os.kill(int(path.name), signal.SIGKILL)
                except (ProcessLookupError, FileNotFoundError):
                    pass
            return
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()
        if name == "evaluator":
            for path in list(self.pids.iterdir()):  # a command dies with its evaluator
                wait_for(lambda: not alive(int(path.name)), "the end of a command")
                path.unlink(missing_ok=True)

    def end(self, name):
        self.processes[name].send_signal(signal.SIGTERM)
        return self.processes[name].wait(DEADLINE)

    def evaluated(self, name):
        return {record["step"] for record in ledger(self.runs[name].parent) if record["status"] == "done"}

    def look(self):
        """Notes what was saved, and takes away what is evaluated, but for the newest."""
        for name in self.trainings:
            there = {int(path.stem.rsplit("-", 1)[1]) for path in (self.directory / "tree" / name).glob("*.index")}
            self.saved[name] |= there
            for step in sorted(there & self.evaluated(name))[:-LEFT]:
                for path in sorted((self.directory / "tree" / name).glob(f"model.ckpt-{step}.*"), reverse=True):
                    path.unlink()

    def close(self):
        for process in self.processes.values():
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@pytest.mark.parametrize("mode", MODES)
def test_killed_together(tmp_path, mode):
    chance, work = random.Random(mode), Work(tmp_path, mode)
    victims = [*work.commands, *(["command"] if mode == "command" else [])]
    try:
        for name in work.commands:
            work.start(name)
        for _ in range(KILLS):
            time.sleep(chance.uniform(0.02, 0.7))  # the moment is the test, nothing is waited for
            work.look()
            victim = chance.choice(victims)
            work.kill(victim)
            if victim != "command":
                work.start(victim)
        for name in work.trainings:
            wait_for(lambda: len(list((tmp_path / "tree" / name).glob("*.index"))) >= 3, f"some checkpoints of {name}")
            work.end(name)
        work.look()
        for name in work.trainings:
            wait_for(lambda: work.evaluated(name) >= work.saved[name], f"all of {name}", DEADLINE + KILLS)
        work.end("evaluator")
    finally:
        work.close()
    for name, run in work.runs.items():
        check(run, work.saved[name], "value" if mode == "command" else "precision")
    if mode == "pinned":
        assert not list((tmp_path / "eval/pinned").iterdir())
        named = (tmp_path / "eval/best/checkpoint").read_text().split('"')[1]
        records = ledger(tmp_path)
        highest = max(record["metrics"]["precision"] for record in records)
        assert named == next(r["checkpoint"] for r in records if r["metrics"]["precision"] == highest)


def check(run, saved, metric):
    records = ledger(run.parent)
    assert len({(r["checkpoint"], r["digest"]) for r in records}) == len(records)
    assert {r["status"] for r in records} == {"done"} and {r["step"] for r in records} >= saved
    best, values, highest = -1, {}, {}
    for r in records:
        assert r["step"] >= highest.get(r["run"], -1)
        highest[r["run"]] = r["step"]
        best = max(best, r["metrics"][metric])
        assert r["metrics"][f"best_{metric}"] == best
        values[r["run"], r["step"]] = r["metrics"][metric]
    for number in highest:
        shown = points(run if not number else run.with_name(f"{run.name}_{number}"))[metric]
        assert {step for step, _, _ in shown} == {step for r, step in values if r == number}
        assert all(abs(value - values[number, step]) < 1e-6 * max(1, abs(value)) for step, value, _ in shown)
