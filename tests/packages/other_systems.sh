#!/bin/sh
# usage: other_systems.sh
#
# Builds the trainer, the evaluator and the tests of model/ on Debian 13 with oneDNN 3, once with Open MPI 5 and once with MPICH,
# in a root that debootstrap makes (2 GB for a while); runs these tests; and trains lenet for 12 steps on two workers with each
# strategy and MPI, this machine's own, too: the weights must be the same, bit for bit. Then it kills MPICH's mpirun.
# Exit status: 0 all is well; 1 something is not; 3 this machine cannot make such a root, which is said.
set -eu
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL
. tests/packages/debian_root.sh
say() { echo "$(date +%T) $*"; }

say "making a root of Debian 13"
make_root trixie
install_in_root $(make -s INSTALLED=yes --eval='show:;@echo $(PACKAGES_build)' show) libmpich-dev mpich libcmocka-dev \
    dataset-fashion-mnist ccache

tests=$(ls tests/model/test_*.c | sed 's|\(.*\)\.c$|build/\1|')
openmpi=build/trainer-of-openmpi mpich=build/bin/trainer
say "building with oneDNN 3 and Open MPI 5"
build() {
    in_root "CCACHE_DIR=/tmp/ccache make -j\$(nproc) CC='ccache gcc' CFLAGS=-O2 INSTALLED=yes $*" >"$root.log" 2>&1 ||
        { grep -vE '^  (CC|AR|LINK|PROTO) ' "$root.log" | tail -n 40; echo "FAILED on Debian 13: make $*"; exit 1; }
}
build MPI_MODULE=ompi-c build/bin/trainer build/bin/evaluator $tests
in_root "cp build/bin/trainer $openmpi"
say "building with MPICH" # into the same folder, so that ccache knows nearly all of it
build MPI_MODULE=mpich build/bin/trainer
for library in $openmpi:libmpi.so. $mpich:libmpich.so. $mpich:libdnnl.so.3; do
    grep -qF "${library#*:}" "$root/work/${library%:*}" || { echo "FAILED: ${library%:*} does not use ${library#*:}"; exit 1; }
done

failed=0
say "tests of model/"
for program in $tests; do
    in_root "OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $program" >"$root.log" 2>&1 && continue
    failed=1
    echo "FAILED on Debian 13: $program"
    tail -n 30 "$root.log"
done
[ $failed = 1 ] || echo "$(echo $tests | wc -w) programs passed"

say "the same weights with every MPI"
# By kernels that each version of OpenBLAS has, and computes alike: those for AVX-512 differ.
command="env OPENBLAS_CORETYPE=Haswell python3 tests/packages/same_bits_of_mpis.py --models lenet --workers 2"
make -s -j"$(nproc)" build/bin/trainer >/dev/null
$command here=build/bin/trainer | tee "$root.log"
in_root "$command openmpi=$openmpi@/usr/bin/mpirun.openmpi mpich=$mpich@/usr/bin/mpirun.mpich" | tee -a "$root.log"
# One line from here and one from there.
hashes=$(sed -n 's/^lenet: \([0-9a-f]*\): .*/\1/p' "$root.log")
[ "$(echo "$hashes" | wc -l) $(echo "$hashes" | sort -u | wc -l)" = "2 1" ] ||
    { echo "FAILED: the weights differ, or a training failed"; failed=1; }

say "MPICH's mpirun is killed"
in_root "python3 tests/packages/killed_launcher.py $mpich /usr/bin/mpirun.mpich" || failed=1
exit $failed
