#!/bin/sh
# Trains under Slurm: two nodes, each a slurmd with a host name, /tmp and /dev/shm of its own, on this machine and in
# namespaces of which nothing is left. Tests what docs/several-hosts.md says of Slurm.
#
#   apt-get install slurm-wlm munge
#   make && sh tests/packages/slurm.sh [BUILD]
#
# Needs root. Slurm and Open MPI have to be built with the same PMIx, as Debian's are.
set -eu
if [ -z "${SLURM_TEST_INSIDE-}" ]; then
    build=$(realpath "${1:-build}")
    work=$(mktemp -d -p /var/tmp) # nodes have a /tmp of their own
    trap 'rm -rf "$work"' EXIT
    cd "$(dirname "$0")/../.."
    SLURM_TEST_INSIDE=$work PATH="$build/bin:$PATH" unshare --mount --uts --net --pid --fork --kill-child --mount-proc \
        sh "tests/packages/$(basename "$0")"
    exit
fi

work=$SLURM_TEST_INSIDE
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SLURM_MPI_TYPE=pmix
# Slurm finds no name where loopback is the only network.
ip link set lo up
ip link add own type veth peer name other
ip address add 10.112.0.1/24 dev own
ip link set own up
ip link set other up
hostname controller
mkdir -p "$work/etc" "$work/run" "$work/log" "$work/state" "$work/munge"
printf '127.0.0.1 localhost\n10.112.0.1 controller n1 n2\n' >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts
mkdir -p /etc/slurm
mount --bind "$work/etc" /etc/slurm

dd if=/dev/urandom of="$work/munge/key" bs=128 count=1 2>/dev/null
chmod 400 "$work/munge/key"
chmod 755 "$work" "$work/munge"
munged --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
    --log-file="$work/munge/log" --seed-file="$work/munge/seed"
cat >/etc/slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=controller(10.112.0.1)
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/%n
SlurmctldPidFile=$work/run/slurmctld.pid
SlurmdPidFile=$work/run/%n.pid
SlurmctldLogFile=$work/log/slurmctld
SlurmdLogFile=$work/log/%n
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
NodeName=n1 NodeAddr=10.112.0.1 Port=17001 CPUs=4
NodeName=n2 NodeAddr=10.112.0.1 Port=17002 CPUs=4
PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP
END
echo "CgroupPlugin=cgroup/v$([ -e /sys/fs/cgroup/cgroup.controllers ] && echo 2 || echo 1)" >/etc/slurm/cgroup.conf
slurmctld
for node in n1 n2; do
    mkdir "$work/$node"
    unshare --mount --uts sh -c 'hostname "$1"; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /dev/shm; exec slurmd -N "$1"' sh "$node"
done
until [ "$(sinfo --noheader --states=idle --format=%D)" = 2 ]; do
    [ $((waited = ${waited:-0} + 1)) -lt 300 ] || { cat "$work"/log/*; exit 1; }
    sleep 0.2
done

failed=0
# usage: check WHAT WANTED FOUND
check() {
    if [ "$2" = "$3" ]; then echo "ok: $1: $3"; else failed=1; echo "FAILED: $1: wanted $2, got $3"; fi
}
training() { # prints state, ranks of each host, beginning of the hash
    name=$1
    shift
    "$@" --model lenet --data fashion-mnist --max-steps 12 --quiet --json --checkpoint-dir "$work/ckpt/$name" 2>"$work/said" |
        python3 -c 'import json, sys
run = json.load(sys.stdin)
print(run["state"], *(host["host"] + ":" + ",".join(map(str, host["workers"] + host["servers"])) for host in run["hosts"]), run["weights"][:8])' ||
        cat "$work/said"
}
equal=$(training one trainer --run-option mirrored --threads 4 --reproducible | sed 's/.* //')
nodes="-N2 --ntasks-per-node=2"
check "srun, all-reduce" "finished n1:0,1 n2:2,3 $equal" \
    "$(training block srun $nodes trainer --run-option mpi --reproducible)"
check "srun, in turn" "finished n1:0,2 n2:1,3 $equal" \
    "$(training cyclic srun $nodes --distribution=cyclic trainer --run-option mpi --reproducible)"
check "mpirun in an allocation" "finished n1:0,1 n2:2,3 $equal" \
    "$(training mpirun salloc --quiet $nodes mpirun trainer --run-option mpi --reproducible)"
for order in block cyclic; do
    check "a worker and a server on each node, $order" "finished n1:0,2 n2:1,3" \
        "$(training servers-$order srun $nodes --distribution=$order trainer --run-option ps --servers-per-host 1 | cut -d' ' -f1-3)"
done
check "--resource-info" "but Slurm has started this program and chosen the hosts; leave the option out" \
    "$(salloc --quiet -N2 trainer --resource-info x --run-option mpi --model lenet --data fashion-mnist 2>&1 | sed 's/.*itself, //')"

# A killed rank ends the step; the next one goes on from its last checkpoint.
srun $nodes trainer --run-option mpi --model lenet --data fashion-mnist --max-steps 1000000 --quiet \
    --checkpoint-dir "$work/ckpt/killed" --save-checkpoint-steps 10 >"$work/said" 2>&1 &
step=$!
until [ -e "$work/ckpt/killed/model.ckpt-20.index" ]; do sleep 0.1; kill -0 $step || break; done
for process in $(pgrep -x trainer); do
    if tr '\0' '\n' <"/proc/$process/environ" | grep -qx SLURM_PROCID=2; then kill -9 "$process"; fi
done
wait $step && check "a killed rank" "a failure" "0" || check "a killed rank" "" "$(pgrep -x trainer)"
check "the next step goes on" 1 "$(srun $nodes trainer --run-option mpi --model lenet --data fashion-mnist --max-steps 25 \
    --checkpoint-dir "$work/ckpt/killed" 2>&1 | grep -c 'resuming from .*model.ckpt-[12]')"

RUN=$work/run/example MODEL=lenet DATA=fashion-mnist MAX_STEPS=60 EVERY=20 sbatch --quiet --wait --export=ALL \
    --output="$work/said" examples/slurm/train_and_evaluate.sbatch || :
check "examples/slurm" "trainer: 0, evaluator: 0" "$(tail -n 1 "$work/said")"
exit $failed
