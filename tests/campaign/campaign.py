#!/usr/bin/env python3
"""The fault campaign: picks a job, a fault and a moment by seed, again and again, and checks what must hold afterwards.

usage: campaign.py --build DIR [--seed N] [--seconds S | --count N] [--jobs J] [--only WORD]

Runs the faults of the seeds N, N + 1, ..., by default for a minute; with --seed alone just that one. A fault that breaks
an invariant is printed with its seed, and its directory stays: what the programs printed and said is in NUMBER.printed
and NUMBER.said there, the files are in work/. Exit status: 0 nothing broke; 1 something did.
"""
import argparse
import collections
import concurrent.futures
import itertools
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
import types

import campaign_jobs
import injected


TOLD_EVERY = 60  # seconds


class Campaign:
    def __init__(self, build, directory, only=""):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="evalboard-faults-", dir=directory)).resolve()
        self.injector = build / "tests/campaign/inject.so"
        data, script = self.top / "data", self.top / "metric.sh"
        campaign_jobs.write_data(data)
        script.write_text("echo value $(($1 * 7919 % 1000))\n")
        self.tools = types.SimpleNamespace(bin=build / "bin", write_events=build / "tests/programs/write_events",
                                           write_checkpoint=build / "tests/programs/write_checkpoint", script=script,
                                           model=("--model", "lenet", "--data", "mnist", "--data-dir", data))
        self.names = [job.name for job in campaign_jobs.jobs(self.tools) if only in job.name]
        self.references, self.locks = {}, collections.defaultdict(threading.Lock)
        self.drawn, self.happened, self.broken = 0, collections.Counter(), []

    def job(self, name):
        """Jobs remember what happened, so each fault has its own."""
        return next(job for job in campaign_jobs.jobs(self.tools) if job.name == name)

    def reference(self, name):
        """The place in which the job ran without a fault."""
        with self.locks[name]:
            if name not in self.references:
                job, place = self.job(name), injected.Place(self.top / f"reference {name}", self.injector)
                job.prepare(place)
                place.runs = 0
                shutil.copytree(place.work, place.path / "prepared")
                outcome = job.run(place)
                if outcome.status:
                    raise RuntimeError(f"{name} fails without a fault: {outcome.said}")
                place.printed = outcome.printed
                self.references[name] = place
            return self.references[name]

    def faults(self, job, drawn, where):
        """Lets them happen to the job, one after the other; what is broken then, or '', and which have happened."""
        shutil.rmtree(self.top / where, ignore_errors=True)
        place, happened = injected.Place(self.top / where, self.injector), []
        about = f"{job.name}: {'; then '.join(map(str, drawn))}"
        try:
            reference = self.reference(job.name)
            with injected.STARTING:
                shutil.copytree(reference.path / "prepared", place.work, dirs_exist_ok=True)
            for fault in drawn:
                outcome = job.run(place, fault)
                if outcome.fired:
                    happened.append(fault.kind)
                    about += f" ({outcome.fired})"
                job.check(place, outcome, reference)
            job.finish(place, reference)
        except injected.Broken as broken:
            return f"{about}\n      {str(broken)[:700]}", happened
        except (AssertionError, KeyError, ValueError, OSError):  # what cannot be read is broken as well
            return f"{about}\n{traceback.format_exc()}", happened
        finally:
            place.end_all()
        shutil.rmtree(place.path)
        return "", happened

    def one(self, seed):
        chance = random.Random(seed)
        job = self.job(chance.choice(self.names))
        drawn = [injected.draw(chance, job)]
        if chance.random() < 0.25 and not drawn[0].directory:  # what was taken away stays away
            drawn.append(injected.draw(chance, job))
        text, happened = self.faults(job, drawn, f"{seed}")
        self.drawn += len(drawn)
        self.happened.update(happened)
        if text:
            self.broken.append(seed)
            print(f"  BROKEN seed {seed}: {text}\n      {self.top}/{seed}; again: make faults SEED={seed}", flush=True)

    def run(self, first, count, seconds, jobs):
        """Faults first, first + 1, ... so many or so long."""
        end = time.monotonic() + seconds if seconds else float("inf")
        seeds, lock = iter(range(first, first + count) if count else itertools.count(first)), threading.Lock()
        told = time.monotonic()

        def work():
            nonlocal told
            while time.monotonic() < end:
                with lock:
                    seed = next(seeds, None)
                    if time.monotonic() - told >= TOLD_EVERY:
                        told = time.monotonic()
                        print(f"  seed {seed}{f' of {first} to {first + count - 1}' if count else ''}: {self.drawn} faults drawn, "
                              f"{len(self.broken)} broke something", flush=True)
                if seed is None:
                    return
                self.one(seed)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for worker in [pool.submit(work) for _ in range(jobs)]:
                worker.result()
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.happened.items()))
        print(f"{self.drawn} faults from seed {first} on, {self.happened.total()} happened ({kinds})")
        print(f"{len(self.broken)} broke something{': seeds' if self.broken else ''}", *sorted(self.broken))
        if not self.broken:
            shutil.rmtree(self.top)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", default="", help="jobs with this in their names; other faults have the seeds then")
    parser.add_argument("--directory", help="where the campaign's directory is made (default: $TMPDIR, else /tmp)")
    options = parser.parse_args()
    if not options.seconds and not options.count:
        options.seconds, options.count = (60, 0) if options.seed is None else (0, 1)
    campaign = Campaign(options.build.resolve(), options.directory, options.only)
    campaign.run(1 if options.seed is None else options.seed, options.count, options.seconds, options.jobs)
    sys.exit(1 if campaign.broken else 0)


if __name__ == "__main__":
    main()
