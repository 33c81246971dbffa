#!/bin/sh
# usage: install_debs.sh ROOT DEB...
#
# Installs packages that dpkg-buildpackage has made into a bare root of debootstrap, as root, runs the tests of
# debian/tests/control as autopkgtest would (what Depends names is installed, the command runs as a user in the tree), and
# purges them again: nothing of them may stay.
set -eu
root=$1
shift
here=$(cd "$(dirname "$0")/../.." && pwd)
cp /etc/resolv.conf "$root/etc/" 2>/dev/null || :
rm -rf "$root/tmp/debs" "$root/tmp/tree"
mkdir -p "$root/tmp/debs" "$root/tmp/tree/debian"
cp "$@" "$root/tmp/debs/"
cp -r "$here/debian/tests" "$root/tmp/tree/debian/"
chroot "$root" sh -eu <<'END'
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null
dpkg-query -W -f '${Package}\n' | sort >/tmp/before
id tester >/dev/null 2>&1 || useradd --create-home tester
cd /tmp/debs
wanted=$(sed -n 's/^Depends: //p' /tmp/tree/debian/tests/control | tr -d ,)
of_ours= others=
for name in $wanted; do
    file=$(ls ${name}_*.deb 2>/dev/null || :)
    [ -n "$file" ] || others="$others $name"
done
for file in *.deb; do
    case $file in *-dbgsym_*) ;; *) of_ours="$of_ours ./$file" ;; esac
done
apt-get install -q -y --no-install-recommends $of_ours $others >/tmp/installed 2>&1 || { tail -20 /tmp/installed; exit 1; }
cd /tmp/tree
command=$(sed -n 's/^Test-Command: //p' debian/tests/control)
chown -R tester .
su tester -c "export AUTOPKGTEST_TMP=\$(mktemp -d); $command" && echo "debian/tests: pass" || { echo "debian/tests: FAIL"; exit 1; }
apt-get purge -q -y $(for f in $of_ours; do basename $f | sed 's/_.*//'; done) >/tmp/purged 2>&1 || { tail -20 /tmp/purged; exit 1; }
left=$(find / -xdev \( -path /proc -o -path /tmp -o -path /home -o -path /var/lib/apt -o -path /var/cache -o -path /var/log \) -prune -o \
    \( -name '*evalboard*' -o -name '*libeventlog*' -o -name 'eventlog*' \) -print)
[ -z "$left" ] || { echo "left after purging:"; echo "$left"; exit 1; }
echo "installed, used, purged: nothing is left"
END
