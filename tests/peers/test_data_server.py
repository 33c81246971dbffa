"""eventlog-server by a real gRPC client: the golden answers of the specification of data servers (they are those of
TensorBoard's data server 0.7.2 for the golden file), filters and errors, and what it does as a process.

Where each item of the specification's section 11 is tested; tests without a file are here, logs: test_data_server_logs.py,
faults: test_data_server_faults.py.

G1, G2   test_experiment_and_plugins          P1         test_missing_directory_and_end_of_input
G3-G20   test_golden_answer, test_blobs       P2         the same, test_ends_in_the_middle_of_a_load
G21      test_framing_example                 P3, P4     test_mistakes
E1-E4    test_requests_without_what_they_need P5         test_spellings
E5-E11   test_golden_answer                   P6, P7     test_port_in_use_and_port_file
E12      test_blobs                           P8, P9     test_spellings, test_mistakes
E13, E14 test_other_refusals                  P10        logs: test_loads_once
E15      logs: test_blobs_of_all_sizes_...    P11        test_tensorboard_shows_what_its_python_loader_shows
E16, E17 test_other_refusals                  P12        test_answers_are_quick
E18      test_frames_of_one_byte

D1, D2, D13   logs: test_growth_in_parts      D10, D11, D22  logs: test_blobs_of_all_sizes_and_names
D3, D5        logs: test_runs_come_and_go     D12, D14, D15  logs: test_damage
D4            the same, logs: test_links      D16, D19       logs: test_every_type_of_number
D6, D7        logs: test_restarts             D17            logs: test_many_runs_few_descriptors, faults: test_very_many_files
D8            logs: test_files_written_...    D18            logs: test_files_are_replaced_cut_and_rotated
D9            logs: test_samples_are_stable   D20            test_ends_in_the_middle_of_a_load; its time: bench/data_server_latency.py
D21           test_many_names_and_clients     D23            logs: test_broken_clients_do_no_harm; tests/fuzz: grpc_connection,
                                                             data_request, served_events, event_pieces
"""
import concurrent.futures
import itertools
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import threading
import time

import pytest

from data_server import SERVICE, DataServer, frame, golden_bytes, request_headers, scalar, write_log
from interposed import HELD_DATA, interposed
from tensorboard_server import TensorBoard, data_server_or_skip
from waiting import DEADLINE

pytest.importorskip("grpc")
pytest.importorskip("tensorboard")
NULL = b""


def plugin(name):
    return bytes((0x12, len(name) + 2, 0x0a, len(name))) + name.encode()


def limit(n):
    varint = bytes([n]) if n < 128 else bytes((n & 127 | 128, n >> 7))
    return bytes((0x22, len(varint) + 1, 8)) + varint if n else b"\x22\x00"


def key(text):
    return bytes((0x0a, len(text))) + text.encode()


# name: method, request, answer in hexadecimal
GOLDEN = {
    "G3": ("ListRuns", b"", "0a1012057472 61696e190000000065cdcd41"),
    "G4": ("ListScalars", plugin("scalars"), "0a2b0a05747261696e12220a046c6f7373121a0801110000000a65cdcd411a0d0a090a"
           "077363616c6172732001"),
    "G5": ("ReadScalars", plugin("scalars") + limit(1000), "0a310a05747261696e12280a046c6f737312200a020001121000008000"
           "65cdcd410000000a65cdcd411a08000000400000403f"),
    "G6": ("ReadScalars", plugin("scalars") + limit(1), "0a240a05747261696e121b0a046c6f737312130a010112080000000a65cd"
           "cd411a040000403f"),
    "G7": ("ReadScalars", plugin("scalars") + limit(0), "0a110a05747261696e12080a046c6f73731200"),
    "G8": ("ListTensors", plugin("histograms"), "0a290a05747261696e12200a0177121b110000000265cdcd411a100a0c0a0a686973"
           "746f6772616d732002"),
    "G9": ("ReadTensors", plugin("histograms") + limit(51), "0a730a05747261696e126a0a017712650a010012080000000265cdcd"
           "411a5608021208120208031202080322 48000000000000f0bf0000000000000000000000000000f03f000000000000000000000000"
           "0000004000000000000000400000000000000040 0000000000000840000000000000f03f"),
    "G10": ("ListTensors", plugin("text"), "0a260a05747261696e121d0a046e6f74651215110000800365cdcd411a0a0a060a04746578"
            "742002"),
    "G11": ("ReadTensors", plugin("text") + limit(100), "0a2f0a05747261696e12260a046e6f7465121e0a010012080000800365cd"
            "cd411a0f080712041202080142 0568656c6c6f"),
    "G12": ("ListTensors", plugin("hparams"), "0a450a05747261696e123c0a1c5f68706172616d735f2f73657373696f6e5f73746172"
            "745f696e666f121c110000800465cdcd411a110a0d0a076870 6172616d7312021a002002"),
    "G13": ("ReadTensors", plugin("hparams") + limit(10), "0a3e0a05747261696e12350a1c5f68706172616d735f2f73657373696f"
            "6e5f73746172745f696e666f12150a010012080000800465cdcd411a06080112021200"),
    "G14": ("ListBlobSequences", plugin("images"), "0a2d0a05747261696e12240a03696d67121d110000800265cdcd41180322100a0c"
            "0a06696d61676573120210012003"),
    "G15": ("ReadBlobSequences", plugin("images") + limit(10), "0a85010a05747261696e127c0a03696d6712750a01001208000080"
            "0265cdcd411a66" + "".join("0a200a1e" + f"WyIiLCJ0cmFpbiIsImltZyIsMCw{end}".encode().hex()
                                       for end in ("wXQ", "xXQ", "yXQ"))),
    # The encoding of the clip is told, too, as TensorBoard's Python loader does: the peer's content is 1801.
    "G17": ("ListBlobSequences", plugin("audio"), "0a2e0a05747261696e12250a03736e64121e110000000365cdcd41180122110a0d"
            "0a05617564696f1204100b18012003"),
    "G19": ("ListBlobSequences", plugin("graphs"), "0a330a05747261696e122a0a0d5f5f72756e5f67726170685f5f12191100000004"
            "65cdcd411801220c0a080a066772617068732003"),
    "E6": ("ReadScalars", plugin("scalars") + b"\x1a\x02\x0a\x00" + limit(9), ""),
    "E9": ("ReadScalars", plugin("scalars") + bytes.fromhex("1a0812060a046e6f7065") + limit(9), ""),
    "E10": ("ReadScalars", plugin("Scalars") + limit(9), ""),
    "E11": ("ListTensors", plugin("scalars"), ""),
}
GOLDEN["E5"] = ("ReadScalars", plugin("scalars") + b"\x22\x0a\x08" + b"\xff" * 8 + b"\x7f", GOLDEN["G5"][2])
GOLDEN["E7"] = ("ReadScalars", plugin("scalars") + bytes.fromhex("1a110a070a05747261696e12060a046c6f7373") + limit(1000),
                GOLDEN["G5"][2])
GOLDEN["E8"] = ("ReadScalars", plugin("scalars") + bytes.fromhex("1a0f0a0d0a05747261696e0a046e6f7065") + limit(1000),
                GOLDEN["G5"][2])
BLOBS = {"WyIiLCJ0cmFpbiIsImltZyIsMCwwXQ": b"3", "WyIiLCJ0cmFpbiIsImltZyIsMCwxXQ": b"2",
         "WyIiLCJ0cmFpbiIsImltZyIsMCwyXQ": b"\x89PNG", "WyIiLCJ0cmFpbiIsInNuZCIsMCwwXQ": b"RIFF",
         "WyIiLCJ0cmFpbiIsIl9fcnVuX2dyYXBoX18iLDAsMF0": bytes.fromhex("0a0a0a01611205436f6e7374")}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    directory = tmp_path_factory.mktemp("golden")
    write_log(directory / "log/train/events.out.tfevents.1", golden_bytes())
    with DataServer(directory / "log", directory) as server:
        server.until(lambda: server.runs() == ["train"])
        yield server


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_answer(golden, name):
    method, request, answer = GOLDEN[name]
    assert golden.call(method, request).hex() == answer.replace(" ", "")


def test_experiment_and_plugins(golden, tmp_path):
    location = golden.call("GetExperiment")
    assert location == key(str(golden.log))
    assert golden.plugins() == {"scalars", "histograms", "images", "audio", "text", "graphs", "hparams"}


def test_blobs(golden):
    for text, blob in BLOBS.items():
        assert golden.stream("ReadBlob", key(text)) == [bytes((0x0a, len(blob))) + blob]
    # Any experiment is answered, and named in the keys.
    named = golden.read("BlobSequences", "images", experiment="123")["train", "img"].values[0].blob_refs[0].blob_key
    assert named.startswith("WyIxMjMiL") and golden.stream("ReadBlob", key(named)) == [b"\x0a\x013"]


def test_framing_example(tmp_path):
    write_log(tmp_path / "log/train/events.out.tfevents.1",
              *(scalar(step, 1 / 2 ** step, tag="xent", wall=1235 + step) for step in range(3)))
    message = bytes.fromhex("0a0331323312090a077363616c6172731a160a140a05747261696e0a0b6e6f6e6578697374656e74220308e807")
    with DataServer(tmp_path / "log", tmp_path) as server:
        server.until_steps("train", "xent", range(3))
        assert server.call("ReadScalars", message).hex() == (
            "0a3e0a05747261696e12350a0478656e74122d0a030001021218" "00000000004c9340000000000050934000000000005493401a0c"
            "0000803f0000003f0000803e")


def raw_call(connection, method, message):
    """The DATA of the answer to a request whose DATA frames have one byte each, by HTTP/2 made by hand."""
    body = b"\0" + len(message).to_bytes(4, "big") + message
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, request_headers(method)))
    for i in range(len(body)):
        connection.sendall(frame(0, i + 1 == len(body), 1, body[i:i + 1]))
    stream, found = connection.makefile("rb"), b""
    while True:
        head = stream.read(9)
        data = stream.read(int.from_bytes(head[:3], "big"))
        found += data if head[3] == 0 else b""
        if head[3] in (0, 1) and head[4] & 1:
            return found


def test_frames_of_one_byte(golden):
    with socket.create_connection(("localhost", golden.port), DEADLINE) as connection:
        answer = raw_call(connection, "ReadScalars", plugin("scalars") + limit(1000) + b"\x7a\x03abc")
    assert answer[5:].hex() == GOLDEN["G5"][2] and int.from_bytes(answer[1:5], "big") == len(answer) - 5


SERIES = [verb + kind for verb, kind in itertools.product(("List", "Read"), ("Scalars", "Tensors", "BlobSequences"))]


@pytest.mark.parametrize("method", SERIES)
def test_requests_without_what_they_need(golden, method):
    for message in (b"", b"\x12\x00", b"\x12\x02\x0a\x00"):
        assert golden.refusal(method, message) == (3, "must specify non-empty plugin name")
    if method.startswith("Read"):
        assert golden.refusal(method, plugin("scalars")) == (3, "must specify downsample")
        assert golden.refusal(method, plugin("scalars") + b"\x22\x0b\x08" + b"\xff" * 9 + b"\x01") == (
            3, "num_points must be non-negative; got -1")


def test_other_refusals(golden):
    for text in ("???", "", "AAAAAA", "WyIiLCJ0cmFpbiIsImltZyIsMCwwXR", "W10", "WyIiLCJ0cmFpbiIsImltZyIsMCwtMV0"):
        assert golden.refusal("ReadBlob", key(text))[0] == 3, text
    import base64
    for parts in ('["","nope","img",0,0]', '["","train","nope",0,0]', '["","train","loss",0,0]', '["","train","img",7,0]',
                  '["","train","img",0,3]'):
        text = base64.urlsafe_b64encode(parts.encode()).decode().rstrip("=")
        code, said = golden.refusal("ReadBlob", key(text))
        assert code == 5 and said, parts
    assert golden.refusal("Nope")[0] == 12
    assert golden.refusal("ListRuns", path="/x.Y/ListRuns")[0] == 12
    assert golden.refusal("ReadScalars", b"\x12\xff\xff")[0] == 13
    assert golden.refusal("ReadScalars", b"\x12\x03\x0a\x01\xff")[0] == 13  # not UTF-8
    assert golden.call("ReadScalars", plugin("scalars") + limit(1000) + b"\x7a\x03abc")  # an unknown field
    assert golden.runs() == ["train"]


def test_answers_are_quick(tmp_path):
    """Each message of the answer in one segment, without waiting for an acknowledgement: that takes 44 ms (of the peer)."""
    write_log(tmp_path / "log/r/events.out.tfevents.1", *(scalar(i, i) for i in range(4000)))
    with DataServer(tmp_path / "log", tmp_path) as server:
        server.until_steps("r", "loss", range(4000))
        for points in (5, 60, 3000):
            took = []
            for _ in range(40):
                began = time.perf_counter()
                server.call("ReadScalars", plugin("scalars") + limit(points))
                took.append(time.perf_counter() - began)
            assert min(took) < 0.02, (points, statistics.median(took))


def test_many_names_and_clients(golden):
    names = [f"run{i}" for i in range(10000)] + ["train"]
    assert list(golden.read("Scalars", "scalars", runs=names)) == [("train", "loss")]
    found = []

    def ask():
        for _ in range(20):
            found.append(golden.call("ReadScalars", plugin("scalars") + limit(1000)).hex())

    threads = [threading.Thread(target=ask) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE)
    assert len(found) == 1000 and set(found) == {GOLDEN["G5"][2]}


# ---- the process -----------------------------------------------------------------------------------------------------

def test_missing_directory_and_end_of_input(tmp_path):
    with DataServer(tmp_path / "later", tmp_path) as server:
        assert server.runs() == [] and server.call("GetExperiment")
        write_log(tmp_path / "later/events.out.tfevents.1", scalar(0, 1))
        server.until(lambda: server.runs() == ["."])
        server.process.stdin.write(b"ignored")
        assert server.close() == 0


def test_ends_in_the_middle_of_a_load(tmp_path):
    """While a file cannot be opened yet, 50 clients are answered, and data grow; then it ends, with calls and connections open."""
    hold = tmp_path / "hold"
    hold.touch()
    environment = interposed(tmp_path, "held_log", HELD_DATA.replace("t10k-images", "held."), HOLD_WHILE=hold)
    write_log(tmp_path / "log/a/events.out.tfevents.1", *(scalar(i, i) for i in range(100)))
    write_log(tmp_path / "log/b/held.tfevents", scalar(0, 0))
    with DataServer(tmp_path / "log", tmp_path, env=environment) as server:
        server.until_steps("a", "loss", range(100))
        with concurrent.futures.ThreadPoolExecutor(50) as pool:
            assert {len(data) for data in pool.map(lambda _: server.steps("a", "loss"), range(50))} == {100}
        assert server.runs() == ["a"]
        with socket.create_connection(("localhost", server.port), DEADLINE) as connection:
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + frame(1, 4, 1, request_headers("ListRuns")))
            assert connection.recv(1)
            assert server.close() == 0


@pytest.mark.parametrize("arguments, status, said", [
    (["--logdir="], 8, "empty --logdir"), (["--logdir=wat://x"], 8, 'unknown protocol "wat" in logdir wat://x'),
    (["--logdir=gs://x"], 8, None), ([], 2, None), (["--also=a=.", "--also=a=.."], 2, None), (["--logdir=.", "--samples-per-plugin=scalars"], 2, None),
    (["--logdir=.", "--samples-per-plugin==1"], 2, None), (["--logdir=.", "--samples-per-plugin=a=-1"], 2, None),
    (["--logdir=.", "--samples-per-plugin=a=1,"], 2, None), (["--logdir=.", "--reload=5s"], 2, None),
    (["--logdir=.", "--reload=-1"], 2, None), (["--logdir=.", "--port=70000"], 2, None), (["--logdir=.", "--port="], 2, None),
    (["--logdir=.", "x"], 2, None), (["--logd=."], 2, None)])
def test_mistakes(tmp_path, arguments, status, said):
    run = subprocess.run([data_server_or_skip(), *arguments, f"--error-file={tmp_path}/error", f"--port-file={tmp_path}/port"],
                         capture_output=True, text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=DEADLINE)
    assert run.returncode == status and (tmp_path / "error").read_text().count("\n") == 1, run
    assert not said or (tmp_path / "error").read_text() == said + "\n"
    assert not (tmp_path / "port").exists()


def test_an_error_file_that_is_a_link(tmp_path):
    """It is not written through, and both are said on standard error."""
    (tmp_path / "other").write_text("kept")
    (tmp_path / "error").symlink_to("other")
    run = subprocess.run([data_server_or_skip(), "--logdir=.", "--port=70000", f"--error-file={tmp_path}/error"], capture_output=True,
                         text=True, cwd=tmp_path, stdin=subprocess.DEVNULL, timeout=DEADLINE)
    assert run.returncode == 2 and (tmp_path / "other").read_text() == "kept"
    assert "error: is a symbolic link" in run.stderr and "70000" in run.stderr


def test_port_in_use_and_port_file(tmp_path):
    program = data_server_or_skip()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = subprocess.run([program, "--logdir", tmp_path, "--host=127.0.0.1", f"--port={port}"], capture_output=True, text=True,
                             timeout=DEADLINE)
        assert run.returncode == 9 and f'failed to bind to ("127.0.0.1", {port})' in run.stderr
    run = subprocess.run([program, "--logdir", tmp_path, "--port=0", f"--port-file={tmp_path}/no/port"], capture_output=True,
                         text=True, timeout=DEADLINE)
    assert run.returncode == 1 and "Failed to write port" in run.stderr


def test_spellings(tmp_path):
    """What the peer accepts; of an option that is repeated the last counts."""
    log = write_log(tmp_path / "odd_name:/x/events.out.tfevents.1", *(scalar(i, i) for i in range(10)))
    for more in (["-vv", "--verbose"], ["--checksum", "--no-checksum"], ["--reload=1", "--reload=+02"],
                 ["--samples-per-plugin=scalars=1,images=all,x=0"]):
        with DataServer("odd_name://x", tmp_path, *more, cwd=log.parents[2]) as server:
            server.until(lambda: server.runs() == ["."])
            assert len(server.points(".", "loss")) == (1 if "scalars=1" in more[0] else 10)
            assert server.close() == 0


def test_signals_end_it_at_once(tmp_path):
    for number in (signal.SIGTERM, signal.SIGINT):
        with DataServer(tmp_path, tmp_path) as server:
            server.process.send_signal(number)
            assert server.process.wait(DEADLINE) == -number


def test_tensorboard_shows_what_its_python_loader_shows(tmp_path):
    write_log(tmp_path / "log/train/events.out.tfevents.1", golden_bytes())
    shown = {}
    for loader in ("ours", "python"):
        with TensorBoard(tmp_path / "log", tmp_path / f"{loader}.txt", loader=loader) as tensorboard:
            tensorboard.until("runs", lambda runs: runs == ["train"], below="")
            tensorboard.until("scalars/tags", lambda tags: tags)
            listed = tensorboard.until("plugins_listing", lambda plugins: plugins["scalars"]["enabled"], below="")
            shown[loader] = {
                "plugins": {name: plugin["enabled"] for name, plugin in listed.items()},
                "tags": {run: sorted(tags) for run, tags in tensorboard.get("scalars/tags").items()},
                "histograms": tensorboard.get("histograms/histograms", run="train", tag="w"),
                "text": tensorboard.get("text/text", run="train", tag="note")}
    assert shown["ours"] == shown["python"]
