"""Every kind of value written by the C library, read by TensorBoard's plugins over both of its loaders."""
import io
import json
import re
import wave

import pytest

import kinds_log
from tensorboard_server import TensorBoard

np = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")

RUN, W = "kinds", 1700000000.0


def number(i):
    """The numbers that the helper writes."""
    return (i * 7919 % 4001 - 2000) / 2048


def numbers(n, first=0, scale=1, dtype=np.float64):
    return (np.array([number(i + first) for i in range(n)]) * scale).astype(dtype)


@pytest.fixture(scope="module")
def values(kinds):
    """tag -> [(step, Summary.Value)] of the run, as they lie in the file; and the other events."""
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    series, others = {}, []
    for event in loader.RawEventFileLoader(str(next((kinds / RUN).iterdir()))).Load():
        from tensorboard.compat.proto import event_pb2
        event = event_pb2.Event.FromString(event)
        if not event.summary.value:
            others.append(event)
        for value in event.summary.value:
            series.setdefault(value.tag, []).append((event.step, event.wall_time, value))
    return series, others


@pytest.fixture(scope="module", params=["fast", "python"])
def board(request, kinds, tmp_path_factory):
    with TensorBoard(kinds, tmp_path_factory.mktemp("board") / "output", loader=request.param) as tensorboard:
        # The last thing written is the second trial: with it everything is there.
        tensorboard.until("scalars/tags", lambda tags: all("loss" in tags.get(run, {}) for run in ("trial-1", RUN)))
        yield tensorboard


def array(value):
    tensor_util = pytest.importorskip("tensorboard.util.tensor_util")
    return tensor_util.make_ndarray(value.tensor)


def tensorflow_histogram(data):
    """TensorFlow's default limits, gathered one value at a time, as rows without the empty ends."""
    p, positive = 1e-12, []
    while p < 1e20:
        positive.append(p)
        p *= 1.1
    top = np.finfo(float).max
    limits = [-top] + [-x for x in reversed(positive)] + [0.0] + positive + [top]
    counts = np.bincount(np.searchsorted(limits, data, side="right"), minlength=len(limits))
    buckets, i = [], 0
    while i < len(limits):  # runs of empty buckets become one
        end = i
        while counts[i] == 0 and end + 1 < len(limits) and counts[end + 1] == 0:
            end += 1
        buckets.append((limits[end], counts[i]))
        i = end + 1
    while buckets and not buckets[0][1]:
        buckets.pop(0)
    while buckets and not buckets[-1][1]:
        buckets.pop()
    rows = [[0.0, limit, float(count)] for limit, count in buckets]
    for i, row in enumerate(rows):
        row[0] = min(data) if i == 0 else rows[i - 1][1]
    rows[-1][1] = max(data)
    return rows


def test_histogram_rows(values):
    pb = pytest.importorskip("tensorboard.plugins.histogram.summary_v2").histogram_pb
    series, _ = values
    for i in range(3):
        step, wall, value = series["histogram/default"][i]
        assert (step, wall) == (i, W + i / 4)
        assert array(value).tolist() == tensorflow_histogram(numbers(1000, i, 1, np.float32).astype(float))
        assert array(value)[:, 2].sum() == 1000
        want = pb("histogram/equal", numbers(1000, i, 3)).value[0]
        got = series["histogram/equal"][i][2]
        assert got.tensor == want.tensor and got.metadata == want.metadata
        assert array(series["histogram/own"][i][2]).tolist() == [[-1, 0, 2], [0, 0.5, 0], [0.5, 4, 5]]
    assert series["histogram/same"][0][2].tensor == pb("x", [2.5] * 3).value[0].tensor
    assert series["histogram/none"][0][2].tensor == pb("x", []).value[0].tensor
    assert array(series["histogram/empty"][0][2]).shape == (0, 3)


def test_metadata(values):
    """Every value that is no simple_value says what it is, for readers that remember nothing: aim's importer tracks the
    bare array of a value without plugin, and aborts. Name and description stand with the first one of a file only."""
    series, _ = values
    several = 0
    for tag, points in series.items():
        if points[0][2].HasField("simple_value"):
            continue
        first = points[0][2].metadata
        assert first.plugin_data.plugin_name, tag
        for _, _, value in points[1:]:
            several += 1
            assert value.metadata.plugin_data == first.plugin_data and value.metadata.data_class == first.data_class, tag
            assert not value.metadata.display_name and not value.metadata.summary_description, tag
    assert several > 10
    first = series["text/one"][0][2].metadata
    assert (first.display_name, first.summary_description) == ("Größe", "*how* much")


def test_wandb_reads_every_value(kinds):
    """What `wandb sync` makes of the events: no bare array, and as many of each kind as there are in the log."""
    pytest.importorskip("wandb")
    log = pytest.importorskip("wandb.integration.tensorboard.log")
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    from tensorboard.compat.proto import event_pb2
    found = []
    for raw in loader.RawEventFileLoader(str(next((kinds / RUN).iterdir()))).Load():
        values = log.tf_summary_to_dict(event_pb2.Event.FromString(raw)) or {}
        found += [(tag, type(value).__name__) for tag, value in values.items() if tag not in ("global_step", "_timestamp")]
    assert {kind for _, kind in found} == {"float", "list", "Histogram", "CustomChart"}
    assert found.count(("histogram/default", "Histogram")) == 3
    assert found.count(("image_rgb", "list")) == 2 and found.count(("pr/plain", "CustomChart")) == 2


def test_tensors(values):
    series, _ = values
    raw = bytes((i * 5 + 1) % 256 for i in range(96))
    for name in ("uint8 int8 int16 uint16 int32 uint32 int64 uint64 float32 float64 float16 complex64 "
                 "complex128").split():
        value = series["tensor/" + name][0][2]
        want = np.frombuffer(raw[:6 * np.dtype(name).itemsize], dtype=name).reshape(2, 3)
        got = array(value)
        assert got.dtype == want.dtype and got.shape == want.shape and got.tobytes() == want.tobytes(), name
        assert (value.metadata.plugin_data.plugin_name, value.metadata.data_class) == ("tensors", 2)
    assert array(series["tensor/bool"][0][2]).tolist() == [[True, False, False], [True, True, True]]
    assert array(series["tensor/none"][0][2]).shape == (4, 0)
    assert array(series["tensor/number"][0][2]).item() == 0.1 and array(series["tensor/number"][0][2]).shape == ()
    assert array(series["tensor/single"][0][2]).tolist() == [0.1]


def test_tensors_through_the_data_provider(kinds):
    multiplexer = pytest.importorskip("tensorboard.backend.event_processing.plugin_event_multiplexer")
    provider = pytest.importorskip("tensorboard.backend.event_processing.data_provider")
    base = pytest.importorskip("tensorboard.data.provider")
    context = pytest.importorskip("tensorboard.context").RequestContext()
    m = multiplexer.EventMultiplexer()
    m.AddRunsFromDirectory(str(kinds))
    m.Reload()
    p = provider.MultiplexerDataProvider(m, str(kinds))
    listed = p.list_tensors(context, experiment_id="x", plugin_name="tensors")[RUN]
    assert len(listed) == 17 and listed["tensor/int8"].display_name == "Größe"
    read = p.read_tensors(context, experiment_id="x", plugin_name="tensors", downsample=10,
                          run_tag_filter=base.RunTagFilter(runs=[RUN]))[RUN]
    assert read["tensor/uint16"][0].numpy.tolist() == [[0x0601, 0x100b, 0x1a15], [0x241f, 0x2e29, 0x3833]]


def test_histograms(board, values):
    series, _ = values
    tags = board.get("histograms/tags")[RUN]
    assert {t for t in tags} == {t for t in series if t.startswith("histogram/")}
    assert tags["histogram/default"] == {"displayName": "Größe", "description": "<p><em>how</em> much</p>"}
    for tag in tags:
        got = board.get("histograms/histograms", run=RUN, tag=tag)
        assert [[w, s, rows] for w, s, rows in got] == [[w, s, array(v).tolist()] for s, w, v in series[tag]]
        assert board.get("distributions/distributions", run=RUN, tag=tag)[0][1] == 0


def test_texts(board):
    assert sorted(board.get("text/tags")[RUN]) == ["text/list", "text/one", "text/table"]
    one = board.get("text/text", run=RUN, tag="text/one", markdown="true")
    assert [(e["step"], e["wall_time"], e["text"]) for e in one] == [(0, W, "<p><em>hello</em> wörld</p>"),
                                                                     (1, W + 0.25, "")]
    table = board.get("text/text", run=RUN, tag="text/table", markdown="true")[0]["text"]
    cells = re.findall(r"<td>(.*?)</td>", table.replace("\n", ""))
    assert cells == ["<p>a</p>", "<p><strong>b</strong></p>", "", "<p>größe</p>", "<p>e</p>", "<p>f</p>"]
    assert table.count("<tr>") == 3
    assert board.get("text/text", run=RUN, tag="text/list", markdown="true")[0]["text"].count("<tr>") == 6


def pictures(board, tag, sample=0):
    for entry in board.get("images/images", run=RUN, tag=tag, sample=sample):
        yield entry["step"], *board.raw("images/individualImage?" + entry["query"])


def test_images(board):
    Image = pytest.importorskip("PIL.Image")
    tags = board.get("images/tags")[RUN]
    assert tags["image/grey"] == {"displayName": "Größe", "description": "<p><em>how</em> much</p>", "samples": 2}
    pixels = (np.arange(2 * 5 * 7 * 4) * 37 % 256).astype(np.uint8)
    for channels, (name, mode) in enumerate([("grey", "L"), ("grey alpha", "LA"), ("rgb", "RGB"), ("rgba", "RGBA")], 1):
        for sample in range(2):
            step, data, kind = next(pictures(board, "image/" + name, sample))
            picture = Image.open(io.BytesIO(data))
            want = pixels[:2 * 35 * channels].reshape(2, 5, 7, channels)[sample]
            assert (step, kind, picture.mode, picture.size) == (0, "image/png", mode, (7, 5))
            assert np.array(picture).reshape(5, 7, channels).tolist() == want.tolist()
    assert [s for s, _, _ in pictures(board, "image/rgb")] == [0, 1]
    assert [s for s, _, _ in pictures(board, "image/rgb", 1)] == [0]
    data = next(pictures(board, "image/floats"))[1]
    want = np.clip(numbers(105, 0, 1, np.float32) * np.float32(1.25) * np.float32(255.5), 0, 255).astype(np.uint8)
    assert np.array(Image.open(io.BytesIO(data))).ravel().tolist() == want.tolist()
    assert next(pictures(board, "image/gif", 1))[1:] == (kinds_log.GIF, "image/gif")
    noise, x = [], 1
    for _ in range(1000):
        x = (x * 1664525 + 1013904223) % 2**32
        noise.append(x >> 24)
    data = next(pictures(board, "image/large"))[1]
    assert len(data) > 3000000 and np.array(Image.open(io.BytesIO(data))).ravel()[:1000].tolist() == noise


def test_image_sizes_are_told(values):
    series, _ = values
    assert list(series["image/rgb"][0][2].tensor.string_val)[:2] == [b"7", b"5"]
    assert list(series["image/gif"][0][2].tensor.string_val) == [b"3", b"2", kinds_log.GIF, kinds_log.GIF]


def test_audio(board):
    tags = board.get("audio/tags")[RUN]
    assert (tags["audio/stereo"]["displayName"], tags["audio/stereo"]["samples"]) == ("Größe", 2)
    samples = numbers(1600, 0, 1, np.float32) * np.float32(1.25)
    want = np.clip(np.trunc(samples.astype(float) * 32768 + np.copysign(0.5, samples)), -32768, 32767).astype("<i2")
    for sample in range(2):
        entries = board.get("audio/audio", run=RUN, tag="audio/stereo", sample=sample)
        assert [(e["step"], e["contentType"]) for e in entries] == [(0, "audio/wav"), (1, "audio/wav")]
        for entry in entries:
            data, kind = board.raw("audio/individualAudio?" + entry["query"])
            with wave.open(io.BytesIO(data)) as w:
                assert (kind, w.getnchannels(), w.getsampwidth(), w.getframerate(), w.getnframes()) == (
                    "audio/wav", 2, 2, 8000, 400)
                assert w.readframes(400) == want[sample * 800:sample * 800 + 800].tobytes()
    entry = board.get("audio/audio", run=RUN, tag="audio/file", sample=0)[0]
    assert board.raw("audio/individualAudio?" + entry["query"])[0] == kinds_log.wav()


def test_encodings_equal_tensorflows(values):
    """The same tensors as TensorBoard's own builders make with TensorFlow."""
    tf = pytest.importorskip("tensorflow")
    pr = pytest.importorskip("tensorboard.plugins.pr_curve.summary")
    audio = pytest.importorskip("tensorboard.plugins.audio.summary")
    text = pytest.importorskip("tensorboard.plugins.text.summary")
    series, _ = values

    def same(tag, summary):
        got, want = series[tag][0][2], summary.value[0]
        assert array(got).tolist() == tf.make_ndarray(want.tensor).tolist(), tag
        assert got.metadata.plugin_data.SerializeToString() == want.metadata.plugin_data.SerializeToString(), tag

    labels = np.array([number(i + 100) + number(i) > 0 for i in range(500)])
    predictions = np.array([(number(i) + 1) / 2 for i in range(500)], dtype=np.float32)
    predictions = np.clip(predictions, 0, 1)
    same("pr/weights", pr.pb("x", labels, predictions, 11, np.array([i % 4 / 2 for i in range(500)])))
    same("audio/stereo", audio.pb("x", (numbers(1600, 0, 1, np.float32) * np.float32(1.25)).reshape(2, 400, 2), 8000))
    same("text/one", text.pb("x", "*hello* wörld"))
    same("text/table", text.pb("x", np.array([["a", "**b**"], ["", "größe"], ["e", "f"]])))
    got, want = series["pr/plain"][0][2], pr.pb("x", labels, predictions, 201).value[0]
    assert array(got).tolist() == tf.make_ndarray(want.tensor).tolist()


def test_pr_curves(board, values):
    series, _ = values
    assert board.get("pr_curves/tags")[RUN]["pr/weights"] == {"displayName": "PR",
                                                              "description": "<p><em>curve</em></p>"}
    for tag in ("pr/plain", "pr/weights", "pr/counts"):
        entries = board.get("pr_curves/pr_curves", run=RUN, tag=tag)[RUN]
        assert [e["step"] for e in entries] == [s for s, _, _ in series[tag]]
        for entry, (_, wall, value) in zip(entries, series[tag]):
            rows, n = array(value), len(entry["precision"])
            assert entry["wall_time"] == wall and n > 3
            assert entry["precision"] == rows[4, :n].tolist() and entry["recall"] == rows[5, :n].tolist()
            assert entry["true_positives"] == rows[0, :n].astype(int).tolist()
    counts = board.get("pr_curves/pr_curves", run=RUN, tag="pr/counts")[RUN][0]
    assert counts["false_negatives"] == [0, 11, 54, 70] and counts["false_positives"] == [150, 105, 18, 0]
    assert np.allclose(counts["precision"], [75 / 225, 64 / 169, 21 / 39, 1])
    assert np.allclose(counts["recall"], [1, 64 / 75, 21 / 75, 5 / 75])


def test_meshes(board):
    assert board.get("mesh/tags")[RUN] == {"mesh/faces": {"samples": 2}, "mesh/points": {"samples": 1}}
    parts = board.get("mesh/meshes", run=RUN, tag="mesh/faces", sample=1)
    assert sorted((p["step"], p["content_type"], tuple(p["data_shape"]), p["components"]) for p in parts) == [
        (s, c, (2, 2 if c == 2 else 4, 3), 14) for s in range(2) for c in (1, 2, 3)]
    vertices, colors = numbers(24, 0, 1, np.float32), (np.arange(24) * 11).astype(np.uint8)
    for kind, dtype, want in (("VERTEX", np.float32, vertices[12:]), ("COLOR", np.uint8, colors[12:]),
                              ("FACE", np.int32, [3, 2, 1, 0, 1, 3])):
        data, _ = board.raw("mesh/data", run=RUN, tag="mesh/faces", sample=1, content_type=kind, step=1)
        assert np.frombuffer(data, dtype).ravel().tolist() == list(want), kind
    points, = board.get("mesh/meshes", run=RUN, tag="mesh/points", sample=0)
    assert (points["components"], points["config"], points["data_shape"]) == (2, '{"a": 1}', [1, 8, 3])


def test_mesh_metadata_equals_tensorboards_own(values):
    metadata = pytest.importorskip("tensorboard.plugins.mesh.metadata")
    series, _ = values
    for part, (name, length) in enumerate([("VERTEX", 4), ("FACE", 2), ("COLOR", 4)], 1):
        assert series["mesh/faces_" + name][0][2].metadata == metadata.create_summary_metadata(
            "mesh/faces", "Größe", part, 14, [2, length, 3], "*how* much", json_config="{}")


def ask_hparams(board, route, request):
    return board.get("hparams/" + route, request=json.dumps(request))


def test_hparams(board):
    experiment = ask_hparams(board, "experiment", {"experimentName": ""})
    assert (experiment["name"], experiment["description"], experiment["user"], experiment["timeCreatedSecs"]) == (
        "search", "over rates", "größe", W)
    augment, optimizer, rate = sorted(experiment["hparamInfos"], key=lambda info: info["name"])
    assert (optimizer["name"], optimizer["displayName"], optimizer["type"], optimizer["domainDiscrete"]) == (
        "optimizer", "Optimierer", "DATA_TYPE_STRING", ["sgd", "adam"])
    assert rate["domainInterval"]["maxValue"] == 0.5 and augment["type"] == "DATA_TYPE_BOOL"
    loss, accuracy = experiment["metricInfos"]
    assert (loss["name"], loss["displayName"]) == ({"group": "", "tag": "loss"}, "Loss")
    assert (accuracy["name"], accuracy["datasetType"]) == ({"group": "eval", "tag": "acc"}, "DATASET_VALIDATION")
    groups = ask_hparams(board, "session_groups", {
        "experimentName": "", "allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE"],
        "colParams": [{"metric": {"group": "", "tag": "loss"}, "order": "ORDER_DESC"}], "startIndex": 0,
        "sliceSize": 10})["sessionGroups"]
    got = {g["name"]: (g["hparams"], g["sessions"][0]) for g in groups}
    assert {name: hparams for name, (hparams, _) in got.items()} == {
        "trial-0": {"optimizer": "sgd", "rate": 0.0, "augment": False},
        "second": {"optimizer": "adam", "rate": 0.25, "augment": True}}
    session = got["second"][1]
    assert (session["name"], session["status"], session["modelUri"]) == ("trial-1", "STATUS_FAILURE", "file:model")
    assert (session["startTimeSecs"], session["endTimeSecs"]) == (W + 0.25, W + 0.75)
    assert session["metricValues"][0]["value"] == 0.5 and session["metricValues"][0]["trainingStep"] == 2


def test_custom_scalars(board):
    layout = board.get("custom_scalars/layout")
    assert [(c["title"], c.get("closed", False)) for c in layout["category"]] == [("first", False), ("zwölf", True)]
    both, band = layout["category"][0]["chart"]
    assert both["multiline"]["tag"] == ["loss", "acc.*"]
    assert band["margin"]["series"] == [{"value": "loss", "lower": "loss/low", "upper": "loss/high"}]
    got = board.get("custom_scalars/scalars", run=RUN, tag="acc.*")
    assert got["regex_valid"] and [p[1] for p in got["tag_to_events"]["accuracy"]] == [0, 1, 2]


def test_graph(board):
    info = board.get("graphs/info")[RUN]
    assert info["run_graph"] and info["tags"]["step 1"]["profile"]
    text = board.raw("graphs/graph", run=RUN, limit_attr_size=1024, large_attrs_key="_too_large_attrs")[0].decode()
    graph_pb2 = pytest.importorskip("tensorboard.compat.proto.graph_pb2")
    graph = pytest.importorskip("google.protobuf.text_format").Parse(text, graph_pb2.GraphDef())
    assert [(n.name, n.op, list(n.input), n.device) for n in graph.node] == [
        ("block/a", "Placeholder", [], ""), ("block/b", "Relu", ["block/a"], "/CPU:0"),
        ("sum", "AddN", ["block/a", "block/b", "^block/b"], "")]
    shape = graph.node[0].attr["_output_shapes"].list.shape[0]
    assert [d.size for d in shape.dim] == [-1, 28, 28, 1] and graph.versions.producer == 22
    metadata = board.raw("graphs/run_metadata", run=RUN, tag="step 1")[0].decode()
    assert 'node_name: "sum"' in metadata and "all_start_micros: 5" in metadata
