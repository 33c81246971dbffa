"""eventlog-server and clients that ask and do not read, as a laptop that is suspended: others do not notice."""
import concurrent.futures
import os
import resource
import socket

import pytest

from data_server import SERVICE, DataServer, frame, request_headers
from eventlog_command import write
from interposed import LATER, interposed
from waiting import DEADLINE, wait_for

pytest.importorskip("grpc")
pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
MIB, ALL = 1 << 20, 700  # ALL: points of a curve
WIDE = b"\0\4\x7f\xff\xff\xff"  # a setting: windows of streams of 2 GiB
SETTINGS, PING = 4, 6


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log of 1,000 curves, of which all points are 9 MiB."""
    log = tmp_path_factory.mktemp("clients") / "log"
    rows = [f"{step},{step}," + ",".join(map(str, range(1000))) for step in range(ALL)]
    write(log / "r", "-", text="\n".join(["step,wall_time," + ",".join(f"tag {tag:03}" for tag in range(1000)), *rows]))
    return log


def request(points):
    request = pb.ReadScalarsRequest()
    request.plugin_filter.plugin_name, request.downsample.num_points = "scalars", points
    return request.SerializeToString()


def call(stream, points):
    message = request(points)
    return (frame(1, 4, stream, request_headers("ReadScalars")) +
            frame(0, 1, stream, b"\0" + len(message).to_bytes(4, "big") + message))


class Raw(socket.socket):
    """A client that reads only when it is told to."""

    def __init__(self, server, settings=b""):
        super().__init__()
        self.connect(("127.0.0.1", server.port))
        self.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, settings))
        self.frames = self.makefile("rb")

    def ask(self, count, points):
        self.sendall(b"".join(call(1 + 2 * i, points) for i in range(count)))

    def next_frame(self):
        """Its kind, flags and bytes; None: the server has closed the connection."""
        try:
            head = self.frames.read(9)
            return (head[3], head[4], self.frames.read(int.from_bytes(head[:3], "big"))) if head else None
        except ConnectionResetError:
            return None

    def is_open(self):
        """As far as the system has noticed; with nothing to read before the end."""
        try:
            return self.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False


def started(log, tmp_path, **more):
    server = DataServer(log, tmp_path, **more)
    server.until(lambda: len(server.read("Scalars", "scalars", limit=1)) == 1000)
    server.until(lambda: server.steps("r", "tag 999") == list(range(ALL)))
    return server


def memory(server):
    """MiB that it has needed at most."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return [int(line.split()[1]) >> 10 for line in file if line.startswith("VmHWM")][0]


def channel(server):
    return server.grpc.insecure_channel(f"localhost:{server.port}", options=[
        ("grpc.max_receive_message_length", 256 * MIB), ("grpc.use_local_subchannel_pool", 1)])


def asks(server, points, times=1):
    """A client of its own; the sizes of its answers."""
    with channel(server) as own:
        return [len(own.unary_unary(SERVICE + "ReadScalars")(request(points), timeout=DEADLINE)) for _ in range(times)]


def test_one_that_asks_and_does_not_read(log, tmp_path):
    """It gets a share of the memory, and its further calls wait."""
    with started(log, tmp_path) as server, Raw(server, WIDE) as hung, Raw(server) as closed:
        whole, = asks(server, ALL)
        assert whole > 8 * MIB
        for client in (hung, closed):
            client.ask(200, ALL)
        assert asks(server, ALL, 20) == [whole] * 20
        assert memory(server) < 700  # two quarters of 1 GiB, and what is being answered
        assert server.read("Scalars", "scalars", limit=1)  # over a connection from before


def test_many_that_do_not_read(log, tmp_path):
    """600 of them, and 1,024 descriptors for the server."""
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))  # noqa: E731
    had = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(had[0], 2000), max(had[1], 2000)))
    hung = []
    try:
        with started(log, tmp_path, preexec_fn=few) as server:
            for i in range(600):
                hung.append(Raw(server, WIDE if i % 2 else b""))
                hung[-1].ask(1, 300)
                assert i % 100 or asks(server, 1)
            assert asks(server, ALL, 3)
            assert server.read("Scalars", "scalars", limit=1)
            assert len(os.listdir(f"/proc/{server.process.pid}/fd")) < 400 and memory(server) < 1500
            assert server.close() == 0 and server.output.read_text() == ""
    finally:
        for client in hung:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, had)


def test_some_stop_reading(log, tmp_path):
    """5 of 50: nothing is refused to the 45."""
    with started(log, tmp_path) as server, concurrent.futures.ThreadPoolExecutor(45) as threads:
        whole, = asks(server, ALL)
        hung = [Raw(server, WIDE) for _ in range(5)]
        for client in hung:
            client.ask(100, ALL)
        sizes = [each.result(DEADLINE) for each in [threads.submit(asks, server, ALL, 2) for _ in range(45)]]
        assert sizes == [[whole] * 2] * 45
        assert memory(server) < 1500
        for client in hung:
            client.close()


def test_dropped_when_time_has_passed(log, tmp_path):
    """Who takes nothing, be it the socket or windows that stay closed, and who does not answer a PING; others stay."""
    later = tmp_path / "later"
    later.write_text("0")
    with started(log, tmp_path, env=interposed(tmp_path, "later", LATER, LATER_FILE=later)) as server:
        full, closed, silent, alive = Raw(server, WIDE), Raw(server, b"\0\4\0\0\0\0"), Raw(server), Raw(server)
        full.ask(100, ALL)
        closed.ask(1, 1)
        asks(server, ALL)
        assert alive.next_frame()[0] == SETTINGS
        later.write_text("61")

        def pinged(client):
            while (found := client.next_frame()) and found[0] != PING:
                pass
            return found

        kind, flags, data = pinged(alive)
        assert (kind, flags, len(data)) == (PING, 0, 8)
        alive.sendall(frame(PING, 1, 0, data))
        assert pinged(closed) is None  # it was closed by now, or comes to its end
        silent.next_frame()
        assert pinged(silent)
        alive.sendall(frame(PING, 0, 0, b"12345678"))
        assert pinged(alive) == (PING, 1, b"12345678")
        later.write_text("125")
        assert pinged(silent) is None and pinged(alive)[1] == 0
        while full.next_frame():
            pass
        assert alive.is_open() and server.read("Scalars", "scalars", limit=1)


def test_slow_progress_is_progress(log, tmp_path):
    """A client that takes a part now and then keeps its connection for longer than one that takes none."""
    later = tmp_path / "later"
    later.write_text("0")
    with started(log, tmp_path, env=interposed(tmp_path, "later", LATER, LATER_FILE=later)) as server:
        slow = Raw(server)
        slow.ask(1, ALL)
        slow.sendall(frame(8, 0, 0, (1 << 30).to_bytes(4, "big")))
        got, shift = 0, 0
        while got < 8 * MIB:
            found = slow.next_frame()
            assert found, (got, shift)
            if found[0] == 0:
                got += len(found[2])
                slow.sendall(frame(8, 0, 1, len(found[2]).to_bytes(4, "big")))
                if got // MIB * 40 > shift:
                    wait_for(lambda: asks(server, 1), "an answer in between")
                    shift = got // MIB * 40
                    later.write_text(str(shift))
            elif found[0] == PING and not found[1]:
                slow.sendall(frame(PING, 1, 0, found[2]))
        assert shift > 200
