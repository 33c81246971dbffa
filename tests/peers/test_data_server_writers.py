"""eventlog-server beside TensorBoard's own data server: equal answers for logs of TensorFlow, PyTorch and tensorboardX, but
for DIFFERENT.
"""
import importlib.util
import subprocess
import sys

import pytest

from data_server import DataServer

pytest.importorskip("grpc")
np = pytest.importorskip("numpy")
tensorboard_data_server = pytest.importorskip("tensorboard_data_server")
pytest.importorskip("tensorboard")

# What is not the stock server's: plugin, why.
DIFFERENT = {"audio": "metadata: the encoding of the clips is told, as TensorBoard's Python loader does",
             "histograms": "TensorFlow 1's, PyTorch's: no empty buckets at the ends, whose left would be above their right"}

TF = """
import sys, numpy as np, tensorflow as tf
from tensorboard.plugins.hparams import api as hp
top, image = sys.argv[1], np.arange(2 * 4 * 4 * 3, dtype=np.uint8).reshape(2, 4, 4, 3)
with tf.summary.create_file_writer(top + "/tf2").as_default():
    hp.hparams({"lr": 0.1, "name": "a"})
    for step in range(3):
        tf.summary.scalar("loss", 1 / (step + 1), step, description="the *loss*")
        tf.summary.histogram("weights", np.arange(10.0) * step, step)
        tf.summary.image("picture", image, step, max_outputs=2)
        tf.summary.text("note", ["a", "b"], step)
        tf.summary.audio("clip", np.zeros((1, 100, 1), np.float32), 8000, step)
        tf.summary.write("own", tf.constant([1, 2, step]), step, tf.compat.v1.SummaryMetadata(
            plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="own"), data_class=2))
    tf.summary.graph(tf.function(lambda x: x + 1).get_concrete_function(tf.constant(1.0)).graph)
v1 = tf.compat.v1
with tf.Graph().as_default():
    writer = v1.summary.FileWriter(top + "/tf1")
for step in range(3):
    with tf.Graph().as_default(), v1.Session() as session:
        v1.summary.scalar("loss", float(step)), v1.summary.histogram("weights", [1.0, 2.0, step])
        v1.summary.image("picture", image), v1.summary.audio("clip", np.zeros((1, 100, 1), np.float32), 8000)
        writer.add_summary(session.run(v1.summary.merge_all()), step)
        writer.add_graph(session.graph)
writer.close()
"""

TORCH = """
import sys, numpy as np, importlib
for module in ("torch.utils.tensorboard", "tensorboardX"):
    with importlib.import_module(module).SummaryWriter(sys.argv[1] + "/" + module) as writer:
        for step in range(3):
            writer.add_scalar("loss", 1 / (step + 1), step)
            writer.add_histogram("weights", np.arange(10.0) * step, step)
            writer.add_image("picture", np.full((3, 4, 4), step, np.uint8), step)
            writer.add_text("note", "a **b**", step)
            writer.add_pr_curve("curve", np.array([0, 1, 1]), np.array([0.1, 0.9, 0.4]), step)
        writer.add_hparams({"lr": 0.1}, {"best": 0.5})
        writer.add_custom_scalars({"all": {"losses": ["Multiline", ["loss"]]}})
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """A log of each of the writers, served by both."""
    top = tmp_path_factory.mktemp("writers")
    for modules, script in ((["tensorflow"], TF), (["torch", "tensorboardX"], TORCH)):
        for module in modules:
            if importlib.util.find_spec(module) is None:  # importing it here takes seconds
                pytest.skip(f"{module} is not installed")
        run = subprocess.run([sys.executable, "-c", script, top / "log"], capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    places = {name: top / name for name in ("ours", "stock")}
    for place in places.values():
        place.mkdir()
    with DataServer(top / "log", places["ours"]) as ours, DataServer(
            top / "log", places["stock"], program=tensorboard_data_server.server_binary()) as stock:
        for server in (ours, stock):
            server.until(lambda: len(server.read("BlobSequences", "graphs", verb="List")) == 2 and len(server.runs()) == 6
                         and len(server.plugins()) == 10, lambda: f"{server.runs()} {server.plugins()}")
        yield ours, stock


def listed(server, kind, plugin):
    """The metadata of all series; of the blobs' keys only how many there are counts."""
    found = server.read(kind, plugin, verb="List")
    for metadata in found.values():
        if plugin == "audio":
            metadata.summary_metadata.plugin_data.ClearField("content")
    return {name: metadata.SerializeToString(deterministic=True) for name, metadata in found.items()}


def read(server, kind, plugin):
    """The points of all series; of histograms what is in their buckets, without empty ones at the ends."""
    tensor_util, found = pytest.importorskip("tensorboard.util.tensor_util"), server.read(kind, plugin)
    if plugin != "histograms":
        return {name: data.SerializeToString(deterministic=True) for name, data in found.items()}
    return {name: [(step, wall, np.trim_zeros(tensor_util.make_ndarray(value)[:, 2]).tolist())
                   for step, wall, value in zip(data.step, data.wall_time, data.value)] for name, data in found.items()}


def blobs(server, plugin):
    """{series: [(step, wall time, [bytes])]}."""
    pb = pytest.importorskip("tensorboard.data.proto.data_provider_pb2")

    def whole(reference):
        parts = server.stream("ReadBlob", pb.ReadBlobRequest(blob_key=reference.blob_key).SerializeToString())
        return b"".join(pb.ReadBlobResponse.FromString(part).data for part in parts)

    return {name: [(step, wall, [whole(reference) for reference in values.blob_refs])
                   for step, wall, values in zip(data.step, data.wall_time, data.values)]
            for name, data in server.read("BlobSequences", plugin).items()}


def test_every_answer_is_the_stock_servers(servers):
    ours, stock = servers
    assert set(ours.runs()) == set(stock.runs())
    assert ours.plugins() == stock.plugins()
    compared = 0
    for plugin in sorted(stock.plugins()):
        for kind in ("Scalars", "Tensors", "BlobSequences"):
            assert listed(ours, kind, plugin) == listed(stock, kind, plugin), (kind, plugin)
        for kind in ("Scalars", "Tensors"):
            points = read(ours, kind, plugin)
            assert points == read(stock, kind, plugin), (kind, plugin)
            compared += len(points)
        found = blobs(ours, plugin)
        assert found == blobs(stock, plugin), plugin
        compared += len(found)
    assert compared > 25
