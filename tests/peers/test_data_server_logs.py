"""eventlog-server over logs that change, break and disagree: what is shown is what the files hold, and it stays alive."""
import base64
import json
import os
import shutil
import signal
import subprocess

import pytest

from data_server import DataServer, frame, framed, golden_bytes, request_headers, scalar, write_log
from eventlog_command import write
from interposed import HELD_DATA, interposed
from tensorboard_server import data_server_or_skip
from terminal import Terminal

pytest.importorskip("grpc")
event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
np = pytest.importorskip("numpy")
NAME = "events.out.tfevents.1"
HEADERS = request_headers("ReadScalars")


@pytest.fixture(params=["notified", "polled"])
def server(request, tmp_path):
    """A server on tmp_path/log, which learns of changes from the system, or by looking."""
    (tmp_path / "log").mkdir()
    more = ["--no-notify"] if request.param == "polled" else ["--reload=3600"]
    with DataServer(tmp_path / "log", tmp_path, *more) as server:
        server.log = tmp_path / "log"
        yield server
        assert server.close() == 0


@pytest.fixture
def still(tmp_path):
    """Starts a server over a log that is finished."""
    servers = []

    def start(*arguments, **more):
        servers.append(DataServer(tmp_path / "log", tmp_path, *arguments, **more))
        return servers[-1]

    yield start
    for one in servers:
        assert one.close() == 0, one.output.read_text()


def event(step, fill, wall=None):
    one = event_pb2.Event(wall_time=1.7e9 + step if wall is None else wall, step=step)
    fill(one.summary.value.add())
    return framed(one.SerializeToString())


def append(path, data):
    with open(path, "ab") as file:
        file.write(data)


def test_growth_in_parts(server):
    """D1, D2, D13: nothing of a record that is not whole, nor of zeros; all of it once it is."""
    path = write_log(server.log / "r" / NAME, b"")
    records = [scalar(step, step) for step in range(4)]
    append(path, records[0][:5])
    write_log(server.log / "whole" / NAME, scalar(0, 0, wall=1))
    server.until(lambda: server.runs() == ["whole"])
    shutil.rmtree(server.log / "whole")
    append(path, records[0][5:])
    server.until_steps("r", "loss", [0])
    server.until(lambda: server.runs() == ["r"])
    append(path, records[1][:30])
    append(path, records[1][30:] + records[2])
    server.until_steps("r", "loss", range(3))
    append(path, bytes(12))
    write_log(server.log / "s" / NAME, scalar(0, 1))
    server.until(lambda: server.runs() == ["r", "s"])
    with open(path, "r+b") as file:
        file.seek(-12, os.SEEK_END)
        file.write(records[3])
    server.until_steps("r", "loss", range(4))


def test_runs_come_and_go(server):
    """D3, D4, D5."""
    write_log(server.log / NAME, scalar(0, 1, wall=1))
    write_log(server.log / "a/b/c" / NAME, scalar(0, 1, wall=2))
    write_log(server.log / "x" / "y.tfevents.z.bak", scalar(0, 1, wall=3))
    (server.log / "tfevents").mkdir()
    server.until(lambda: server.runs() == [".", "a/b/c", "x"])
    shutil.rmtree(server.log / "a")
    server.until(lambda: server.runs() == [".", "x"])
    write_log(server.log / "a/b/c" / NAME, scalar(5, 1, wall=2))
    server.until_steps("a/b/c", "loss", [5])
    shutil.rmtree(server.log)
    server.until(lambda: server.runs() == [])


def test_files_are_replaced_cut_and_rotated(server):
    """D18, and event-log.md 7.3."""
    path = write_log(server.log / "r" / NAME, *(scalar(step, step) for step in range(5)))
    server.until_steps("r", "loss", range(5))
    other = write_log(server.log.parent / "new", *(scalar(step, step) for step in range(9)))
    other.rename(path)  # the same beginning, and more
    server.until_steps("r", "loss", range(9))
    other = write_log(server.log.parent / "new", *(scalar(step, -step, wall=5) for step in range(3)))
    other.rename(path)  # something else
    server.until(lambda: [value for _, _, value in server.points("r", "loss")] == [0, -1, -2])
    path.write_bytes(scalar(7, 7))
    server.until_steps("r", "loss", [7])
    write_log(server.log / "r" / (NAME + ".2"), scalar(8, 8))
    server.until_steps("r", "loss", [7, 8])
    path.unlink()
    append(server.log / "r" / (NAME + ".2"), scalar(9, 9))
    server.until_steps("r", "loss", [7, 8, 9])


def test_restarts(server):
    """D6, D7: a restart replaces what it repeats; steps logged twice do not spoil the sample."""
    path = write_log(server.log / "r" / NAME, *(scalar(step, 1) for step in range(100)),
                     *(scalar(step, 2, wall=1.8e9) for step in range(50, 121)))
    server.until_steps("r", "loss", range(121))
    assert [value for _, _, value in server.points("r", "loss")] == [1] * 50 + [2] * 71
    # The restart in a file of its own.
    append(path, scalar(120, 3, wall=1.9e9))
    write_log(server.log / "r" / (NAME + ".2"), scalar(60, 4, wall=2e9))
    server.until_steps("r", "loss", range(61))
    twice = server.log / "twice" / NAME
    write_log(twice, *(scalar(step, value) for step in range(4000) for value in (1, 2)))
    server.until(lambda: server.steps("twice", "loss")[-1:] == [3999])
    points = server.points("twice", "loss", 1000)
    assert len(points) == 1000 and points[-1][0] == 3999 and {value for _, _, value in points} == {2}
    tenths = [sum(400 * i <= step < 400 * i + 400 for step, _, _ in points) for i in range(10)]
    assert min(tenths) > 60 and max(tenths) < 140, tenths


def test_files_written_at_the_same_time_are_merged(server, still):
    """D8: at equal steps the newer value; with --no-merge as TensorBoard's data server shows it."""
    first = write_log(server.log / "r" / (NAME + ".a"), *(scalar(step, 1, wall=100 + step) for step in range(0, 20, 2)))
    second = write_log(server.log / "r" / (NAME + ".b"), *(scalar(step, 2, wall=100 + step) for step in range(1, 20, 2)))
    server.until_steps("r", "loss", range(20))
    append(first, scalar(20, 1, wall=120) + scalar(21, 1, wall=121))
    append(second, scalar(21, 2, wall=122))
    server.until(lambda: server.points("r", "loss")[-2:] == [(20, 120, 1), (21, 122, 2)])
    as_peer = still("--no-merge")
    as_peer.until(lambda: len(as_peer.steps("r", "loss")) == 12)


def test_samples_are_stable(server):
    """D9."""
    path = write_log(server.log / "r" / NAME, *(scalar(step, 1) for step in range(10000)))
    server.until(lambda: len(server.steps("r", "loss")) == 10000)
    before = server.steps("r", "loss", 100)
    assert before == server.steps("r", "loss", 100) and len(before) == 100
    append(path, scalar(10000, 1))
    server.until(lambda: len(server.steps("r", "loss")) == 10001)
    after = server.steps("r", "loss", 100)
    assert after[-1] == 10000 and len(set(after) & set(before[:-1])) >= 98


def test_damage(still, tmp_path):
    """D12, D14, D15: a record is lost at most, and said once."""
    damaged = bytearray(scalar(1, 1))
    damaged[-9] ^= 1
    huge = (1 << 62).to_bytes(8, "little")
    from checksum import masked_crc32c
    write_log(tmp_path / "log/r" / NAME, scalar(0, 0), bytes(damaged), scalar(2, 2), framed(b"\xff\xff"),
              scalar(3, 3, wall=float("inf")), scalar(4, 4, wall=float("nan")), scalar(5, 5), b"garbage!" * 50, scalar(6, 6),
              huge + masked_crc32c(huge) + b"xyz")
    server = still()
    server.until_steps("r", "loss", [0, 2, 5, 6])
    said = [line for line in server.output.read_text().splitlines() if "tfevents" in line]
    assert len(said) == 1 and "the CRC of the record's data" in said[0], said


def test_report(still, tmp_path):
    """What is lost, as a text of a run; nothing of it unless it is asked for."""
    damaged = scalar(1, 1)[:-1] + b"?"
    write_log(tmp_path / "log/r" / NAME, scalar(0, 0), damaged, scalar(2, 2))
    plain, server = still(), still("--report")

    def text():
        found = server.read("Tensors", "text").get(("eventlog-server", "lost"))
        return tensor_util.make_ndarray(found.value[-1]).item().decode() if found else ""

    server.until(lambda: "the CRC of the record's data" in text())
    assert text().startswith("1 message") and NAME in text() and "eventlog-server" in server.runs()
    write_log(tmp_path / "log/s" / NAME, scalar(0, 0), damaged, scalar(2, 2))
    server.until(lambda: text().startswith("2 messages"))
    plain.until_steps("s", "loss", [0, 2])
    assert plain.runs() == ["r", "s"]


def test_status_on_a_terminal(tmp_path):
    """While the first round lasts: one run is read, another cannot be opened yet. Nothing of it elsewhere."""
    def image(value):
        value.tag, value.image.encoded_image_string = "image", bytes(2 << 20)

    hold = tmp_path / "hold"
    hold.touch()
    write_log(tmp_path / "log/a" / NAME, event(0, image))
    write_log(tmp_path / "log/b" / ("held." + NAME), scalar(0, 0))
    environment = interposed(tmp_path, "held_log", HELD_DATA.replace("t10k-images", "held."), HOLD_WHILE=hold)
    arguments = [data_server_or_skip(), f"--logdir={tmp_path / 'log'}", "--port=0", "--status", "--die-after-stdin"]
    terminal = Terminal(100, arguments, environment)
    try:
        terminal.shows(r"2 runs, 0\.0 million points, 2 MB in \d+ s, \d+ MB/s")
        hold.unlink()
        terminal.shows(r"MB/s\r\x1b\[K$")
    finally:
        terminal.process.kill()
        terminal.process.wait()
    hold.touch()
    with DataServer(tmp_path / "log", tmp_path, "--status", env=environment) as server:
        server.until(lambda: server.runs() == ["a"])
        hold.unlink()
        server.until_steps("b", "loss", [0])
        assert server.output.read_text() == ""


def test_every_type_of_number(still, tmp_path):
    """D16, D19: also what the peer drops; metadata on the first value is enough."""
    def numbered(dtype):
        def fill(value):
            value.tag = np.dtype(dtype).name
            value.tensor.CopyFrom(tensor_util.make_tensor_proto(np.array(3, dtype)))
            value.metadata.plugin_data.plugin_name = "scalars"
        return fill

    def bare(value):
        value.tag = "float64"
        value.tensor.CopyFrom(tensor_util.make_tensor_proto(np.array(4, np.float64)))

    types = [np.float64, np.float32, np.float16, np.int64, np.int32, np.int16, np.int8, np.uint8, np.bool_]
    write_log(tmp_path / "log/r" / NAME, *(event(0, numbered(t)) for t in types), event(1, bare))
    server = still()
    server.until(lambda: "r" in server.runs())
    for dtype in types:
        assert server.points("r", np.dtype(dtype).name)[0][2] == (1 if dtype is np.bool_ else 3), dtype
    assert server.steps("r", "float64") == [0, 1]


def test_blobs_of_all_sizes_and_names(still, tmp_path):
    """D10, D11, D22, E15."""
    pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
    odd = 'q"b\\s\nné'

    def image(tag, data):
        def fill(value):
            value.tag, value.image.width, value.image.height, value.image.encoded_image_string = tag, 3, 2, data
        return fill

    big = os.urandom(12 << 20)
    bad = event(0, image("bad12", b"x")).replace(b"bad12", b"bad\xff\xfe")
    bad = framed(bad[12:-4])
    write_log(tmp_path / "log" / odd / NAME, event(0, image("big", big)), event(0, image("empty", b"")),
              event(0, image(odd, b"x")), bad)
    bad_run = os.fsencode(tmp_path / "log") + b"/\xffrun"
    os.mkdir(bad_run)
    with open(bad_run + b"/" + NAME.encode(), "wb") as file:
        file.write(scalar(0, 1))
    server = still()
    server.until(lambda: set(server.runs()) == {odd, "\ufffdrun"})
    found = server.read("BlobSequences", "images")
    assert set(found) == {(odd, "big"), (odd, "empty"), (odd, odd), (odd, "bad\ufffd\ufffd")}

    def parts(tag, index):
        reference = found[odd, tag].values[0].blob_refs[index].blob_key
        request = pb.ReadBlobRequest(blob_key=reference).SerializeToString()
        return [pb.ReadBlobResponse.FromString(part).data for part in server.stream("ReadBlob", request)]

    assert [len(part) for part in parts("big", 2)] == [8 << 20, 4 << 20] and b"".join(parts("big", 2)) == big
    assert parts("empty", 2) == [] and parts(odd, 2) == [b"x"] and parts("bad\ufffd\ufffd", 2) == [b"x"]
    assert parts("big", 0) == [b"3"] and parts("big", 1) == [b"2"]
    assert server.steps("\ufffdrun", "loss") == [0]


def test_many_runs_few_descriptors(still, tmp_path):
    """D17, and rows 4 and 9: every run is shown, however few descriptors there may be."""
    for i in range(1500):
        write_log(tmp_path / f"log/r{i}" / NAME, scalar(0, i))

    server = still(preexec_fn=lambda: __import__("resource").setrlimit(__import__("resource").RLIMIT_NOFILE, (64, 64)))
    server.until(lambda: len(server.runs()) == 1500)
    assert len(server.read("Scalars", "scalars")) == 1500
    assert len(os.listdir(f"/proc/{server.process.pid}/fd")) <= 64


def test_links(still, tmp_path):
    """D4: a link within the log is a run, a loop is ignored, and what lies outside is not read unless it is asked for."""
    write_log(tmp_path / "log/a" / NAME, scalar(0, 1, wall=1))
    write_log(tmp_path / "outside/b" / NAME, scalar(0, 1, wall=2))
    (tmp_path / "log/inner").symlink_to("a")
    (tmp_path / "log/a/loop").symlink_to("..")
    (tmp_path / "log/outer").symlink_to(tmp_path / "outside/b")
    (tmp_path / "log/c").mkdir()
    (tmp_path / "log/c" / NAME).symlink_to(tmp_path / "outside/b" / NAME)
    server = still()
    server.until(lambda: set(server.runs()) == {"a", "inner"})
    assert server.output.read_text().count("--follow-links") == 2
    follows = still("--follow-links")
    follows.until(lambda: set(follows.runs()) == {"a", "inner", "outer", "c"})


def test_points_of_a_chart(still, tmp_path):
    """--chart-points: all of short curves, and as many of long ones as there is room for, with their extremes."""
    for run, count in (("a", 3000), ("b", 3000), ("short", 100)):
        rows = "".join(f"{i},{1e9 if i == 1234 else i}\n" for i in range(count))
        write(tmp_path / "log" / run, "-", text="step,loss\n" + rows)
    server = still("--chart-points=2100", "--extremes")
    server.until(lambda: {len(server.steps(run, "loss")) for run in ("a", "b")} == {2100})
    found = {run: len(data.step) for (run, _), data in server.read("Scalars", "scalars").items()}
    assert found == {"a": 1000, "b": 1000, "short": 100}
    found = server.read("Scalars", "scalars")["a", "loss"]
    assert 1234 in found.step and found.step[-1] == 2999
    few = still("--chart-points=300")
    few.until(lambda: {len(data.step) for data in few.read("Scalars", "scalars").values()} == {200, 100})
    assert len(few.steps("a", "loss", 250)) == 250 and len(few.steps("a", "loss")) == 300


def test_what_is_not_listed(still, tmp_path):
    """A link out of the log is not walked, and directories too deep are named once; the rest is shown."""
    write_log(tmp_path / "log/r" / NAME, scalar(0, 1))
    (tmp_path / "log/everything").symlink_to("/")
    subprocess.run(["sh", "-c", 'cd "$0"; for i in $(seq 1000); do mkdir d; cd -P d; done', tmp_path / "log"], check=True)
    try:
        server = still()
        server.until(lambda: server.runs() == ["r"])
        server.until(lambda: server.output.read_text().count("\n") == 2)
        assert "log/everything: is a link that leads out of the log directory" in server.output.read_text()
        assert server.output.read_text().count("more than 100 directories") == 1
    finally:
        subprocess.run(["rm", "-rf", tmp_path / "log/d"], check=True)  # Python's own removal calls itself for each


def test_refusals_name_long_runs(still, tmp_path):
    """256 bytes were shown as none, as their length modulo 256."""
    pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")
    runs = ["r" * 100 + "/" + "s" * (length - 101) for length in (200, 255, 256, 300)] + ["é" * 120 + "/" + "é" * 120]
    for run in runs:
        write_log(tmp_path / "log" / run / NAME, scalar(0, 1))
    server = still()
    server.until(lambda: set(server.runs()) == set(runs))
    for run in runs:
        for tag in ("nope", "é" * 199):
            key = base64.urlsafe_b64encode(json.dumps(["", run, tag, 0, 0]).encode()).decode().rstrip("=")
            code, said = server.refusal("ReadBlob", pb.ReadBlobRequest(blob_key=key).SerializeToString())
            assert (code, said) == (5, f'run "{run[:200] if "é" in run else run}" has no such tag: "{tag}"')


def test_killed_and_started_again(tmp_path):
    write_log(tmp_path / "log/train" / NAME, golden_bytes())
    for _ in range(3):
        with DataServer(tmp_path / "log", tmp_path) as server:
            server.until_steps("train", "loss", [0, 1])
            server.process.send_signal(signal.SIGKILL)
            assert server.process.wait() == -signal.SIGKILL


def test_loads_once(tmp_path):
    """P10."""
    path = write_log(tmp_path / "log/r" / NAME, scalar(0, 0))
    with DataServer(tmp_path / "log", tmp_path, reload="once") as server:
        server.until_steps("r", "loss", [0])
        append(path, scalar(1, 1))
        with DataServer(tmp_path / "log", tmp_path) as other:  # which sees it
            other.until_steps("r", "loss", [0, 1])
        assert server.steps("r", "loss") == [0]


def test_several_directories(tmp_path):
    write_log(tmp_path / "one/r" / NAME, scalar(0, 0))
    write_log(tmp_path / "two" / NAME, scalar(1, 0))
    with DataServer(tmp_path / "one", tmp_path, f"--also=second={tmp_path / 'two'}", f"--also=x/y={tmp_path / 'one'}") as server:
        server.until(lambda: set(server.runs()) == {"r", "second", "x/y/r"})


def test_broken_clients_do_no_harm(tmp_path):
    """D23 by hand: bytes that are no HTTP/2, and connections that say nothing, beside a client that works."""
    import socket
    write_log(tmp_path / "log/r" / NAME, scalar(0, 0))
    with DataServer(tmp_path / "log", tmp_path) as server:
        server.until_steps("r", "loss", [0])
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(600)]
        for data in (b"GET / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(range(256)) * 50, bytes(9)):
            with socket.create_connection(("127.0.0.1", server.port)) as client:
                client.sendall(data)
        assert server.steps("r", "loss") == [0]
        for one in idle:
            one.close()
        assert server.steps("r", "loss") == [0]


def test_too_much_does_no_harm(tmp_path):
    """A request that is too large; clients that ask for much and take nothing; 10,000 tags."""
    import socket
    many = event_pb2.Event(wall_time=1, step=0)
    for i in range(10000):
        many.summary.value.add(tag=f"tag {i:05}", simple_value=i)
    write_log(tmp_path / "log/r" / NAME, framed(many.SerializeToString()))
    plugin = b"\x12\x09\x0a\x07scalars\x22\x02\x08\x01"
    with DataServer(tmp_path / "log", tmp_path) as server:
        server.until(lambda: len(server.read("Scalars", "scalars")) == 10000)
        assert server.refusal("ReadScalars", plugin + b"\x7a\x80\x80\x80\x10" + bytes(1 << 25)) == (
            8, "the request is too large, or too many are")
        calls = b"".join(frame(1, 4, stream, HEADERS) + frame(0, 1, stream, b"\0\0\0\0" + bytes([len(plugin)]) + plugin)
                         for stream in range(1, 40, 2))
        slow = [socket.create_connection(("localhost", server.port)) for _ in range(5)]
        for client in slow:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + calls)
        for _ in range(3):
            assert len(server.read("Scalars", "scalars")) == 10000
        for client in slow:
            client.close()
        assert server.close() == 0 and server.output.read_text() == ""
