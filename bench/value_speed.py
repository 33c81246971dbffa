"""Processor time of the calls that write histograms and pictures, beside PyTorch's SummaryWriter: its histogram with its
own default bins, its picture by Pillow.
"""
import subprocess

import programs
import summary

PEER = """import io, sys, time
import numpy as np
from PIL import Image
from torch.utils.tensorboard import SummaryWriter
from torch.utils.tensorboard.summary import histogram
bins = SummaryWriter(sys.argv[1] + '/peer').default_bins
values = (np.random.default_rng(1).standard_normal(1000000) * 0.05).astype('f4')
picture = Image.frombytes('RGB', (512, 512), open(sys.argv[1] + '/picture.rgb', 'rb').read())
def least(call):
    times = []
    for _ in range(int(sys.argv[2])):
        start = time.process_time()
        made = call()
        times.append(time.process_time() - start)
    return min(times), made
def png():
    out = io.BytesIO()
    picture.save(out, format='PNG')
    return len(out.getvalue())
print(least(lambda: histogram('a', values, bins).SerializeToString())[0], *least(png))"""


def run(options):
    with programs.scratch(options.build, in_memory=True) as directory:
        rounds = [subprocess.run([programs.helper(options.build, "bench/value_speed"), directory, "3"], check=True,
                                 capture_output=True, text=True, env=programs.ENVIRONMENT).stdout.split()
                  for _ in range(options.rounds)]
        theirs = None
        try:
            ran = subprocess.run([programs.peer_python("torch"), "-c", PEER, directory, str(options.rounds)],
                                 capture_output=True, text=True, env=programs.ENVIRONMENT)
            theirs = list(map(float, ran.stdout.split())) if ran.returncode == 0 else None
            if not theirs:
                print(f"PyTorch: missing: {ran.stderr.splitlines()[-1]}")
        except programs.Missing as missing:
            print(f"PyTorch: missing: {missing}")
    measured = [[1000 * float(round[kind]) for round in rounds] for kind in range(3)]
    floats, doubles, picture = map(min, measured)
    copied = 1000 * programs.copy_seconds(4_000_000)
    print("\nvalue_speed: processor time of one call, the least of all rounds", flush=True)
    programs.table(("", "ms", "PyTorch, ms", "wanted"), [
        ("histogram of 10^6 floats", f"{floats:.2f}", f"{1000 * theirs[0]:.1f}" if theirs else "", "<= 2.5"),
        ("histogram of 10^6 doubles", f"{doubles:.2f}", "", "<= 2.5"),
        ("picture of 512 x 512 x 3 as PNG", f"{picture:.2f}", f"{1000 * theirs[1]:.1f}" if theirs else "",
         "a fifth of the peer")])
    if theirs:
        print(f"the picture has {int(rounds[0][3])} bytes with its record, the peer's {int(theirs[2])}: "
              f"{int(rounds[0][3]) / theirs[2]:.3f} times as many; wanted <= 1.15")
    summary.add("histogram of 10^6 floats", "ms", floats, theirs and 1000 * theirs[0], "PyTorch", copied, "compute", measured[0])
    summary.add("histogram of 10^6 doubles", "ms", doubles, None, "", 2 * copied, "compute", measured[1])
    summary.add("picture of 512 x 512 x 3", "ms", picture, theirs and 1000 * theirs[1], "PyTorch",
                1000 * programs.copy_seconds(512 * 512 * 3), "compute", measured[2])
    return rounds
