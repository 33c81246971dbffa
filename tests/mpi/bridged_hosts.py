"""Hosts on one machine, joined by a bridge: each has a network with an address, a name that the others know, processes and
a /dev/shm of its own, and sends at a limited rate if asked. mpirun on one of them starts its daemons on the others through a
launch agent, as it would with ssh. They end with the test, however that ends. Needs root, as CI has it."""
import os
import pathlib
import subprocess

import ranks
import two_hosts
from two_hosts import checked

# The first process of a host, which runs the commands that come through a FIFO.
FIRST = """set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
mount --bind "$3" /etc/hosts
ip link set lo up
exec 3<>"$2"  # never closed, or a line that comes in between would be lost
echo up
while read -r command <&3; do
    sh -c "$command" </dev/null >/dev/null 3<&- &
done"""
BRIDGE = "ip link add bridge type bridge && ip link set bridge up && echo up && exec cat"
# As ssh: HOST COMMAND...
AGENT = """#!/bin/sh
host=$1
shift
echo "$*" >{directory}/commands-$host
"""


def namespace(kinds, *words):
    """A process that is the first of its namespaces, and ends with this one: the process, its number inside unshare."""
    holder = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *kinds, "--fork", "--kill-child", *map(str, words)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env=two_hosts.ENVIRONMENT)
    up = holder.stdout.readline()
    assert up == "up\n", f"no host can be made: {holder.stderr.read()}"
    children = pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text()
    return holder, int(children.split()[0])


class Hosts(two_hosts.Hosts):
    def __init__(self, directory, names="abc", rate=None):
        """rate: what each host sends at most, as tc has it: "10mbit"."""
        self.holders, self.pids, self.directory = {}, {}, pathlib.Path(directory)
        self.addresses = {name: f"10.112.0.{number}" for number, name in enumerate(names, 1)}
        self.agent, known = self.directory / "agent", self.directory / "hosts"
        known.write_text("127.0.0.1 localhost\n" + "".join(f"{at} {name}\n" for name, at in self.addresses.items()))
        self.agent.write_text(AGENT.format(directory=directory))
        self.agent.chmod(0o755)
        try:
            self.make(known, rate)
        except BaseException:
            self.close()
            raise

    def make(self, known, rate):
        self.holders[""], bridge = namespace(["--net"], "sh", "-c", BRIDGE)
        for name, address in self.addresses.items():
            fifo = self.directory / f"commands-{name}"
            os.mkfifo(fifo)
            self.holders[name], self.pids[name] = namespace(
                ["--net", "--uts", "--mount", "--pid", "--mount-proc"], "sh", "-c", FIRST, "sh", name, fifo, known)
            checked("ip", "link", "add", "cable", "netns", self.pids[name], "type", "veth", "peer", "name", f"to-{name}",
                    "netns", bridge)
            checked(*self.inside(name), "ip", "address", "add", f"{address}/24", "dev", "cable")
            checked(*self.inside(name), "ip", "link", "set", "cable", "up")
            in_bridge = ["nsenter", "--target", bridge, "--net"]
            checked(*in_bridge, "ip", "link", "set", f"to-{name}", "master", "bridge")
            checked(*in_bridge, "ip", "link", "set", f"to-{name}", "up")
            two_hosts.wait_for_carrier(self.inside(name))
            if rate:  # a bucket is what may leave at once: a packet of 64 KiB must fit
                checked(*self.inside(name), "tc", "qdisc", "add", "dev", "cable", "root", "tbf", "rate", rate, "burst", "64k",
                        "latency", "400ms")

    def variables(self):
        """Environment of a launcher: how it reaches the other hosts."""
        return {**two_hosts.ENVIRONMENT, **two_hosts.started_by(self.agent)}

    def begin(self, name, *words, **variables):
        """Starts a command on that host."""
        ranks.started.append(subprocess.Popen(
            [*self.inside(name), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**self.variables(), **variables}))
        return ranks.started[-1]
