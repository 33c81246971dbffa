#!/bin/sh
# usage: cross.sh ARCH
#
# Builds eventlog, libeventlog and the C tests of base and eventlog for another processor, and runs them with qemu. ARCH is
# Debian's name. On Debian, with `dpkg --add-architecture arm64`: crossbuild-essential-arm64 qemu-user-static pkg-config
# zlib1g-dev:arm64 libpng-dev:arm64 libcmocka-dev:arm64 libdeflate-dev:arm64 libzstd-dev:arm64, and what `make deps` installs.
# In a chroot the tests need /proc and /dev.
set -eu
cd "$(dirname "$0")/../.."
unset MAKEFLAGS MFLAGS MAKELEVEL
case $1 in
arm64) triple=aarch64-linux-gnu emulator=qemu-aarch64-static ;;
armhf) triple=arm-linux-gnueabihf emulator=qemu-arm-static ;;
riscv64) triple=riscv64-linux-gnu emulator=qemu-riscv64-static ;;
ppc64el) triple=powerpc64le-linux-gnu emulator=qemu-ppc64le-static ;;
*) echo "cross.sh: $1: not known; one of arm64, armhf, riscv64, ppc64el" >&2; exit 2 ;;
esac
for needed in $triple-gcc $emulator; do
    command -v $needed >/dev/null || { echo "cross.sh: $needed is missing; on Debian: crossbuild-essential-$1 qemu-user-static" >&2; exit 1; }
done
# Only what is asked for is built: no trainer, no server.
make CROSS=$triple- MPI=0 OPENBLAS=0 JPEG=0 JANSSON=0 NGHTTP2=0 SQLITE=0 NCURSES=0 cross-programs
build=build-$triple
failed=0 passed=0
for program in $(cat $build/cross-programs); do
    case $program in
    */bin/eventlog)
        rm -rf $build/log
        $emulator $program write --dir $build/log --step 1 loss=0.5 >$build/said 2>&1 &&
            $emulator $program verify --strict $build/log >>$build/said 2>&1 &&
            $emulator $program stats $build/log >$build/stats 2>&1 && grep -q 'loss.*0\.5' $build/stats && said=0 || said=$?
        ;;
    *) $emulator $program >$build/said 2>&1 && said=0 || said=$? ;;
    esac
    if [ $said = 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$program: status $said"
        grep -E '^\[ +(ERROR|FAILED|  LINE)|ERROR|LINE' $build/said | head -20
    fi
done
file -L $build/bin/eventlog 2>/dev/null | cut -c1-120 || :
echo "$1: $passed programs passed, $failed failed"
[ $failed = 0 ]
