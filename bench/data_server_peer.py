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


def load(list_scalars, series, last, began):
    """Seconds to the first curve and to the last step of all."""
    request = messages.ListScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    first = None
    while time.monotonic() - began < PATIENCE:
        asked = time.monotonic()
        answer = messages.ListScalarsResponse.FromString(list_scalars(request.SerializeToString()))
        now = time.monotonic()
        steps = [tag.metadata.max_step for run in answer.runs for tag in run.tags]
        first = first or (now - began if steps else None)
        if len(steps) == series and min(steps) >= last:
            return first, now - began
        time.sleep(min(max(0.005, 2 * (now - asked)), 0.1))  # asking is work for the server, too
    raise SystemExit(f"{len(steps)} of {series} curves after {PATIENCE} s")


def latencies(list_scalars, read_scalars):
    request = messages.ListScalarsRequest(experiment_id="")
    request.plugin_filter.plugin_name = "scalars"
    run = messages.ListScalarsResponse.FromString(list_scalars(request.SerializeToString())).runs[0]
    found = {}
    for points in POINTS:
        request = messages.ReadScalarsRequest(experiment_id="")
        request.plugin_filter.plugin_name, request.downsample.num_points = "scalars", points
        request.run_tag_filter.runs.names.append(run.run_name)
        request.run_tag_filter.tags.names.append(run.tags[0].tag_name)
        took = []
        for _ in range(TIMES):
            began = time.monotonic()
            answer = read_scalars(request.SerializeToString())
            took.append(1000 * (time.monotonic() - began))
        found[points] = {"bytes": len(answer), "median": statistics.median(took), "p99": sorted(took)[TIMES * 99 // 100 - 1]}
    return found


def main(program, logdir, series, last, directory):
    port_file = pathlib.Path(directory) / "port"
    port_file.unlink(missing_ok=True)
    began = time.monotonic()
    with subprocess.Popen([path_of(program), f"--logdir={logdir}", "--reload=5", "--samples-per-plugin=", "--port=0",
                           f"--port-file={port_file}", "--die-after-stdin", *(["--cache=off"] if program != "stock" else [])], stdin=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as process:
        while not port_file.exists() or not port_file.read_text().endswith("\n"):
            if process.poll() is not None:
                raise SystemExit(f"{program} ended with {process.returncode}")
            time.sleep(0.001)
        channel = grpc.insecure_channel(f"localhost:{int(port_file.read_text())}", options=[
            ("grpc.max_receive_message_length", 256 << 20)])
        calls = [channel.unary_unary(SERVICE + method) for method in ("ListScalars", "ReadScalars")]
        first, everything = load(calls[0], int(series), int(last), began)
        cpu, most, files = usage(process)
        print(json.dumps({"first": first, "load": everything, "cpu": cpu, "mebibytes": most, "files": files,
                          "latency": latencies(*calls)}))
        channel.close()
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
