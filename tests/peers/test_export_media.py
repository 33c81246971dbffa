"""Files and histograms that `eventlog export` takes out of a log, against TensorBoard's own reading of them."""
import csv
import io
import os
import pathlib
import subprocess

import pytest

from kinds_log import GIF

np = pytest.importorskip("numpy")
pytest.importorskip("tensorboard")
from tensorboard.backend.event_processing import event_accumulator, event_file_loader  # noqa: E402
from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2  # noqa: E402
from tensorboard.summary.writer import event_file_writer  # noqa: E402
from tensorboard.util import tensor_util  # noqa: E402

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"


def run(*arguments, status=0):
    done = subprocess.run([TOOL, *arguments], capture_output=True)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def rows(*arguments, status=0):
    return list(csv.DictReader(io.StringIO(run("export", *arguments, status=status))))


class Log:
    """Event files by TensorBoard's own writer."""

    def __init__(self, path):
        self.path, self.writers = path, {}

    def add(self, value, step=0, run="r"):
        if run not in self.writers:
            self.writers[run] = event_file_writer.EventFileWriter(str(self.path / run))
        self.writers[run].add_event(event_pb2.Event(wall_time=1700000000 + step, step=step,
                                                    summary=summary_pb2.Summary(value=[value])))

    def close(self):
        for writer in self.writers.values():
            writer.close()
        return self.path


def value(tag, plugin, array, dtype=None):
    metadata = summary_pb2.SummaryMetadata(plugin_data=summary_pb2.SummaryMetadata.PluginData(plugin_name=plugin))
    tensor = tensor_pb2.TensorProto()  # by its bytes: with TensorFlow there the function makes TensorFlow's message
    tensor.ParseFromString(tensor_util.make_tensor_proto(array, dtype=dtype).SerializeToString())
    return summary_pb2.Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def test_every_kind(kinds, tmp_path):
    listed = rows(kinds, "--media", tmp_path / "m")
    files = {str(p.relative_to(tmp_path / "m")) for p in (tmp_path / "m").rglob("*") if p.is_file()}
    assert files == {r["file"] for r in listed} and len(files) == len(listed)
    seen = {}
    loader = event_file_loader.RawEventFileLoader(str(next((kinds / "kinds").iterdir())))
    for event in map(event_pb2.Event.FromString, loader.Load()):
        for v in event.summary.value:
            plugin = v.metadata.plugin_data.plugin_name or seen.get(v.tag)
            seen[v.tag] = plugin
            mine = [r for r in listed if r["tag"] == v.tag and int(r["step"]) == event.step]
            contents = [(tmp_path / "m" / r["file"]).read_bytes() for r in mine]
            assert all(float(r["wall_time"]) == event.wall_time and r["run"] == "kinds" for r in mine)
            assert [r["index"] for r in mine] == [str(i) for i in range(len(mine))]
            if plugin == "images":
                assert contents == list(v.tensor.string_val)[2:]
                assert all(r["file"].endswith(".gif" if "gif" in v.tag else ".png") for r in mine)
            elif plugin == "audio":
                assert contents == list(v.tensor.string_val)[::2] and mine[0]["file"].endswith(".wav")
            elif plugin == "text":
                strings = [s.decode() for s in v.tensor.string_val]
                if v.tag == "text/table":
                    assert contents[0].decode() == "\n".join("\t".join(strings[i:i + 2]) for i in (0, 2, 4))
                else:
                    assert contents[0].decode() == "\n".join(strings)
                assert mine[0]["file"].endswith(".md" if len(strings) == 1 else ".txt")
            elif plugin in ("scalars", "histograms", "hparams", "custom_scalars"):
                assert not mine
            elif v.WhichOneof("value") == "tensor":
                array, theirs = np.load(tmp_path / "m" / mine[0]["file"]), tensor_util.make_ndarray(v.tensor)
                assert array.dtype == theirs.dtype and array.shape == theirs.shape
                assert array.tobytes() == theirs.tobytes()
    assert {r["kind"] for r in listed} == {"images", "audio", "text", "tensors"}


def test_payloads_of_other_plugins(tmp_path):
    """Byte for byte, in the order of the tensor; their numbers are arrays, as ever."""
    log = Log(tmp_path / "log")
    payloads = [b"\x89PNG\r\n\x1a\n rest", b"", b"{\"a\": 1}", b"\x00\xff\x00"]
    log.add(value("volume", "tensorboard_plugin_3d", payloads[0]), 1)
    log.add(value("volume", "tensorboard_plugin_3d", payloads), 2)
    log.add(value("flight", "flight/analysis", [[b"a", b"b"], [b"c", b"d"]]))
    log.add(value("numbers", "tensorboard_plugin_3d", np.arange(6.0).reshape(2, 3)))
    log.add(value("layout", "custom_scalars", b"TensorBoard's own"))
    log.close()
    listed = rows(tmp_path / "log", "--media", tmp_path / "m")
    assert [(r["tag"], r["step"], r["index"], r["kind"], r["file"]) for r in listed] == [
        ("volume", "1", "0", "payloads", "r/volume/1/0.png"), *(
            ("volume", "2", str(i), "payloads", f"r/volume/2/{i}{end}") for i, end in enumerate((".png", ".bin", ".bin", ".bin"))),
        *(("flight", "0", str(i), "payloads", f"r/flight/0/{i}.bin") for i in range(4)),
        ("numbers", "0", "0", "tensors", "r/numbers/0/0.npy")]
    contents = [(tmp_path / "m" / r["file"]).read_bytes() for r in listed]
    assert contents[:-1] == [payloads[0], *payloads, b"a", b"b", b"c", b"d"]
    assert (np.load(tmp_path / "m/r/numbers/0/0.npy") == np.arange(6.0).reshape(2, 3)).all()
    assert {r["kind"] for r in rows(tmp_path / "log", "--media", tmp_path / "n", "--kinds=payloads")} == {"payloads"}


def test_options(kinds, tmp_path):
    assert {r["kind"] for r in rows(kinds, "--media", tmp_path / "a", "--kinds=text,audio")} == {"text", "audio"}
    assert [r["file"] for r in rows(kinds, "--media", tmp_path / "b", "--tag=text/one", "--from-step=1")] == [
        "kinds/text_one/1/0.md"]
    again = subprocess.run([TOOL, "export", kinds, "--media", tmp_path / "b", "--tag=text/one"], capture_output=True,
                           text=True)
    assert again.returncode == 2 and "-f" in again.stderr
    assert len(rows(kinds, "-f", "--media", tmp_path / "b", "--tag=text/one")) == 2
    run("export", kinds, "--media", tmp_path / "c", "-o", tmp_path / "list.csv", "--kinds=images")
    assert (tmp_path / "list.csv").read_text().startswith("run,tag,step,index,kind,file,wall_time\n")
    assert run("export", kinds, "--media", tmp_path / "d", "--tag=none", status=1).count("\n") == 1
    for bad in ["--kinds=pictures"], ["--format=csv"], ["--view=tensorboard"], ["--order=file"]:
        done = subprocess.run([TOOL, "export", kinds, "--media", tmp_path / "e", *bad], capture_output=True)
        assert done.returncode == 2
    assert subprocess.run([TOOL, "export", kinds, "--kinds=text"], capture_output=True).returncode == 2


def test_older_values_and_restarts(tmp_path):
    log = Log(tmp_path / "log")
    for step, content in (1, GIF), (2, b"\xff\xd8\xff..."), (2, b"BM...."), (2, b"?"):
        log.add(summary_pb2.Summary.Value(tag="i", image=summary_pb2.Summary.Image(
            height=1, width=1, encoded_image_string=content)), step)
    log.add(summary_pb2.Summary.Value(tag="a", audio=summary_pb2.Summary.Audio(
        encoded_audio_string=b"RIFF....WAVE", content_type="audio/wav")))
    log.add(value("t", "text", ["one"]))
    log.add(value("u", "text", 3.0))
    log.add(value("one per all", "mine", np.full((2, 3), 7, np.int32)))
    log.close()
    done = subprocess.run([TOOL, "export", log.path, "--media", tmp_path / "m"], capture_output=True, text=True)
    assert done.returncode == 0 and "skipped 1 values that are not of the kind that their plugin expects" in done.stderr
    names = [r["file"] for r in csv.DictReader(io.StringIO(done.stdout))]
    assert names == ["r/i/1/0.gif", "r/i/2/0.jpg", "r/i/2-2/0.bmp", "r/i/2-3/0.bin", "r/a/0/0.wav", "r/t/0/0.md",
                     "r/one_per_all/0/0.npy"]
    assert np.load(tmp_path / "m/r/one_per_all/0/0.npy").tolist() == [[7] * 3] * 2


def test_nothing_outside(tmp_path):
    """Names that would lead elsewhere, fall together, or are too long; links in the way."""
    log = Log(tmp_path / "log")
    tags = ["../../../out", "/etc/out", ".", "..", ".hidden", "", "a/b", "a_b", "a b", "a_b-2", "x" * 300, "x" * 301,
            "größe", "line\nend", 'quo"te,']
    for tag in tags:
        log.add(value(tag, "text", tag))
    log.close()
    listed = rows(log.path, "--media", tmp_path / "in/m")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in", "log"] and os.listdir(tmp_path / "in") == ["m"]
    parts = [r["file"].split("/") for r in listed]
    assert all(len(p) == 4 and not any(x.startswith(".") or len(x) > 220 for x in p) for p in parts)
    assert len({p[1] for p in parts}) == len(tags) == len(listed)
    for row in listed:
        assert (tmp_path / "in/m" / row["file"]).read_text() == row["tag"]
    (tmp_path / "elsewhere").mkdir()
    for link in ("l1",), ("l2", "r"), ("l3", "r", "a_b"):
        (tmp_path / link[0]).mkdir()
        place = tmp_path.joinpath(*link)
        if len(link) > 1:
            place.parent.mkdir(exist_ok=True)
            place.symlink_to(tmp_path / "elsewhere")
            done = subprocess.run([TOOL, "export", log.path, "-f", "--tag=a/b", "--media", tmp_path / link[0]],
                                  capture_output=True)
            assert done.returncode == 2
    (tmp_path / "l1/r/a_b/0").mkdir(parents=True)
    (tmp_path / "l1/r/a_b/0/0.md").symlink_to(tmp_path / "elsewhere/file")
    (tmp_path / "elsewhere/file").write_text("mine")
    assert rows(log.path, "-f", "--tag=a/b", "--media", tmp_path / "l1")
    assert os.listdir(tmp_path / "elsewhere") == ["file"] and (tmp_path / "elsewhere/file").read_text() == "mine"
    assert (tmp_path / "l1/r/a_b/0/0.md").read_text() == "a/b"


def legacy_rows(h):
    """An old histogram as rows, in doubles, as TensorBoard's migration makes them: without its empty outer buckets."""
    full = [i for i, count in enumerate(h.bucket) if count > 0]
    if not full:
        return np.zeros((0, 3))
    inner = list(h.bucket_limit[full[0]:full[-1]])
    return np.array([[h.min, *inner], [*inner, h.max], h.bucket[full[0]:full[-1] + 1]]).T


def accumulated(path):
    loaded = event_accumulator.EventAccumulator(str(path), size_guidance={"tensors": 0, "histograms": 0}).Reload()
    found = {tag: [(e.step, e.wall_time, legacy_rows(e.histogram_value)) for e in loaded.Histograms(tag)]
             for tag in loaded.Tags()["histograms"]}
    for tag in loaded.Tags()["tensors"]:
        if loaded.SummaryMetadata(tag).plugin_data.plugin_name == "histograms":
            found[tag] = [(e.step, e.wall_time, tensor_util.make_ndarray(e.tensor_proto)) for e in loaded.Tensors(tag)]
    return found


def histograms(path):
    found = {}
    for r in rows(path, "--format=histograms", "--order=file"):
        point = found.setdefault(r["tag"], {}).setdefault((int(r["step"]), float(r["wall_time"])), [])
        point.append([float(r["left"]), float(r["right"]), float(r["count"])])
    return found


def test_histograms_of_both_generations(tmp_path, kinds):
    log = Log(tmp_path / "log")
    rng = np.random.default_rng(5)
    for step in range(4):
        edges = np.sort(rng.normal(size=21))
        counts = rng.integers(0, 3, 20).astype(float)
        log.add(summary_pb2.Summary.Value(tag="old", histo=summary_pb2.HistogramProto(
            min=edges[0] - 1, max=edges[-1] + 1, num=counts.sum(), sum=1, sum_squares=1,
            bucket_limit=edges[1:].tolist(), bucket=counts.tolist())), step)
        rows_new = np.stack([edges[:-1], edges[1:], counts], axis=1)
        log.add(value("new", "histograms", rows_new, np.float64), step)
        log.add(value("single", "histograms", rows_new.astype(np.float32), np.float32), step)
    log.add(summary_pb2.Summary.Value(tag="nothing", histo=summary_pb2.HistogramProto(
        bucket_limit=[1, 2], bucket=[0, 0])))
    log.add(value("flat", "histograms", np.ones((2, 2))))
    log.close()
    for path in log.path / "r", kinds / "kinds":
        ours, theirs = histograms(path), accumulated(path)
        theirs.pop("flat", None)
        for tag, points in theirs.items():
            for step, wall_time, array in points:
                mine = np.array(ours.get(tag, {}).get((step, wall_time), np.zeros((0, 3))))
                assert mine.tolist() == array.astype(float).tolist(), tag
        assert set(ours) == {tag for tag, points in theirs.items() if any(len(a) for _, _, a in points)}
    # And as the migration itself makes them, which keeps them as float32.
    (file,), migrated = (log.path / "r").iterdir(), 0
    for event in event_file_loader.EventFileLoader(str(file)).Load():
        for v in event.summary.value:
            if v.tag == "old":
                mine = np.array(histograms(log.path / "r")["old"][event.step, event.wall_time], np.float32)
                assert mine.tolist() == tensor_util.make_ndarray(v.tensor).tolist()
                migrated += 1
    assert migrated == 4
    sorted_rows = rows(log.path, "--format=histograms")
    keys = [(r["tag"], int(r["step"])) for r in sorted_rows]
    assert keys == sorted(keys)
    assert list(sorted_rows[0]) == ["run", "tag", "step", "left", "right", "count", "wall_time"]
    assert run("export", log.path, "--format=histograms", "--tsv", "--crlf", "--tag=new").splitlines()[0] == (
        "run\ttag\tstep\tleft\tright\tcount\twall_time")
    assert run("export", log.path, "--format=histograms", "--tag=x", status=1).count("\n") == 1
