# Sourced by scripts with `set -eu` in the top folder of the checkout: makes a root of another Debian, with the mirror that
# this machine's own sources of apt name, and runs commands there.
#
#   make_root SUITE    make one in the new folder $root, with the tracked files of the checkout in /work; removed at the end
#   in_root LINE       run a line of shell in its /work
#   install_in_root PACKAGE...
#
# Where this machine cannot make one (no root rights, no network, no room) the script ends with status 3 and a sentence.

cannot() {
    echo "${0##*/}: cannot make a root of Debian $suite on this machine: $1" >&2
    exit 3
}

# Its / is that of a mount namespace, not one of chroot, which a test's own namespaces would leave.
in_root() {
    unshare --mount --propagation private sh -c '
        mount --rbind "$1" "$1" && cd "$1" && mkdir -p .outside && pivot_root . .outside && cd / && umount -l /.outside || exit
        shift
        exec "$@"' sh "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive $network ${CI:+CI="$CI"} /bin/sh -c "cd /work && $1"
}

# A name that Debian does not have is our mistake; what does not arrive is not.
install_in_root() {
    in_root "apt-get install -qq --no-install-recommends --simulate $*" >/dev/null ||
        { echo "${0##*/}: FAILED: Debian $suite lacks one of these packages" >&2; exit 1; }
    in_root "apt-get install -q -y --no-install-recommends $*" >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log" >&2; cannot "apt-get install failed there, above"; }
}

remove_root() {
    for place in $mounted; do umount "$place" || umount -l "$place"; done
    rm -rf --one-file-system "$root" "$root.log"
}

# New ones, none of this machine's: what is done there does not reach ours.
mount_in_root() { # type, place
    mkdir -p "$root/$2"
    mount -t "$1" "$1" "$root/$2" 2>"$root.log" || cannot "$(tail -n 1 "$root.log")" # ranks need /proc and /dev/shm
    mounted="$root/$2 $mounted"
}

make_root() {
    suite=$1 mounted=
    [ "$(id -u)" = 0 ] || cannot "this needs root rights"
    missing=$(sh tests/install_packages.sh --missing debootstrap)
    [ -z "$missing" ] || sh tests/install_packages.sh $missing || cannot "debootstrap is not there"
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '/debian/?$' | head -n 1)
    [ -n "$mirror" ] || cannot "its sources of apt name no mirror of Debian"
    # How this machine reaches apt's mirror and PyPI.
    network=$(env | grep -E '^(https?_proxy|no_proxy|PIP_INDEX_URL)=' || :)
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    root=$(mktemp -d)
    trap remove_root EXIT
    trap 'exit 130' INT TERM HUP
    chmod 755 "$root"
    env ${proxy:+http_proxy="$proxy"} debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root.log" 2>&1 ||
        { tail -n 5 "$root.log" >&2; cannot "debootstrap failed, above"; }
    cp -L --parents /etc/resolv.conf /etc/pip.conf "$root" 2>/dev/null || :
    if [ -n "${PIP_CERT-}" ]; then # under a name of its own, as the package ca-certificates writes its file anew
        cp -L "$PIP_CERT" "$root/etc/pip-certificates.crt"
        network="$network PIP_CERT=/etc/pip-certificates.crt"
    fi
    apt-config dump Acquire >"$root/etc/apt/apt.conf.d/90this-machine"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/90soon-removed"
    [ -e "$root/etc/hosts" ] || echo "127.0.0.1 localhost" >"$root/etc/hosts"
    mount_in_root proc proc
    mount_in_root sysfs sys
    mount_in_root tmpfs dev/shm
    mount_in_root devpts dev/pts
    mkdir "$root/work"
    git -c safe.directory="$PWD" ls-files -z | tar -c --null --files-from=- --ignore-failed-read | tar -x -C "$root/work"
    in_root "apt-get update -qq" || cannot "its apt-get update failed there"
}
