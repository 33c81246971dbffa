#!/bin/sh
# usage: musl.sh
#
# Makes build-musl/static/eventlog with musl's libc. On Debian: musl-tools dpkg-dev, and deb-src among the sources of apt:
# zlib is built of Debian's source, as its library there is made for glibc. Without SQLite, zstd, libdeflate and ncurses, of
# which the same holds; ZLIB=DIR takes a zlib for musl that is there (DIR/include, DIR/lib).
set -eu
cd "$(dirname "$0")/.."
unset MAKEFLAGS MFLAGS MAKELEVEL
command -v musl-gcc >/dev/null || { echo "musl.sh: musl-gcc is missing; on Debian: musl-tools" >&2; exit 1; }
build=build-musl
zlib=${ZLIB:-$PWD/$build/zlib}
mkdir -p $build
if [ ! -e "$zlib/lib/libz.a" ]; then
    rm -rf $build/source
    mkdir -p $build/source
    (cd $build/source && apt-get source -q zlib >/dev/null) ||
        { echo "musl.sh: apt-get has no source of zlib; add deb-src to its sources, or give ZLIB=DIR" >&2; exit 1; }
    (cd $build/source/zlib-*/ && CC=musl-gcc CFLAGS=-O2 ./configure --static --prefix="$zlib" >/dev/null && make -s install >/dev/null)
fi
# The kernel's headers, which musl leaves to it.
mkdir -p $build/kernel
ln -sfn /usr/include/linux $build/kernel/linux
ln -sfn /usr/include/asm-generic $build/kernel/asm-generic
ln -sfn "/usr/include/$(gcc -print-multiarch)/asm" $build/kernel/asm
make B=$build CC=musl-gcc CPPFLAGS="-I$zlib/include -idirafter $PWD/$build/kernel" LDFLAGS="-L$zlib/lib" SQLITE=0 ZSTD=0 DEFLATE=0 NCURSES=0 NGHTTP2=0 MPI=0 static
