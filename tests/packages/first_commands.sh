#!/bin/sh
# usage: first_commands.sh SUITE [COMMAND...]
#
# Runs README's first commands, `make demo` and `make test`, or each COMMAND, as a user would in a bare root of a Debian that
# debootstrap makes (bookworm, trixie, testing, ...), with `make` alone installed before; prints how long each took
# and what it installed: packages, MB. Needs root rights and room for 5 GB. Exit status: 0 all ended with 0; 1 one did not;
# 3 this machine cannot make such a root.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || { sed -n '2s/^# //p' "$0" >&2; exit 2; }
unset MAKEFLAGS MFLAGS MAKELEVEL
. tests/packages/debian_root.sh
packages() { in_root "dpkg-query -W -f '\${Installed-Size}\n'" | awk '{ kb += $1 } END { print NR, int(kb / 1000) }'; }

make_root "$1"
shift
[ $# -gt 0 ] || set -- "make demo" "make test"
install_in_root make
checkout() { git -C "$root/work" -c user.name=first -c user.email=first@localhost -c safe.directory="$root/work" "$@"; }
checkout init -q
checkout add -A -f
checkout commit -qm first # as a clone has it
failed=0
for command in "$@"; do
    before=$(packages) began=$(date +%s)
    in_root "$command" && status=0 || { status=$? failed=1; }
    seconds=$(($(date +%s) - began)) environment=$(in_root 'du -sm build/venv 2>/dev/null' | cut -f1)
    echo "$before $(packages)" | {
        read -r count mb new_count new_mb
        echo "Debian $suite: $command: exit status $status, $seconds s, installed $((new_count - count)) packages of" \
            "$((new_mb - mb)) MB${environment:+; $environment MB in build/venv}"
    }
done
exit $failed
