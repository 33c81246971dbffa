"""What part of the processors that this process may run on other programs use, which says how far measured speeds can be
believed: the benchmarks and the demo ask here, `trainer compare` does the same in trainer/timing/processor_use.c.
"""
import os
import pathlib
import time

BUSY = 0.1  # the share from which speeds say little


def seconds_of(stat, processors):
    """In which they worked, of a text of /proc/stat (proc_stat(5)): user, nice, system; irq, softirq, steal."""
    ticks = 0
    for name, *fields in map(str.split, filter(None, stat.splitlines())):
        if name.startswith("cpu") and name != "cpu" and int(name[3:]) in processors:
            ticks += sum(map(int, fields[:3] + fields[5:8]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Others:
    """From here on, beside this process and its children, which are to have ended when it is asked."""

    def __init__(self):
        self.processors = os.sched_getaffinity(0)
        self.began, self.used = time.monotonic(), self.now()

    def now(self):
        """(all of these processors, of this process and its children that have ended)"""
        times = os.times()
        try:
            worked = seconds_of(pathlib.Path("/proc/stat").read_text(), self.processors)
        except OSError:  # not known: it never looks busy
            worked = 0
        return worked, times.user + times.system + times.children_user + times.children_system

    def share(self):
        (all_before, own_before), (all_now, own_now) = self.used, self.now()
        return max(0, all_now - all_before - (own_now - own_before)) / max(1e-9, time.monotonic() - self.began) / len(self.processors)

    def note(self):
        """A sentence, or "" where the processors were ours."""
        share = self.share()
        return f"other programs used {100 * share:.0f} % of the processors meanwhile: these speeds say little" if share > BUSY else ""
