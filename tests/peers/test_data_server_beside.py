"""What eventlog-server and TensorBoard's own loaders make of damaged and unusual logs: README's table."""
import pytest

from data_server import DataServer, framed, scalar, write_log
from tensorboard_server import python_loader_points

pytest.importorskip("grpc")
tensorboard_data_server = pytest.importorskip("tensorboard_data_server")
pytest.importorskip("tensorboard")


def double(step, value):
    event_pb2 = pytest.importorskip("tensorboard.compat.proto.event_pb2")
    event = event_pb2.Event(wall_time=1.7e9 + step, step=step)
    event.summary.value.add(tag="loss").tensor.MergeFrom(pytest.importorskip("tensorboard.util.tensor_util").make_tensor_proto(
        value, dtype="float64"))
    event.summary.value[0].metadata.plugin_data.plugin_name = "scalars"
    return framed(event.SerializeToString())


def test_where_the_others_lose_points(tmp_path):
    """Numbers of points. The Python loader is asked without its limit of 1000 points for long curves."""
    log, damaged = tmp_path / "log", bytearray(scalar(10, 10))
    damaged[14] ^= 1
    for name, records in (("long", [scalar(i, i) for i in range(3000)]),
                          ("damaged", [*(scalar(i, i) for i in range(10)), damaged, *(scalar(i, i) for i in range(11, 20))]),
                          ("length", [*(scalar(i, i) for i in range(10)), b"\x01" + damaged[1:], *(scalar(i, i) for i in range(11, 20))]),
                          ("doubles", [double(i, i) for i in range(10)])):
        write_log(log / name / "events.out.tfevents.1", *records)
    write_log(log / "interleaved/events.out.tfevents.1", *(scalar(i, i) for i in range(0, 20, 2)))
    write_log(log / "interleaved/events.out.tfevents.2", *(scalar(i, i) for i in range(1, 20, 2)))
    wanted = {"ours": {"long": 3000, "damaged": 19, "length": 19, "doubles": 10, "interleaved": 20},
              "stock": {"long": 1000, "damaged": 20, "length": 10, "doubles": 0, "interleaved": 11},
              "python": {"long": 3000, "damaged": 10, "length": 10, "doubles": 10, "interleaved": 11}}
    assert {name: len(python_loader_points(log / name).get("loss", [])) for name in wanted["python"]} == wanted["python"]
    for which, program in (("ours", None), ("stock", tensorboard_data_server.server_binary())):
        place = tmp_path / which
        place.mkdir()
        with DataServer(log, place, program=program) as server:
            def shown():
                return {name: len(server.points(name, "loss")) for name in wanted[which]}
            server.until(lambda: len(server.runs()) == 5 and shown() == wanted[which], shown)
