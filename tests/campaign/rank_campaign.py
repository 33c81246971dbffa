#!/usr/bin/env python3
"""The campaign of failing ranks: kills, stops and cuts off a rank at a moment by seed, again and again, and checks that the
failure is named, that the last checkpoint is intact, that nothing is left behind, and that the next start ends with the bits
of an undisturbed training. Needs root, for hosts of its own.

usage: rank_campaign.py [--seed N] [--count N] [--jobs J] [--seconds SECONDS] [--only WORD] [--deadline SECONDS]

Each strategy has `count` faults; seed N is one of strategy N modulo their number. With --seed alone just that one. A fault
that breaks an invariant is printed with its seed, and its directory stays. Exit status: 0 nothing broke; 1 something did.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time
import traceback

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "mpi")]

import rank_faults  # noqa: E402  where its modules are, is known now
from injected import Broken  # noqa: E402

TOLD_EVERY = 60  # seconds
KINDS = ("kill", "stop", "cut")


class Campaign:
    def __init__(self, directory=None, deadline=10):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="evalboard-ranks-", dir=directory)).resolve()
        self.bench = rank_faults.Bench(self.top, deadline)
        self.names, self.lock = list(rank_faults.STRATEGIES), threading.Lock()
        self.happened, self.missed, self.broken = collections.defaultdict(list), collections.Counter(), []
        self.moments = collections.Counter()

    def strategy(self, seed):
        return rank_faults.STRATEGIES[self.names[seed % len(self.names)]]

    def fault(self, chosen, hosts, fault, where):
        """Lets it happen; what is broken then, or ''."""
        place = self.top / where
        shutil.rmtree(place, ignore_errors=True)
        try:
            seconds = rank_faults.happen(self.bench, chosen, hosts, fault, place)
        except Broken as broken:
            return f"{broken}"[:1600]
        except (AssertionError, KeyError, ValueError, OSError):  # what cannot be read is broken as well
            return traceback.format_exc()
        with self.lock:
            if seconds is None:
                self.missed[chosen.name] += 1
            else:
                self.happened[chosen.name, hosts, fault.kind].append(seconds)
                self.moments[rank_faults.MOMENTS[fault.call], fault.kind] += 1
        shutil.rmtree(place)
        return ""

    def one(self, seed):
        chosen = self.strategy(seed)
        hosts, fault = rank_faults.draw(random.Random(seed), chosen, self.bench.calls(chosen.name))
        if text := self.fault(chosen, hosts, fault, f"{seed}"):
            with self.lock:
                self.broken.append(seed)
            print(f"  BROKEN seed {seed}: {chosen.name} on {hosts} host{'s' * (hosts > 1)}: {fault}\n{text}\n"
                  f"      {self.top}/{seed}; again: make rank-faults SEED={seed}", flush=True)

    def run(self, seeds, jobs, seconds=float("inf")):
        """seconds: no fault begins later."""
        seeds, told, done = collections.deque(seeds), time.monotonic(), 0
        count, end = len(seeds), told + seconds

        def work():
            nonlocal told, done
            while True:
                with self.lock:
                    if not seeds or time.monotonic() > end:
                        return
                    seed = seeds.popleft()
                self.one(seed)
                with self.lock:
                    done += 1
                    if time.monotonic() - told >= TOLD_EVERY:
                        told = time.monotonic()
                        print(f"  {done} of {count} faults, {len(self.broken)} broke something", flush=True)

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for worker in [pool.submit(work) for _ in range(jobs)]:
                worker.result()

    def table(self):
        """Faults that happened, by strategy, hosts and kind, with the seconds until the training had ended."""
        print(f"{'strategy':<16} {'hosts':>5} " + " ".join(f"{kind:>5} {'median':>7} {'most':>7}" for kind in KINDS))
        for name, hosts in sorted({key[:2] for key in self.happened}, key=lambda key: (self.names.index(key[0]), key[1])):
            cells = []
            for kind in KINDS:
                seconds = self.happened.get((name, hosts, kind), [])
                cells.append(f"{len(seconds):>5} {statistics.median(seconds):>5.1f} s {max(seconds):>5.1f} s" if seconds else
                             f"{0:>5} {'':>7} {'':>7}")
            print(f"{name:<16} {hosts:>5} " + " ".join(cells))
        for moment in dict.fromkeys(rank_faults.MOMENTS.values()):
            print(f"{moment}: " + ", ".join(f"{self.moments[moment, kind]} {kind}" for kind in KINDS))
        total = sum(map(len, self.happened.values()))
        print(f"{total} faults held, {self.missed.total()} did not happen, {len(self.broken)} broke something"
              f"{': seeds' if self.broken else ''}", *sorted(self.broken))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--jobs", type=int, default=6 * os.cpu_count(), help="faults at a time (6 a core: each takes about a "
                        "second of processor time, and half a minute of waiting for deadlines and mpirun)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no fault after SECONDS")
    parser.add_argument("--only", default="", help="strategies with this in their names; all have the same seeds then")
    parser.add_argument("--deadline", type=float, default=20, help="seconds that a rank waits for another (20)")
    parser.add_argument("--directory", help="where the campaign's directory is made (default: $TMPDIR, else /tmp)")
    options = parser.parse_args()
    campaign = Campaign(options.directory, options.deadline)
    first = 1 if options.seed is None else options.seed
    count = options.count * len(campaign.names) if options.count else 10 * len(campaign.names) if options.seed is None else 1
    seeds = [seed for seed in range(first, first + count) if options.only in campaign.strategy(seed).name]
    print(f"{len(seeds)} faults, of seeds {first} to {first + count - 1}", flush=True)
    campaign.run(seeds, options.jobs, options.seconds)
    campaign.table()
    if not campaign.broken:
        shutil.rmtree(campaign.top)
    sys.exit(1 if campaign.broken else 0)


if __name__ == "__main__":
    main()
