"""Starts TensorBoard and waits for its data: tensorboard_start_peer.py LOADER LOGDIR RUNS TAG LAST DIRECTORY [SERIES]

LOADER: the path of a data server, or "stock" for the one that comes with TensorBoard. SERIES: that data server is started before,
and has loaded so many curves before TensorBoard is. RUNS 0: until the first answer, of whatever log. Prints JSON: seconds from
the start until TensorBoard answers by HTTP, until its page can list RUNS runs, and until the curve TAG of each of them has come
by HTTP, with the steps 0 to LAST; how often these were asked for; and processor seconds of TensorBoard's own process and of the
data server's by then.

What comes is looked at as bytes, since to parse 20 MB of JSON in Python takes a good part of the time that is measured.
"""
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

PATIENCE = 600


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            found += map(int, (task / "children").read_text().split())
        except (FileNotFoundError, ProcessLookupError):  # a thread that has ended
            pass
    return found


class TensorBoard:
    def __init__(self, loader, logdir, directory, port=None):
        environment = {**os.environ, **({} if loader == "stock" else {"TENSORBOARD_DATA_SERVER_BINARY": loader})}
        source = ["--logdir", logdir, "--load_fast=true"]
        if port:
            source = [f"--grpc_data_provider=localhost:{port}"]
        self.said = pathlib.Path(directory) / "tensorboard.txt"
        self.began = time.monotonic()
        with open(self.said, "w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tensorboard.main", "--port=0", "--host=127.0.0.1", *source], stdout=said, stderr=said,
                env=environment)
        self.address = self.until(lambda: (re.search(r"http://\S+?:\d+", self.said.read_text()) or [None])[0])

    def until(self, found):
        while not (value := found()):
            if self.process.poll() is not None or time.monotonic() - self.began > PATIENCE:
                raise SystemExit(f"TensorBoard: {self.said.read_text()[-300:]}")
            time.sleep(0.005)
        return value

    def ask(self, route, **post):
        data = urllib.parse.urlencode(post, doseq=True).encode() if post else None
        try:
            with urllib.request.urlopen(f"{self.address}/data/{route}", data) as answer:
                return answer.read()
        except (urllib.error.URLError, ConnectionError):
            return b""

    def took(self):
        return time.monotonic() - self.began

    def end(self):
        self.process.terminate()
        self.process.wait()


def ends_of(curves):
    """The name and the last step of each of {"run": [[wall time, step, value], ...], ...}."""
    at = 0
    while (end := curves.find(b"]]", at)) >= 0:
        name = curves[at:curves.index(b'": [[', at)].partition(b'"')[2]
        yield name.decode(), int(curves[curves.rfind(b"[", at, end) + 1:end].split(b",")[1])
        at = end + 2


def are_whole(curves, runs, last):
    """All runs, each up to the last step, and together as many points as they have."""
    return dict(ends_of(curves)) == dict.fromkeys(runs, last) and curves.count(b"], [") == last * len(runs)


def listed(answer):
    return sorted(json.loads(answer)) if answer else []


@contextlib.contextmanager
def server_before(loader, logdir, directory, series, last):
    """A data server that has loaded everything."""
    import data_server_peer
    with data_server_peer.Server(loader, logdir, directory) as server:
        data_server_peer.load(server, series, last)
        yield server


def main(loader, logdir, count, tag, last, directory, series=None):
    if not series:
        print(json.dumps(measure(TensorBoard(loader, logdir, directory), int(count), tag, int(last))))
        return
    with server_before(loader, logdir, directory, int(series), int(last)) as server:
        before = processor_seconds(server.process.pid)
        told = measure(TensorBoard(loader, logdir, directory, server.port), int(count), tag, int(last))
        print(json.dumps({**told, "server_cpu": processor_seconds(server.process.pid) - before}))


def measure(board, count, tag, last):
    told = {"asked": 0}
    try:
        board.until(lambda: board.ask("environment"))
        told["answers"] = board.took()
        if count:
            runs = board.until(lambda: len(runs := listed(board.ask("plugin/scalars/tags"))) == count and runs)
            told["runs"] = board.took()

            def whole():
                told["asked"] += 1
                return are_whole(board.ask("plugin/scalars/scalars_multirun", tag=tag, runs=runs), runs, last)

            board.until(whole)
        told["all"] = board.took()
        servers = children(board.process.pid)
        told["python_cpu"] = processor_seconds(board.process.pid)
        told["server_cpu"] = sum(map(processor_seconds, servers))
    finally:
        board.end()
    return told


if __name__ == "__main__":
    main(*sys.argv[1:])
