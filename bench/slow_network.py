"""Milliseconds a step of lenet between hosts whose network is slow, beside what the wire takes at least.

The hosts are network namespaces with a name and a /dev/shm of their own, on a switch whose ports have the rate (tbf) in each
direction. The bound counts the bytes of the busiest link, as the trainer counted them, and the headers of Ethernet, IP and TCP;
not TCP's acknowledgements, which are 2 % more. TCP's congestion control is Reno, which every kernel lets a namespace choose:
with BBR, which some kernels take by themselves, the connections of a server share its link unevenly, and a step of the same
training takes 325 or 410 ms. A worker and a server are on each of 4 hosts (mpirun --map-by node).
Needs root, iproute2 and util-linux.
"""
import json
import os
import pathlib
import subprocess
import tempfile

import programs

SEGMENT, HEADERS = 1448, 66  # bytes of values in a packet of 1500, and its headers
# The first process of a host runs the commands that come through a FIFO.
FIRST = """hostname "$1"; mount -t tmpfs tmpfs /dev/shm; ip link set lo up; echo up
while :; do read -r command <"$2" || continue; sh -c "$command" </dev/null >/dev/null & done"""
LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", "8", "--log-every", "100000", "--quiet", "--json"]
# what is measured, ranks on each host, the most milliseconds a step that are wanted (None: no bound), the trainer's options
CELLS = [
    ("mpi, 4 ranks on 2 hosts, messages", [2, 2], None, ["--run-option", "mpi", "--transport", "mpi"]),
    ("mpi, 4 ranks on 2 hosts, two levels", [2, 2], 85, ["--run-option", "mpi"]),
    ("mpi, 6 ranks on 2 hosts, two levels", [3, 3], None, ["--run-option", "mpi"]),
    ("mpi, 4 hosts", [1, 1, 1, 1], 116, ["--run-option", "mpi"]),
    ("ps, 4 workers, 1 server, 5 hosts", [1, 1, 1, 1, 1], 380, ["--run-option", "ps"]),
    ("ps, 4 workers, 4 servers, 4 hosts", [2, 2, 2, 2], 118, ["--run-option", "ps", "--servers", "4"]),
    ("ps, 4 workers on 2 hosts, 1 server", [2, 2, 1], None, ["--run-option", "ps"]),
]


def checked(*words):
    run = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if run.returncode:
        raise programs.Missing(f"{' '.join(map(str, words[-8:]))}: {run.stderr.strip()}")
    return run.stdout


class Network:
    """Namespaces h0, h1, ... and the switch's."""

    def __init__(self, directory, count, megabits, congestion="kernel", queue=4_000_000):
        """queue: bytes that wait for a link."""
        self.directory, self.holders = pathlib.Path(directory), []
        self.switch = self.namespace("switch")
        checked(*self.inside(self.switch), "ip", "link", "add", "switch", "up", "type", "bridge")
        self.hosts = []
        for number in range(count):
            pid = self.namespace(f"h{number}")
            self.hosts.append(pid)
            checked("ip", "link", "add", "cable", "netns", pid, "type", "veth", "peer", "name", f"port{number}", "netns",
                    self.switch)
            checked(*self.inside(pid), "ip", "address", "add", f"10.112.0.{number + 1}/24", "dev", "cable")
            checked(*self.inside(pid), "ip", "link", "set", "cable", "up")
            if congestion != "kernel":
                checked(*self.inside(pid), "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={congestion}")
            checked(*self.inside(self.switch), "ip", "link", "set", f"port{number}", "master", "switch", "up")
            for process, device in ((pid, "cable"), (self.switch, f"port{number}")):
                checked(*self.inside(process), "tc", "qdisc", "add", "dev", device, "root", "tbf", "rate",
                        f"{megabits}mbit", "burst", f"{max(5, megabits // 8)}kb", "limit", str(int(queue)))
        agent = self.directory / "agent"
        agent.write_text(f'#!/bin/sh\nhost=$1\nshift\necho "$*" >{self.directory}/$host\n')
        agent.chmod(0o755)

    def namespace(self, name):
        fifo = self.directory / name
        os.mkfifo(fifo)
        holder = subprocess.Popen(["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child",
                                   "--mount-proc", "sh", "-c", FIRST, "sh", name, fifo], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, env={**programs.ENVIRONMENT, "TMPDIR": "/dev/shm"})
        self.holders.append(holder)
        if holder.stdout.readline() != "up\n":
            raise programs.Missing(f"no namespace can be made: {holder.stderr.read()}")
        return int(pathlib.Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()[0])

    @staticmethod
    def inside(pid):
        return ["nsenter", "--target", str(pid), "--net", "--uts", "--mount", "--pid"]

    def train(self, binary, slots, *options):
        """The summary of --json."""
        places = ",".join(f"h{number}:{count}" for number, count in enumerate(slots))
        command = [*self.inside(self.hosts[0]), "mpirun", "--mca", "plm_rsh_agent", str(self.directory / "agent"),
                   "--mca", "btl_tcp_if_include", "cable", "--host", places, "--map-by",
                   "node" if "--servers" in options else "slot", "--bind-to", "none", "-n", str(sum(slots)), str(pathlib.Path(binary).resolve()), *options]
        run = subprocess.run(command, capture_output=True, text=True, timeout=600,
                             env={**programs.ENVIRONMENT, "TMPDIR": "/dev/shm"})
        if run.returncode:
            raise RuntimeError(f"{' '.join(command)}: {run.stderr[-1000:]}")
        return json.loads(run.stdout)

    def close(self):
        for holder in self.holders:
            holder.kill()
            holder.communicate()


def measured(options, slots, how):
    """Milliseconds a step, and those of the wire."""
    with tempfile.TemporaryDirectory() as directory:
        network = None
        try:
            network = Network(directory, len(slots), options.network_megabits, options.network_congestion)
            summary = network.train(programs.program(options.build, "trainer"), slots, *LENET, "--max-steps",
                                    str(options.network_steps), *how)
        finally:
            if network:
                network.close()
    hosts = {}  # a link is that of a host: what its ranks exchange with other hosts
    for link in summary["links"]:
        ways = hosts.setdefault(link["host"], [0, 0])
        ways[0] += link["sent_to_other_hosts_per_step"]
        ways[1] += link["received_from_other_hosts_per_step"]
    bound = max(map(max, hosts.values())) * (1 + HEADERS / SEGMENT) * 8 / (options.network_megabits * 1e3)
    # The first step also makes connections, on which TCP begins slowly.
    step = (summary["seconds"] - summary["first_step_seconds"]) / (summary["steps"] - 1) * 1e3
    return step, bound


def run(options):
    if os.geteuid() != 0:
        raise programs.Missing("network namespaces need root")
    rows = []
    for name, slots, wanted, how in CELLS:
        if not any(word in name for word in options.without):
            rounds = sorted(measured(options, slots, how) for _ in range(options.network_rounds))
            step, bound = rounds[len(rounds) // 2]
            rows.append((name, f"{step:.0f}", f"{rounds[0][0]:.0f}-{rounds[-1][0]:.0f}", f"{bound:.0f}", f"{step / bound:.2f}",
                         f"<= {wanted}" if wanted and options.network_megabits == 10 else ""))
    print(f"\nlenet, ms a step between hosts at {options.network_megabits} Mbit/s, TCP {options.network_congestion}, "
          f"{options.network_steps} steps")
    programs.table(("", "ms a step", "lowest-highest", "bound of the wire", "ratio", "wanted"), rows)
    return rows
