"""Two hosts on one machine, "a" and "b", joined by a cable that can be cut: each has a network, a name, processes and a
/dev/shm of its own. mpirun runs on "a" and starts its daemon on "b" through a launch agent. Needs root, as CI has it."""
import json
import os
import pathlib
import re
import signal
import subprocess

import ranks
from waiting import wait_for

ADDRESSES = {"a": "10.111.0.1", "b": "10.111.0.2"}
# The first process of a host, which runs the commands that come through a FIFO.
FIRST = """set -e
hostname "$1"
mount -t tmpfs tmpfs /dev/shm
ip link set lo up
echo up
while :; do
    read -r command <"$2" || continue
    sh -c "$command" </dev/null >/dev/null &
done"""
COMMAND = re.compile(r"\d+ \((.*)\) (\S)")  # the command and the state of a process, in its file "stat"
# As ssh: HOST COMMAND...
AGENT = """#!/bin/sh
shift
echo "$*" >{fifo}
"""


def parameters(**values):
    """The variables by which mpirun and its daemons take these parameters: those of Open MPI 4.1, and of 5 and later."""
    return {f"{prefix}_MCA_{name}": str(value) for name, value in values.items() for prefix in ("OMPI", "PRTE")}


# By these, of which Open MPI 6 has the latter, its daemons notice after 6 to 11 seconds that the link is lost; without them
# after eight minutes.
KEEPALIVE = parameters(**{f"{prefix}_keepalive_{name}": value for prefix in ("oob_tcp", "prte")
                          for name, value in (("time", 5), ("intvl", 2), ("probes", 3))})


def started_by(agent):
    """The same, for what starts a daemon on another host."""
    return parameters(plm_rsh_agent=agent, plm_ssh_agent=agent)


# Where Open MPI has its sessions, which it tells apart by host name and process number: ours are everybody's.
# And mpirun gives its ranks time to say something before it kills them. Debian testing's Open MPI 6 uses no network but "lo"
# unless it is told.
ENVIRONMENT = {**ranks.ENVIRONMENT, "TMPDIR": "/dev/shm", "OMPI_MCA_btl_tcp_if_include": "cable",
               **parameters(odls_base_sigkill_timeout=3)}


def checked(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert run.returncode == 0, f"{words}: {run.stderr}; two hosts need root, iproute2 and util-linux"
    return run.stdout


def link(inside):
    """What ip says of a host's cable."""
    return json.loads(checked(*inside, "ip", "-json", "-statistics", "link", "show", "cable"))[0]


def wait_for_carrier(inside):
    """Open MPI 6 uses no network that does not run yet."""
    wait_for(lambda: link(inside)["operstate"] == "UP", "the cable to be up")


class Hosts:
    def __init__(self, directory, names="ab"):
        """names: "a": that host alone."""
        self.holders, self.pids = {}, {}
        self.agent = pathlib.Path(directory) / "agent"
        for name in names:
            fifo = f"{directory}/commands-{name}"
            os.mkfifo(fifo)
            self.holders[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child",
                 "--mount-proc", "sh", "-c", FIRST, "sh", name, fifo], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, env=ENVIRONMENT)
            up = self.holders[name].stdout.readline()
            assert up == "up\n", f"no host can be made: {self.holders[name].stderr.read()}"
            outer = self.holders[name].pid
            self.pids[name] = int(pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
        self.agent.write_text(AGENT.format(fifo=f"{directory}/commands-b"))
        self.agent.chmod(0o755)
        if names == "a":
            return
        checked("ip", "link", "add", "cable", "netns", self.pids["a"], "type", "veth", "peer", "name", "cable", "netns",
                self.pids["b"])
        for name, address in ADDRESSES.items():
            checked(*self.inside(name), "ip", "address", "add", f"{address}/24", "dev", "cable")
            checked(*self.inside(name), "ip", "link", "set", "cable", "up")
        for name in ADDRESSES:
            wait_for_carrier(self.inside(name))

    def inside(self, name):
        return ["nsenter", "--target", str(self.pids[name]), "--net", "--uts", "--mount", "--pid"]

    def start(self, *options, mpirun, **variables):
        """Two ranks on each host. mpirun: variables for it alone."""
        ranks.started.append(ranks.Mpirun(
            [*self.inside("a"), "mpirun", "--host", "a:2,b:2",
             "--bind-to", "none", *(word for name in variables for word in ("-x", name)), "-n", "4",
             str(ranks.TRAINER), *map(str, options)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**ENVIRONMENT, **started_by(self.agent), **mpirun, **variables}))
        return ranks.started[-1]

    def cut(self, *senders):
        """What these hosts send is lost: they have a wrong address for the other end of the cable."""
        for name in senders:
            self.neighbour(name, "02:00:00:00:00:ff")

    def mend(self):
        for name, other in (("a", "b"), ("b", "a")):
            self.neighbour(name, link(self.inside(other))["address"])

    def neighbour(self, name, address):
        other = ADDRESSES["b" if name == "a" else "a"]
        checked(*self.inside(name), "ip", "neighbour", "replace", other, "lladdr", address, "nud", "permanent", "dev",
                "cable")

    def kill(self, name):
        """All processes of a host: the kernel ends them with the first one."""
        os.kill(self.pids[name], signal.SIGKILL)

    def counted(self, name):
        """The bytes that the kernel has sent and received through a host's cable, with all headers."""
        counts = link(self.inside(name))["stats64"]
        return counts["tx"]["bytes"], counts["rx"]["bytes"]

    def alive(self, name):
        return self.holders[name].poll() is None

    def rank(self, name, number):
        """The process of a rank there, or None."""
        for pid, command in self.pids_of(name):
            try:
                variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if command == "trainer" and f"OMPI_COMM_WORLD_RANK={number}".encode() in variables:
                return pid
        return None

    def processes(self, name):
        """The commands that run there, without the first process and what has ended."""
        found = []
        for entry in pathlib.Path(f"/proc/{self.pids[name]}/root/proc").iterdir():
            try:
                if entry.name.isdigit() and entry.name != "1":
                    command, state = COMMAND.match((entry / "stat").read_text()).groups()
                    found += [command] if state != "Z" else []
            except OSError:
                pass
        return found

    def pids_of(self, name):
        namespace = os.readlink(f"/proc/{self.pids[name]}/ns/pid")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and int(entry.name) != self.pids[name] and \
                        os.readlink(entry / "ns" / "pid") == namespace:
                    command, state = COMMAND.match((entry / "stat").read_text()).groups()
                    found += [(int(entry.name), command)] if state != "Z" else []
            except OSError:
                pass
        return found

    def close(self):
        for holder in self.holders.values():
            holder.kill()
            holder.communicate()
