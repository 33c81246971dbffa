"""Starts TensorBoard and waits for its data: tensorboard_start_peer.py LOADER LOGDIR RUNS TAG LAST DIRECTORY

LOADER: the path of a data server, or "stock" for the one that comes with TensorBoard. RUNS 0: until the first answer, of
whatever log. Prints JSON: seconds from the start until TensorBoard answers by HTTP, until its page can list RUNS runs, and
until the curve TAG of each of them has come by HTTP up to step LAST; and processor seconds of TensorBoard's own process and
of the data server's by then.
"""
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
    def __init__(self, loader, logdir, directory):
        environment = {**os.environ, "XDG_CACHE_HOME": f"{directory}/cache"}
        if loader != "stock":
            environment.update(TENSORBOARD_DATA_SERVER_BINARY=loader)
        self.said = pathlib.Path(directory) / "tensorboard.txt"
        self.began = time.monotonic()
        with open(self.said, "w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--port=0", "--host=127.0.0.1", "--load_fast=true",
                 *(["--extra_data_server_flags=--cache=off"] if loader != "stock" else [])], stdout=said, stderr=said, env=environment)
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
                return json.loads(answer.read())
        except (urllib.error.URLError, ConnectionError):
            return None

    def took(self):
        return time.monotonic() - self.began

    def end(self):
        self.process.terminate()
        self.process.wait()


def main(loader, logdir, count, tag, last, directory):
    count, last, told = int(count), int(last), {}
    board = TensorBoard(loader, logdir, directory)
    try:
        board.until(lambda: board.ask("environment"))
        told["answers"] = board.took()
        if count:
            runs = board.until(lambda: (tags := board.ask("plugin/scalars/tags")) and len(tags) == count and sorted(tags))
            told["runs"] = board.took()

            def whole():
                curves = board.ask("plugin/scalars/scalars_multirun", tag=tag, runs=runs)
                return curves and len(curves) == count and all(curve[-1][1] == last for curve in curves.values())

            board.until(whole)
        told["all"] = board.took()
        servers = children(board.process.pid)
        told["python_cpu"] = processor_seconds(board.process.pid)
        told["server_cpu"] = sum(map(processor_seconds, servers))
    finally:
        board.end()
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
