#!/bin/sh
# usage: install_packages.sh PACKAGE...
# Installs the Debian packages that are missing, and says which. Without root and sudo, or elsewhere than on Debian
# and its kin, it prints the names and goes on: the build then says what it lacks.
set -eu

missing=
for package in "$@"; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
if ! command -v apt-get >/dev/null; then
    echo "these packages are needed (names as on Debian):$missing" >&2
    exit 0
fi
if [ "$(id -u)" = 0 ]; then
    sudo=
elif command -v sudo >/dev/null; then
    sudo=sudo
else
    echo "not root and no sudo; please install:$missing" >&2
    exit 1
fi
echo "installing Debian packages:$missing"
$sudo apt-get update -q
# shellcheck disable=SC2086  # one word a package
$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
