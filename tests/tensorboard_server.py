"""An unmodified TensorBoard on a log directory, asked for data as its own pages ask; and its loader in this process."""
import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest

import environment
from waiting import DEADLINE, wait_for

ALL_POINTS = "--samples_per_plugin=scalars=1000000"  # where the default keeps a sample of a long curve


def python_loader_points(run):
    """{tag: [(step, wall time, value)]} of a directory or a file, all points, by the loader of --load_fast=false."""
    event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    loaded = event_accumulator.EventAccumulator(str(run), size_guidance={"tensors": 0, "scalars": 0}).Reload()
    curves = {tag: [(e.step, e.wall_time, e.value) for e in loaded.Scalars(tag)] for tag in loaded.Tags()["scalars"]}
    for tag in loaded.Tags()["tensors"]:
        if loaded.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
            curves[tag] = [(e.step, e.wall_time, float(tensor_util.make_ndarray(e.tensor_proto).item()))
                           for e in loaded.Tensors(tag)]
    return curves


def localhost_or_skip():
    try:
        environment.require_localhost()
    except RuntimeError as error:
        pytest.skip(str(error))


def data_server_or_skip():
    """The path of eventlog-server, which is not built without nghttp2."""
    program = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog-server"
    if not program.exists():
        pytest.skip("eventlog-server is not built")
    return str(program)


class TensorBoard:
    """A process, from its construction to close() or the end of `with`; it listens when the constructor returns.

    loader: "fast" (its data server), "python", "auto" as a user gets it, "ours" (eventlog-server as its data server), or
    "serve" (eventlog serve starts both); what is not installed is a skip.
    output: a file for what it says. Routes are those below /data/plugin/.
    """

    def __init__(self, logdir, output, *arguments, loader="fast"):
        pytest.importorskip("tensorboard")
        localhost_or_skip()
        if loader == "fast":
            pytest.importorskip("tensorboard_data_server")
        self.loader, self.output = loader, output
        load_fast = {"fast": "true", "python": "false", "auto": "auto", "ours": "true", "serve": ""}[loader]
        environ = dict(os.environ, TENSORBOARD_DATA_SERVER_BINARY=data_server_or_skip()) if loader == "ours" else None
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", logdir, "--port", "0", "--host", "127.0.0.1",
                   f"--load_fast={load_fast}", "--reload_interval=1", *arguments]
        if loader == "serve":
            page = output.with_suffix(".program")
            page.write_text(f'#!/bin/sh\nexec {sys.executable} -m tensorboard.main "$@"\n')
            page.chmod(0o755)
            command = [pathlib.Path(data_server_or_skip()).with_name("eventlog"), "serve", logdir, "--port=0",
                       f"--tensorboard={page}", *arguments]
        with open(output, "w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environ)
        try:
            self.address = wait_for(self.find_address, "the address of TensorBoard")
        except BaseException:
            self.close()
            raise

    def find_address(self):
        match = re.search(r"http://\S+?:\d+", self.output.read_text())
        assert match or self.process.poll() is None, self.output.read_text()
        return match and match.group()

    def raw(self, route, data=None, below="plugin/", **query):
        """(bytes, content type); with data it is a POST."""
        address = f"{self.address}/data/{below}{route}" + ("?" + urllib.parse.urlencode(query) if query else "")
        with urllib.request.urlopen(address, data=data, timeout=DEADLINE) as answer:
            return answer.read(), answer.headers["Content-Type"]

    def get(self, route, **query):
        return json.loads(self.raw(route, **query)[0])

    def points(self, run, tag):
        """[(step, wall time, value)] of a curve, [] of one that is not known yet. "NaN", "Infinity" become floats."""
        try:
            return [(step, wall, float(value)) for wall, step, value in self.get("scalars/scalars", run=run, tag=tag)]
        except urllib.error.HTTPError:
            return []

    def until(self, route, good, **query):
        """The first answer that is good(); one that says not found, or not ready, is asked for again."""
        last = None

        def answered():
            nonlocal last
            assert self.process.poll() is None, self.output.read_text()
            try:
                last = self.get(route, **query)
            except OSError as error:
                last = error
                return False
            return good(last)

        wait_for(answered, lambda: f"{route} to answer better than {last!r}")
        return last

    def until_active(self, plugins):
        """Until all these plugins have data."""
        self.until("plugins_listing", below="",
                   good=lambda listed: plugins <= {name for name, plugin in listed.items() if plugin["enabled"]})

    def close(self):
        self.process.terminate()
        self.process.wait(DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
