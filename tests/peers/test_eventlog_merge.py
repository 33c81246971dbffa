"""eventlog merge: TensorBoard's default loader holds every point of the merged log, and nothing is changed on the way."""
import json
import os
import pathlib
import resource
import signal
import subprocess

import pytest

from tensorboard_server import ALL_POINTS, TensorBoard

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing import event_file_loader  # noqa: E402
from tensorboard.compat.proto import event_pb2  # noqa: E402
from tensorboard.summary.writer import record_writer  # noqa: E402

W = 1.7e9


def tool(*arguments, status=0):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == status, done.stderr + done.stdout
    return done


def merged(*arguments, **more):
    return json.loads(tool("merge", *arguments, "--json", **more).stdout)["total"]


def write(path, points, wall=W, more=()):
    """An event file: points (tag, step, value), then events."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as f:
        out = record_writer.RecordWriter(f)
        out.write(event_pb2.Event(wall_time=wall, file_version="brain.Event:2").SerializeToString())
        for i, (tag, step, value) in enumerate(points):
            event = event_pb2.Event(wall_time=wall + i + 1, step=step)
            event.summary.value.add(tag=tag, simple_value=value)
            out.write(event.SerializeToString())
        for event in more:
            out.write(event.SerializeToString())
        out.flush()
    return path


def events(directory):
    (path,) = (p for p in pathlib.Path(directory).iterdir() if "tfevents" in p.name)
    return [event_pb2.Event.FromString(e) for e in event_file_loader.RawEventFileLoader(str(path)).Load()]


def text(tag, step, what, metadata=True, wall=W):
    event = event_pb2.Event(wall_time=wall, step=step)
    value = event.summary.value.add(tag=tag)
    value.tensor.dtype = 7
    value.tensor.string_val.append(what.encode())
    if metadata:
        value.metadata.plugin_data.plugin_name = "text"
        value.metadata.summary_description = "described"
    return event


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    d = tmp_path_factory.mktemp("logs")
    a, b, c = d / "restarted", d / "interleaved", d / "many"
    write(a / "events.out.tfevents.1700000000.h.1.0", [(t, s, 100 + s) for s in range(0, 100, 10) for t in "xy"])
    write(a / "events.out.tfevents.1700000500.h.2.0", [(t, s, 200 + s) for s in range(50, 120, 10) for t in "xy"],
          W + 500)
    write(b / "events.out.tfevents.1700000000.h.1.0", [("x", s, s) for s in range(0, 20, 2)])
    write(b / "events.out.tfevents.1700000000.h.2.0", [("x", s, s) for s in range(1, 20, 2)])
    for k in range(12):  # as torch numbers its files: .10 sorts before .2
        write(c / f"events.out.tfevents.1700000000.h.1.{k}", [("x", s, s) for s in range(k * 5, k * 5 + 5)], W + 100 * k)
    merged("--keep-runs", d, "-o", d.parent / "merged")
    return d, d.parent / "merged"


@pytest.fixture(scope="module")
def held(logs):
    """run -> tag -> [(step, value)] as TensorBoard's default loader holds them."""
    with TensorBoard(logs[1], logs[0].parent / "output", ALL_POINTS) as tensorboard:
        known = tensorboard.until("scalars/tags", lambda tags: len(tags) == 3)
        yield {run: {tag: [(step, value) for step, _, value in tensorboard.points(run, tag)] for tag in known[run]}
               for run in known}


def test_the_default_loader_drops_nothing(held):
    resumed = [(s, 100.0 + s) for s in range(0, 50, 10)] + [(s, 200.0 + s) for s in range(50, 120, 10)]
    assert held["restarted"] == {"x": resumed, "y": resumed}
    assert held["interleaved"] == {"x": [(s, s) for s in range(20)]}
    assert held["many"] == {"x": [(s, s) for s in range(60)]}


def test_the_result_passes_verify_and_is_merged_already(logs, tmp_path):
    tool("verify", "--strict", logs[1])
    report = merged("--keep-runs", logs[1], "-o", tmp_path / "again")
    assert report["restarted"] == report["doubled"] == report["repeated"] == report["interleaved"] == 0
    for old in logs[1].rglob("*tfevents*"):
        assert (tmp_path / "again" / old.relative_to(logs[1])).read_bytes() == old.read_bytes()


def test_overlaps(logs, tmp_path):
    run = logs[0] / "restarted"
    want = {"last": lambda s: 200 if s >= 50 else 100, "first": lambda s: 100 if s < 100 else 200}
    for how, base in want.items():
        report = merged(run, "-o", tmp_path / how, f"--overlap={how}")
        assert [(e.step, e.summary.value[0].simple_value) for e in events(tmp_path / how)[1::2]] == [
            (s, base(s) + s) for s in range(0, 120, 10)]
        assert (report["restarted"], report["restarts"], report["dropped"]) == (10, 2, 10)
    report = merged(run, "-o", tmp_path / "keep", "--overlap=keep")
    assert report["values"] == 34 and [e.step for e in events(tmp_path / "keep")] == sorted(
        e.step for e in events(tmp_path / "keep"))
    told = tool("merge", run, "-o", tmp_path / "error", "--overlap=error", status=2).stderr
    assert "run '.': tag 'x' has step 50 more than once" in told and not (tmp_path / "error").exists()
    assert "left out 10 values before a restart" in tool("merge", run, "-o", tmp_path / "last", "-f").stderr


def test_runs_into_one(logs, tmp_path):
    d = logs[0]
    told = tool("merge", d, "-o", tmp_path / "one", status=2).stderr
    assert "tag 'x' is in the runs 'interleaved' and 'many'; --prefix" in told
    merged("--prefix", d, "-o", tmp_path / "one")
    assert {v.tag for e in events(tmp_path / "one") for v in e.summary.value} == {
        "interleaved/x", "many/x", "restarted/x", "restarted/y"}
    tool("verify", tmp_path / "one")
    one = write(tmp_path / "b" / "events.out.tfevents.1", [("x", s, s) for s in range(10)])
    two = write(tmp_path / "a" / "events.out.tfevents.2", [("x", s, 10 + s) for s in range(5, 15)], W + 100)
    merged("--join", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "joined")
    assert [(e.step, e.summary.value[0].simple_value) for e in events(tmp_path / "joined")[1:]] == [
        (s, s if s < 5 else 10 + s) for s in range(15)]
    merged(one, two, "--keep-runs", "-o", tmp_path / "files")
    assert sorted(p.name for p in (tmp_path / "files").iterdir()) == ["a", "b"]


def test_metadata_comes_with_the_first_value(tmp_path):
    """The value that had the metadata is overtaken by a restart, or comes later by its step."""
    run = tmp_path / "run"
    write(run / "events.out.tfevents.1", [], more=[text("note", 5, "old"), text("late", 9, "nine")])
    write(run / "events.out.tfevents.2", [], W + 100, more=[text("note", 5, "new", False, W + 101),
                                                           text("late", 3, "three", False, W - 5)])
    merged(run, "-o", tmp_path / "out")
    got = [(v.tag, e.step, v.tensor.string_val[0], v.metadata.plugin_data.plugin_name, v.metadata.summary_description)
           for e in events(tmp_path / "out") for v in e.summary.value]
    assert got == [("late", 3, b"three", "text", "described"), ("note", 5, b"new", "text", "described"),
                   ("late", 9, b"nine", "text", "described")]
    tool("verify", "--strict", tmp_path / "out")


def test_graph_hyperparameters_and_layout_stay_once(tmp_path):
    def once(number):
        graph = event_pb2.Event(wall_time=W + number, graph_def=b"\n\x04\n\x02g%d" % number)
        found = [graph]
        for tag, plugin, content in (("_hparams_/session_start_info", "hparams", b"\x1a\0"),
                                     ("_hparams_/session_end_info", "hparams", b"\x22\x02\x08%c" % (3 - number)),
                                     ("custom_scalars__config__", "custom_scalars", b"")):
            event = event_pb2.Event(wall_time=W + number)
            value = event.summary.value.add(tag=tag)
            value.metadata.plugin_data.plugin_name = plugin
            value.metadata.plugin_data.content = content
            if plugin == "custom_scalars":
                value.tensor.dtype = 7
                value.tensor.string_val.append(b"layout %d" % number)
            found.append(event)
        return found

    run = tmp_path / "run"
    write(run / "events.out.tfevents.1", [("x", 1, 1)], more=once(1))
    write(run / "events.out.tfevents.2", [("x", 2, 2)], W + 100, more=once(2))
    report = merged(run, "-o", tmp_path / "out")
    got = events(tmp_path / "out")
    assert report["repeated"] == report["dropped"] == 4 and [e.graph_def for e in got if e.graph_def] == [b"\n\x04\n\x02g2"]
    kept = {v.tag: (e.wall_time - W, v.metadata.plugin_data.content) for e in got for v in e.summary.value}
    assert kept["_hparams_/session_start_info"] == (1, b"\x1a\0")
    assert kept["_hparams_/session_end_info"] == (2, b"\x22\x02\x08\x01")
    assert kept["custom_scalars__config__"][0] == 2 and len(kept) == 4
    tool("verify", "--strict", tmp_path / "out")


def test_damage_and_wrong_use(logs, tmp_path):
    run = tmp_path / "run"
    path = write(run / "events.out.tfevents.1", [("x", s, s) for s in range(10)])
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(bytes(data))
    report = merged(run, "-o", tmp_path / "out", status=1)
    assert report["damage"] == 1 and len(events(tmp_path / "out")) == 10
    tool("verify", tmp_path / "out")
    assert "already holds event files" in tool("merge", run, "-o", tmp_path / "out", status=2).stderr
    for arguments in ([run], ["-o", tmp_path / "x"], [run, "-o", tmp_path / "x", "--join", "--prefix"],
                      [tmp_path / "none", "-o", tmp_path / "x"]):
        tool("merge", *arguments, status=2)
    (tmp_path / "empty").mkdir()
    tool("merge", tmp_path / "empty", "-o", tmp_path / "x", status=1)
    assert not (tmp_path / "x").exists()


def test_an_infinite_time_hides_no_restart(tmp_path):
    run = tmp_path / "run"
    odd = event_pb2.Event(wall_time=float("inf"), step=9)
    odd.summary.value.add(tag="x", simple_value=9)
    write(run / "events.out.tfevents.1", [("x", s, s) for s in range(10)], more=[odd])
    write(run / "events.out.tfevents.2", [("x", s, 100 + s) for s in range(5, 12)], W + 100)
    report = merged(run, "-o", tmp_path / "out")
    assert (report["restarts"], report["interleaved"], report["restarted"]) == (1, 0, 6)


def test_a_full_disk_leaves_nothing_behind(logs, tmp_path):
    """A write that fails, here for a limit on the size of files: no new file, no temporary one, the input as it was."""
    run = tmp_path / "run"
    path = write(run / "events.out.tfevents.1", [("x", s, s) for s in range(5000)])
    before = path.read_bytes()

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

    for arguments in (["merge", run, "-o", tmp_path / "out/new"], ["rename-tag", "x=y", run, "-o", tmp_path / "out/new"],
                      ["rename-tag", "x=y", run, "--in-place"], ["drop-tag", "z", run, "-o", tmp_path / "out"],
                      ["split", "--by", "run", run, "-o", tmp_path / "out"],
                      ["downsample", "--every", "1", run, "-o", tmp_path / "out"]):
        done = subprocess.run([TOOL, *arguments], capture_output=True, text=True, preexec_fn=limit)
        assert done.returncode == 2 and "cannot write: File too large" in done.stderr, done.stderr
        assert not (tmp_path / "out").exists() and list(run.iterdir()) == [path] and path.read_bytes() == before


def everything(directory):
    """(step, tag, wall time, the value without metadata) of all values of a run, by step and order of reading."""
    found = []
    for path in sorted(p for p in pathlib.Path(directory).iterdir() if "tfevents" in p.name):
        for data in event_file_loader.RawEventFileLoader(str(path)).Load():
            event = event_pb2.Event.FromString(data)
            for value in event.summary.value:
                value.ClearField("metadata")
                found.append((event.step, value.tag, event.wall_time, value.SerializeToString()))
    return sorted(found, key=lambda v: v[0])


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorflow"])
def test_what_other_libraries_write(tmp_path, library):
    """Two files of one run that follow on each other, of all kinds: nothing is left out or changed."""
    module, np = pytest.importorskip(library), pytest.importorskip("numpy")
    run = tmp_path / "log" / "run"
    for part in range(2):
        if library == "tensorflow":
            writer = module.summary.create_file_writer(str(run), filename_suffix=f".{part}")
            with writer.as_default():
                for step in range(part * 20, part * 20 + 20):
                    module.summary.scalar("loss", 1 / (step + 1), step=step)
                    module.summary.histogram("weights", np.arange(step + 2.0), step=step)
                module.summary.text("note", f"part {part}", step=part * 20)
                module.summary.image("picture", np.zeros([2, 4, 4, 3]), step=part * 20)
            writer.close()
        else:
            with module.SummaryWriter(str(run), filename_suffix=f".{part}") as writer:
                for step in range(part * 20, part * 20 + 20):
                    writer.add_scalar("loss", 1 / (step + 1), step)
                    writer.add_scalars("both", {"a": step, "b": -step}, step)
                    writer.add_histogram("weights", np.arange(step + 2.0), step)
                writer.add_text("note", f"part {part}", part * 20)
                writer.add_image("picture", np.zeros([3, 4, 4]), part * 20)
                writer.add_pr_curve("pr", np.array([0, 1, 1]), np.array([0.1, 0.7, 0.4]), part * 20)
    report = merged("--keep-runs", tmp_path / "log", "-o", tmp_path / "out")
    assert report["restarted"] == report["doubled"] == report["repeated"] == 0
    for old in (p for p in (tmp_path / "log").rglob("*") if p.is_dir() and any("tfevents" in f.name for f in p.iterdir())):
        assert everything(old) == everything(tmp_path / "out" / old.relative_to(tmp_path / "log"))
    tool("verify", tmp_path / "out")
    renamed = tool("rename-tag", "--regex", "^=x/", tmp_path / "out", "-o", tmp_path / "renamed").stdout
    assert f"{report['values']} values renamed" in renamed
    tool("verify", tmp_path / "renamed")
