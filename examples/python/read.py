"""Reads a log into arrays, and follows it: python3 read.py logs/python [--follow]"""
import sys

import evalboard


def main(logdir, follow=False):
    log = evalboard.read(logdir)
    for (run, tag), series in log.items():
        print(f"{run} {tag}: {len(series)} points, last {series.values[-1]:g} at step {series.steps[-1]}")
    for (run, tag), histograms in evalboard.read_histograms(logdir).items():
        print(f"{run} {tag}: {len(histograms)} histograms of {histograms[-1].counts.sum():g} values")
    if follow:
        for point in evalboard.follow(logdir, new_only=True):
            print(f"{point.run} {point.tag} {point.step} {point.value:g}", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], "--follow" in sys.argv[2:])
    except evalboard.EventLogError as error:
        sys.exit(f"read.py: {error}")
