"""eventlog-server, or TensorBoard's own data server, asked by a real gRPC client with TensorBoard's own messages."""
import os
import pathlib
import re
import struct
import subprocess

import pytest

from checksum import masked_crc32c
from tensorboard_server import data_server_or_skip, localhost_or_skip
from waiting import DEADLINE, wait_for

SERVICE = "/tensorboard.data.TensorBoardDataProvider/"
GOLDEN = pathlib.Path(__file__).parent / "eventlog/golden_log.h"


def golden_bytes():
    """The golden file of the format's specification, from the header in which C tests have it."""
    text = GOLDEN.read_text()
    start = text.index("golden_hex[] =")
    return bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', text[start:text.index(";", start)])))


def framed(data):
    length = struct.pack("<Q", len(data))
    return length + masked_crc32c(length) + data + masked_crc32c(data)


def scalar(step, value, tag="loss", wall=None):
    """A record with one simple value."""
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    event = event_pb2.Event(wall_time=1.7e9 + step if wall is None else wall, step=step)
    event.summary.value.add(tag=tag, simple_value=value)
    return framed(event.SerializeToString())


def write_log(path, *records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(records))
    return path


def frame(kind, flags, stream, data=b""):
    """One of HTTP/2, for what no gRPC client does."""
    return len(data).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + data


def request_headers(method):
    """The header block of a call, in HPACK's literals."""
    return b"".join(b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode() for name, value in (
        (":method", "POST"), (":scheme", "http"), (":path", SERVICE + method), (":authority", "x"), ("te", "trailers"),
        ("content-type", "application/grpc")))


class DataServer:
    """A process, from its construction to the end of `with`, started as TensorBoard starts it.

    Calls are methods: server.call("ListRuns", b"") for bytes; read(), points() with TensorBoard's messages.
    """

    def __init__(self, logdir, directory, *arguments, program=None, reload="1", logdir_text=None, **more):
        self.grpc = pytest.importorskip("grpc")
        localhost_or_skip()
        self.log = logdir
        self.program, self.error_file = program or data_server_or_skip(), directory / "startup_error"
        port_file, self.output = directory / "port", directory / "server.txt"
        port_file.unlink(missing_ok=True)
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [self.program, f"--logdir={logdir_text or logdir}", f"--reload={reload}", "--samples-per-plugin=", "--port=0",
                 f"--port-file={port_file}", "--die-after-stdin", f"--error-file={self.error_file}", *arguments],
                stdin=subprocess.PIPE, stdout=output, stderr=output, **more)
        self.port = int(wait_for(lambda: self.alive() and port_file.exists() and re.fullmatch(r"\d+\n", port_file.read_text())
                                 and port_file.read_text(), "the port"))
        self.channel = self.grpc.insecure_channel(f"localhost:{self.port}", options=[
            ("grpc.max_receive_message_length", 256 << 20), ("grpc.use_local_subchannel_pool", 1)])

    def alive(self):
        assert self.process.poll() is None, self.output.read_text()
        return True

    def call(self, method, message=b"", seconds=DEADLINE, path=None):
        return self.channel.unary_unary(path or SERVICE + method)(message, timeout=seconds)

    def stream(self, method, message=b""):
        return list(self.channel.unary_stream(SERVICE + method)(message, timeout=DEADLINE))

    def refusal(self, method, message=b"", path=None):
        """The code and the text of a call that fails."""
        with pytest.raises(self.grpc.RpcError) as refused:
            self.stream(method, message) if method == "ReadBlob" else self.call(method, message, path=path)
        return refused.value.code().value[0], refused.value.details()

    # ---- with TensorBoard's messages

    def runs(self):
        pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
        return [run.name for run in pb.ListRunsResponse.FromString(self.call("ListRuns")).runs]

    def plugins(self):
        pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
        return {plugin.name for plugin in pb.ListPluginsResponse.FromString(self.call("ListPlugins")).plugins}

    def read(self, kind, plugin, limit=1000000, runs=None, tags=None, verb="Read", experiment=""):
        """{(run, tag): data} of ReadScalars, ReadTensors, ReadBlobSequences, or with verb List: {...: metadata}."""
        pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
        request = getattr(pb, f"{verb}{kind}Request")(experiment_id=experiment)
        request.plugin_filter.plugin_name = plugin
        if verb == "Read":
            request.downsample.num_points = limit
        for names, part in ((runs, request.run_tag_filter.runs), (tags, request.run_tag_filter.tags)):
            if names is not None:
                part.SetInParent()
                part.names.extend(names)
        answer = getattr(pb, f"{verb}{kind}Response").FromString(self.call(f"{verb}{kind}", request.SerializeToString()))
        return {(run.run_name, tag.tag_name): tag.data if verb == "Read" else tag.metadata
                for run in answer.runs for tag in run.tags}

    def answers(self):
        """Everything that a client can ask for, as bytes."""
        pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
        found = {method: self.call(method) for method in ("ListRuns", "ListPlugins", "GetExperiment")}
        blobs = set()
        for plugin in sorted(self.plugins()):
            for kind in ("Scalars", "Tensors", "BlobSequences"):
                request = getattr(pb, f"List{kind}Request")()
                request.plugin_filter.plugin_name = plugin
                found["List", kind, plugin] = self.call(f"List{kind}", request.SerializeToString())
                for limit in (1, 3, 100000):
                    request = getattr(pb, f"Read{kind}Request")()
                    request.plugin_filter.plugin_name = plugin
                    request.downsample.num_points = limit
                    found["Read", kind, plugin, limit] = self.call(f"Read{kind}", request.SerializeToString())
                if kind == "BlobSequences":
                    read = pb.ReadBlobSequencesResponse.FromString(found["Read", kind, plugin, 100000])
                    blobs |= {reference.blob_key for run in read.runs for tag in run.tags for values in tag.data.values
                              for reference in values.blob_refs}
        found.update((key, self.stream("ReadBlob", pb.ReadBlobRequest(blob_key=key).SerializeToString())) for key in blobs)
        return found

    def points(self, run, tag, limit=1000000, plugin="scalars"):
        """[(step, wall time, value)], [] of a series that is not there."""
        data = self.read("Scalars", plugin, limit, [run], [tag]).get((run, tag))
        return list(zip(data.step, data.wall_time, data.value)) if data else []

    def steps(self, run, tag, limit=1000000):
        return [step for step, _, _ in self.points(run, tag, limit)]

    def until(self, condition, what=lambda: "data"):
        return wait_for(lambda: self.alive() and condition(), what)

    def until_steps(self, run, tag, steps):
        self.until(lambda: self.steps(run, tag) == list(steps), lambda: f"{list(steps)} in {self.steps(run, tag)}")

    def close(self):
        self.channel.close()
        self.process.stdin.close()
        return self.process.wait(DEADLINE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.close()
