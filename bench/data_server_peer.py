"""Asks a data server as TensorBoard does: data_server_peer.py PROGRAM LOGDIR SERIES LAST DIRECTORY

PROGRAM "stock" is the one that comes with TensorBoard. Starts it on LOGDIR and waits until SERIES curves have reached step
LAST. Prints JSON: seconds from its start to the first curve and to all of them, its processor time, most memory and open
files by then; and milliseconds that ReadScalars of a curve takes afterwards, median and 99th of 100, by number of points.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import grpc
from tensorboard.data.proto import data_provider_pb2 as messages

SERVICE, POINTS, TIMES, PATIENCE = "/tensorboard.data.TensorBoardDataProvider/", (5, 60, 1000), 100, 600


def path_of(program):
    if program != "stock":
        return program
    import tensorboard_data_server
    return tensorboard_data_server.server_binary()


def usage(process):
    """Processor seconds, MiB at most, open files."""
    proc = pathlib.Path(f"/proc/{process.pid}")
    fields = (proc / "stat").read_text().rpartition(")")[2].split()
    most = next(line for line in (proc / "status").read_text().splitlines() if line.startswith("VmHWM:"))
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(most.split()[1]) / 1024, len(list((proc / "fd").iterdir()))


class Server:
    """A data server from its construction to the end of `with`; began: when it was started, monotonic."""

    def __init__(self, program, logdir, directory):
        port_file = pathlib.Path(directory) / "port"
        port_file.unlink(missing_ok=True)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            [path_of(program), f"--logdir={logdir}", "--reload=5", "--samples-per-plugin=", "--port=0", f"--port-file={port_file}",
             "--die-after-stdin"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
        while not port_file.exists() or not port_file.read_text().endswith("\n"):
            if self.process.poll() is not None:
                raise SystemExit(f"{program} ended with {self.process.returncode}")
            time.sleep(0.001)
        self.port = int(port_file.read_text())
        self.channel = None

    def call(self, method):
        self.channel = self.channel or grpc.insecure_channel(f"localhost:{self.port}", options=[
            ("grpc.max_receive_message_length", 256 << 20), ("grpc.use_local_subchannel_pool", 1)])
        return self.channel.unary_unary(SERVICE + method)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.channel:
            self.channel.close()
        self.process.stdin.close()
        self.process.wait()


def list_request():
    request = messages.ListScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    return request.SerializeToString()


def read_request(points, runs, tags=None):
    request = messages.ReadScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name, request.downsample.num_points = "scalars", points
    if runs:
        request.run_tag_filter.runs.names.extend(runs)
    if tags is not None:
        request.run_tag_filter.tags.names.extend(tags)
    return request.SerializeToString()


def last_steps(answer):
    return [tag.metadata.max_step for run in messages.ListScalarsResponse.FromString(answer).runs for tag in run.tags]


def load(server, series, last):
    """Seconds to the first curve and to the last step of all, and the last answer."""
    first, list_scalars, steps = None, server.call("ListScalars"), []
    while time.monotonic() - server.began < PATIENCE:
        asked = time.monotonic()
        answer = list_scalars(list_request())
        now = time.monotonic()
        steps = last_steps(answer)
        first = first or (now - server.began if steps else None)
        if len(steps) == series and min(steps) >= last:
            return first, now - server.began, answer
        time.sleep(min(max(0.005, 2 * (now - asked)), 0.1))  # asking is work for the server, too
    raise SystemExit(f"{len(steps)} of {series} curves after {PATIENCE} s")


def latencies(server, answer):
    run, read_scalars, found = messages.ListScalarsResponse.FromString(answer).runs[0], server.call("ReadScalars"), {}
    for points in POINTS:
        request, took = read_request(points, [run.run_name], [run.tags[0].tag_name]), []
        for _ in range(TIMES):
            began = time.monotonic()
            answer = read_scalars(request)
            took.append(1000 * (time.monotonic() - began))
        found[points] = {"bytes": len(answer), "median": statistics.median(took), "p99": sorted(took)[TIMES * 99 // 100 - 1]}
    return found


def main(program, logdir, series, last, directory):
    series, last = int(series), int(last)
    with Server(program, logdir, directory) as server:
        first, everything, answer = load(server, series, last)
        cpu, most, files = usage(server.process)
        print(json.dumps({"first": first, "load": everything, "cpu": cpu, "mebibytes": most, "files": files,
                          "latency": latencies(server, answer)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
