#!/bin/sh
# usage: install_packages.sh --missing PACKAGE...     print those Debian packages that are not installed
#        install_packages.sh PACKAGE...               install them, and say so before
# Without root and sudo, or elsewhere than on Debian and its kin, it prints the names: the build then says what it lacks.
set -eu

if [ "${1:-}" = --missing ]; then
    shift
    for package in "$@"; do
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || echo "$package"
    done
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "these packages are needed (names as on Debian): $*" >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null; then
    sudo=sudo
else
    echo "please install as root: apt-get install --no-install-recommends $*" >&2
    exit 1
fi
echo "installing Debian packages that are missing here: $*"
$sudo apt-get update -q
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@"
