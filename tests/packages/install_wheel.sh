#!/bin/sh
# usage: install_wheel.sh ROOT WHEEL
#
# Installs the wheel into a clean virtual environment in a root that debootstrap or the like has made, as root; writes and
# reads there; prints size and times. A wheel of at most 3 MB, installed in 5 s and imported in 100 ms of processor time is
# what the package promises; on a busy machine the time on the clock is more. Python, venv and NumPy are installed if missing.
set -eu
root=$1 wheel=$2
[ -e "$root/usr/bin/apt-get" ] || { echo "install_wheel.sh: $root: no root of Debian or its kin" >&2; exit 2; }
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || :
mkdir -p "$root/tmp/wheel"
rm -rf "$root/tmp/wheel"/*
cp "$wheel" "$root/tmp/wheel/"
size=$(stat -c %s "$wheel")
# pip and Python's platform module look into /proc.
mounted=
if ! [ -e "$root/proc/self" ]; then
    mkdir -p "$root/proc"
    mount --bind /proc "$root/proc"
    mounted=1
fi
trap '[ -z "$mounted" ] || umount "$root/proc"' EXIT
trap 'exit 130' INT TERM
chroot "$root" sh -eu <<'END'
[ -e /usr/bin/python3 ] && python3 -c 'import ensurepip' 2>/dev/null || {
    apt-get update -q >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3 python3-venv ca-certificates >/dev/null
}
cd /tmp/wheel
rm -rf venv
python3 -m venv venv
venv/bin/pip install -q numpy
cat >measure.py <<'CODE'
import os, resource, subprocess, sys, time

def used(*words):
    """(processor seconds, seconds on the clock) of a command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(words, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - began

python = "venv/bin/python"
wheel, = (name for name in os.listdir() if name.endswith(".whl"))
install = used("venv/bin/pip", "install", "-q", "--no-index", wheel)
def least(code):
    return min(used(python, "-c", code)[0] for _ in range(7))
empty, numpy, both = least("pass"), least("import numpy"), least("import evalboard")
print(f"install {install[0]:.2f} s of processor time, {install[1]:.2f} s on the clock (at most 5); "
      f"import {1000 * (both - empty):.0f} ms of processor time (at most 100), NumPy alone {1000 * (numpy - empty):.0f} ms")
sys.exit(not (install[0] <= 5 and both - empty <= 0.1))
CODE
python3 -c 'import platform; print(platform.freedesktop_os_release()["PRETTY_NAME"], "Python", platform.python_version(), *platform.libc_ver())'
python3 measure.py && status=0 || status=1
cat >use.py <<'CODE'
import evalboard, numpy
with evalboard.SummaryWriter("log/mine") as writer:
    for step in range(100):
        writer.add_scalar("loss", 1 / (step + 1), step)
    writer.add_histogram("h", numpy.arange(1000.), 1)
    writer.add_text("t", "hello", 1)
series = evalboard.read("log")["mine", "loss"]
assert len(series.values) == 100 and series.values[-1] == numpy.float32(0.01), series
CODE
venv/bin/python use.py
venv/bin/python -m evalboard verify log
venv/bin/python -m evalboard stats log --tag loss
venv/bin/pip uninstall -q -y evalboard
exit $status
END
echo "the wheel has $size bytes (at most 3,000,000)"
[ "$size" -le 3000000 ]
