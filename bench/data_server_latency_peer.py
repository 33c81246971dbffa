"""Times ReadScalars of a data server: data_server_latency_peer.py idle|loading PROGRAM LOGDIR DIRECTORY CALLS LAST POINTS,CURVES...

LOGDIR has runs small/* of 10 curves with 1,000 points, and a large run, whose curves end at step LAST. idle: once all is
loaded. loading: from the moment when the small runs are shown until the large one is, with a server of its own for each row.
CALLS: bench/data_server_calls.c. Prints JSON: rows of who asks, bytes of an answer, calls, and
milliseconds: median, 99th of 100, longest; 0 calls: all was loaded before the first.
"""
import json
import statistics
import subprocess
import sys
import time

import data_server_peer as peer
from data_server_logs import LARGE_CURVES, RUNS, SMALL_LAST

# who asks, as data_server_calls wants it, and how often each at rest; several that do not pause tell how many calls two
# processors take, not how long one takes
ASKERS = {"1 client": ("1", 500), "50 clients, 20 ms apart": ("50:20", 100), "50 clients, no pause": ("50", 40)}
PYTHON, CALLS_OF_PYTHON = "gRPC's Python client", 200


def listed(server):
    return peer.messages.ListScalarsResponse.FromString(server.call("ListScalars")(peer.list_request())).runs


def requests(server, sizes):
    """Messages, once the small runs are shown."""
    while True:
        small = [run for run in listed(server) if run.run_name.startswith("small/")]
        if len(small) == RUNS and all(tag.metadata.max_step == SMALL_LAST for run in small for tag in run.tags):
            tags = [tag.tag_name for tag in small[0].tags]
            return [peer.read_request(points, [small[0].run_name], tags[:curves]) for points, curves in sizes]
        time.sleep(0.01)


def loaded(server, last):
    return sum(tag.metadata.max_step == last for run in listed(server) for tag in run.tags) == LARGE_CURVES


def begin(calls, server, message, clients, count):
    return subprocess.Popen(list(map(str, [calls, server.port, "ReadScalars", message.hex(), clients, count])),
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def told(asking):
    """What data_server_calls says, which ends once its standard input has."""
    size, count, *milliseconds = asking.communicate()[0].split()
    return [int(size), int(count), *map(float, milliseconds)]


def by_python(server, message):
    call, took, answer = server.call("ReadScalars"), [], b""
    for _ in range(CALLS_OF_PYTHON):
        began = time.monotonic()
        answer = call(message)
        took.append(1000 * (time.monotonic() - began))
    took.sort()
    return [len(answer) + 5, len(took), statistics.median(took), took[len(took) * 99 // 100], took[-1]]


def idle(program, logdir, directory, calls, last, sizes):
    with peer.Server(program, logdir, directory) as server:
        messages = requests(server, sizes)
        while not loaded(server, last):
            time.sleep(0.1)
        for message in messages:
            for name, (clients, count) in ASKERS.items():
                yield [name, *told(begin(calls, server, message, clients, count))]
            yield [PYTHON, *by_python(server, message)]


def loading(program, logdir, directory, calls, last, sizes):
    for which in range(len(sizes)):
        for name, (clients, _) in ASKERS.items():
            with peer.Server(program, logdir, directory) as server:
                message = requests(server, sizes)[which]
                if loaded(server, last):
                    yield [name, 0, 0, 0, 0, 0]
                    continue
                asking = begin(calls, server, message, clients, 0)
                while not loaded(server, last):
                    time.sleep(0.05)
                yield [name, *told(asking)]


def main(what, program, logdir, directory, calls, last, *sizes):
    sizes = [tuple(map(int, size.split(","))) for size in sizes]
    print(json.dumps(list((idle if what == "idle" else loading)(program, logdir, directory, calls, int(last), sizes))))


if __name__ == "__main__":
    main(*sys.argv[1:])
