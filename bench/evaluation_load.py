"""Many checkpoints, quickly, of which the training keeps five: how many are evaluated, how many twice, and what is said
of those that were gone first. 1,000 at 10 a second and 300 at 100 a second, by the built-in evaluation (lenet on 1,000
examples) and by a shell script, with and without --pin. Beside it what a loop that asks for the newest checkpoint once a
second would have seen, as TensorFlow's checkpoints_iterator does, of the same files.
"""
import collections
import json
import subprocess
import threading
import time

import programs

LOADS = ((1000, 10), (300, 100))
WAYS = {"built-in": ["--model", "lenet", "--data", "fashion-mnist", "--num-examples", "1000"],
        "--exec": ["--exec", "sh -c 'test -s {checkpoint}.index && echo size $(wc -c < {checkpoint}.index)'",
                   "--best-metric", "size"]}


def newest_once_a_second(directory, stop, seen):
    """What the state file names, read once a second."""
    while not stop.wait(1):
        try:
            seen.add((directory / "checkpoint").read_text().split('"')[1])
        except (OSError, IndexError):
            pass


def one(build, writer, way, arguments, count, rate, pin):
    # a disk would not take 100 synced checkpoints a second
    with programs.scratch(build, in_memory=True) as where:
        stop, newest = threading.Event(), set()
        (where / "ckpt").mkdir()
        with open(where / "log", "w") as log:
            evaluator = subprocess.Popen([programs.program(build, "evaluator"), "--checkpoint-dir", where / "ckpt",
                                          "--eval-dir", where / "eval", *arguments, *(["--pin"] if pin else [])],
                                         stderr=log, env=programs.ENVIRONMENT)
        deadline = time.monotonic() + 20
        while "watching" not in (where / "log").read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        iterator = threading.Thread(target=newest_once_a_second, args=(where / "ckpt", stop, newest))
        iterator.start()
        started = time.monotonic()
        subprocess.run([writer, "--directory", where / "ckpt", "--first", "1", "--step", "1", "--last", str(count),
                        "--interval", str(1 / rate), "--keep", "5", "--constant", "--finish"], check=True,
                       stdout=subprocess.DEVNULL)
        written = time.monotonic() - started
        stop.set()
        iterator.join()
        evaluator.wait(900)
        records = [json.loads(line) for line in (where / "eval" / "evaluations.jsonl").read_text().splitlines()]
        status = collections.Counter(r["status"] for r in records)
        done = collections.Counter(r["step"] for r in records if r["status"] == "done")
        named = {r["step"] for r in records}
        twice = sum(n > 1 for n in done.values())
        unnamed = count - len(named)
        print(f"{way:10}{'pin' if pin else '':5}{count:7}{count / written:9.1f}{time.monotonic() - started:9.1f}"
              f"{len(done):10}{twice:7}{status['gone']:7}{status['failed']:8}{unnamed:9}{len(newest):18}", flush=True)
        return not twice and not unnamed and (not pin or len(done) == count)


def run(options):
    writer = programs.helper(options.build, "tests/programs/write_checkpoint")
    print(f"\n{'evaluated':10}{'':5}{'written':>7}{'a second':>9}{'seconds':>9}{'once':>10}{'twice':>7}{'gone':>7}"
          f"{'failed':>8}{'unnamed':>9}{'newest each 1 s':>18}")
    results = [one(options.build, writer, way, arguments, count, rate, pin) for count, rate in LOADS
               for way, arguments in WAYS.items() for pin in (True, False)]
    print("none twice, none unnamed, none missed where pinned:", "yes" if all(results) else "NO")
    return all(results)
