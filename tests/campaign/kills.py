#!/usr/bin/env python3
"""Kills the evaluator again and again, at calls drawn by seed, starts it again, and holds ledger and event files together:
each checkpoint has one line, and each of its events is there once.

usage: kills.py --build DIR [--count N] [--seed N] [--jobs J]

Called by `make kills`. Exit status: 0 nothing was lost or doubled; 1 something was; its directory stays.
"""
import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import shutil
import struct
import sys
import threading

import injected
from campaign import Campaign
from injected import Broken, Fault, expect

STEPS = range(100, 700, 100)
CALLS = {"": 260, "/eval": 60}  # which calls are counted, and before which of so many it is killed
MOST = 30                       # kills of one directory, which is evaluated then


def fields(data):
    """(number, value) of a protobuf message: bytes, or an integer."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(data):
        number, wire = divmod(varint(), 8)
        if wire == 0:
            yield number, varint()
            continue
        size = {1: 8, 5: 4}.get(wire) or varint()
        yield number, data[at:at + size]
        at += size


def events(path):
    """(tag, step) of each value in an event file, which may end in a part of a record."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data) and at + 16 + (size := struct.unpack_from("<Q", data, at)[0]) <= len(data):
        event = dict(fields(data[at + 12:at + 12 + size]))
        for number, value in fields(event.get(5, b"")):
            yield dict(fields(value)).get(1, b"").decode(), event.get(2, 0)
        at += 16 + size


class Variant:
    """A way to run the evaluator; `late`: checkpoints of lower steps come when others are done."""

    def __init__(self, name, *options, late=False, names=("a",), scalars=False):
        self.name, self.options, self.late, self.names, self.scalars = name, options, late, names, scalars

    def write(self, place, tools, steps):
        for name in self.names:
            if self.scalars:
                (place.work / name).mkdir(exist_ok=True)
                for step in steps:
                    (place.work / f"{name}/.m").write_text(f"{name} {step}")
                    os.rename(place.work / f"{name}/.m", place.work / f"{name}/m_{step}.pt")
            else:
                place.run([tools.write_checkpoint, "--directory", place.work / name, "--first", min(steps), "--last",
                           max(steps)], "")

    def command(self, place, tools):
        what = ([f"--checkpoint-dir={self.names[0]}", "--eval-dir=out/a/eval"] if len(self.names) == 1 else
                ["--eval-root=out", *(f"--watch={name}={name}" for name in self.names)])
        how = (["--exec", f"sh {tools.script} {{step}}", "--pattern=m_{step}.pt", "--ready=rename", "--best-metric=value"]
               if self.scalars else tools.model)
        return [tools.bin / "evaluator", *what, *how, *self.options, "--once"]


VARIANTS = [
    Variant("exec", scalars=True),
    Variant("exec pinned, best kept, two at a time", "--pin", "--keep-best=2", "--jobs=2", scalars=True),
    Variant("exec, lower steps late", late=True, scalars=True),
    Variant("two directories", names=("a", "b"), scalars=True),
    Variant("pictures, histograms, texts", "--metrics=all", "--detail-every=1", "--keep-best=1"),
]


def recorded(place, variant):
    """{(name, tag, step): how many events} of all runs; of each checkpoint one line, whose run has its points."""
    found = collections.Counter()
    for name in variant.names:
        top, runs = place.work / "out" / name, collections.defaultdict(set)
        lines = [json.loads(line) for line in (top / "eval/evaluations.jsonl").read_text().splitlines()]
        expect(sorted((r["step"], r["status"]) for r in lines) == [(step, "done") for step in STEPS],
               f"{name}: in the ledger {[(r['step'], r['status']) for r in lines]}")
        expect(not list((top / "eval/pinned").glob("*")), f"{name}: a pin is left")
        for path in top.glob("eval*/events.out.tfevents.*"):
            for tag, step in events(path):
                runs[path.parent.name].add(step)
                found[name, tag, step] += not tag.startswith("_hparams_")  # at each start
        for r in lines:
            expect(r["step"] in runs[f"eval_{r['run']}" if r["run"] else "eval"], f"{name}: {r} is in another run")
    return found


class Kills:
    def __init__(self, build, directory=None):
        self.campaign = Campaign(build, directory)
        self.lock, self.killed, self.places, self.broken = threading.Lock(), 0, 0, []
        self.wanted = {variant.name: self.undisturbed(variant) for variant in VARIANTS}

    def undisturbed(self, variant):
        place, tools = injected.Place(self.campaign.top / variant.name, self.campaign.injector), self.campaign.tools
        variant.write(place, tools, STEPS)
        outcome = place.run(variant.command(place, tools), "evaluator")
        expect(outcome.status == 0, f"without a kill: {outcome.said}")
        return recorded(place, variant)

    def one(self, seed, most):
        """Kills it in one directory until all is evaluated, or so often; then evaluates the rest, and looks."""
        chance, tools = random.Random(seed), self.campaign.tools
        variant = chance.choice(VARIANTS)
        place = injected.Place(self.campaign.top / f"{seed}", self.campaign.injector)
        kills, late, status = 0, variant.late, None
        try:
            variant.write(place, tools, STEPS[3:] if late else STEPS)
            for _ in range(most):
                match = chance.choice(sorted(CALLS))
                outcome = place.run(variant.command(place, tools), "evaluator",
                                    Fault("kill", chance.randint(1, CALLS[match]), 9, match=match))
                expect(outcome.status in (0, -9), f"status {outcome.status}: {outcome.said}")
                kills += outcome.status == -9
                if late and (outcome.status == 0 or chance.random() < 0.2):
                    variant.write(place, tools, STEPS[:3])
                    late = False
                elif outcome.status == 0:
                    break
            if late:
                variant.write(place, tools, STEPS[:3])
            status = place.run(variant.command(place, tools), "evaluator")
            expect(status.status == 0, f"the last start: status {status.status}: {status.said}")
            found, wanted = recorded(place, variant), self.wanted[variant.name]
            expect(found == wanted, f"too many: {dict(found - wanted)}, too few: {dict(wanted - found)}")
            shutil.rmtree(place.path)
        except (Broken, AssertionError, KeyError, ValueError, OSError) as broken:
            self.broken.append(seed)
            print(f"  BROKEN seed {seed} ({variant.name}), {place.path}: {str(broken)[:900]}", flush=True)
        finally:
            place.end_all()
        with self.lock:
            self.killed += kills
            self.places += 1

    def run(self, count, first, jobs):
        seeds = itertools.count(first)

        def work():
            while (left := count - self.killed) > 0:
                with self.lock:
                    seed = next(seeds)
                self.one(seed, min(MOST, left))

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for worker in [pool.submit(work) for _ in range(jobs)]:
                worker.result()
        print(f"{self.killed} kills in {self.places} directories from seed {first} on: "
              f"{len(self.broken)} directories lost or doubled something", *sorted(self.broken))
        if not self.broken:
            shutil.rmtree(self.campaign.top)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    kills = Kills(options.build.resolve())
    kills.run(options.count, options.seed, options.jobs)
    sys.exit(bool(kills.broken))


if __name__ == "__main__":
    main()
