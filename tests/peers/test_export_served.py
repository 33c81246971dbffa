"""tb-csv, tb-json, tags and hparams against what a running TensorBoard serves, by both loaders; csv in pandas."""
import io
import json
import math
import os
import pathlib
import struct
import subprocess
import urllib.parse

import pytest

from tensorboard_server import TensorBoard

pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def export(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    directory = tmp_path_factory.mktemp("served") / "log"
    directory.mkdir()
    for kind in "many", "sample", "golden":
        subprocess.run([SAMPLE, kind, directory / kind], check=True)
    subprocess.run([BUILD / "tests/peers/plugin_pages", directory / "pages"], check=True)
    return directory


@pytest.fixture(scope="module")
def servers(log, tmp_path_factory):
    """By the Python loader, and by the data server; both have read all series."""
    directory = tmp_path_factory.mktemp("output")
    runs = {"many", "sample", "golden", "sample/eval", "pages/train", "pages/trial-1"}
    with TensorBoard(log, directory / "python", loader="python") as slow, TensorBoard(log, directory / "fast") as fast:
        for server in slow, fast:
            server.until("scalars/tags", lambda tags: runs <= set(tags) and len(tags["many"]) >= 100)
            server.until("scalars/scalars", lambda points: points[-1][1] >= 2**62, run="many", tag="layer/99")
        yield slow, fast


def served(server, route, data=None, **query):
    return server.raw(f"scalars/{route}", data, **query)[0]


@pytest.fixture(scope="module")
def series(log):
    """(run, tag, stored, shown) of the series whose steps rise strictly."""
    runs = json.loads(export("inspect", "--json", log))["runs"]
    found = [(r["run"], s["tag"], s["stored"], s["shown"] == s["points"]) for r in runs for s in r["series"]
             if s["points"] and s["num_steps"] == s["points"] and not s["outoforder_steps"]]
    assert len(found) >= 104 and {stored for _, _, stored, _ in found} == {"simple_value", "tensor DT_FLOAT",
                                                                          "tensor DT_DOUBLE"}
    return found


def test_bytes_are_those_served(log, servers, series, tmp_path):
    export("export", log, "--format=tb-csv", "-o", f"{tmp_path}/csv/")
    export("export", log, "--format=tb-json", "-o", f"{tmp_path}/json/")
    ours = {kind: {p.read_bytes() for p in (tmp_path / kind).iterdir()} for kind in ("csv", "json")}
    some = [s for s in series if s[0] != "many"] + [s for s in series if s[0] == "many"][::7]
    for server in servers:
        for run, tag, _, shown in some:
            if server.loader == "fast" and not shown:
                continue  # doubles: the default loader does not have them
            assert served(server, "scalars", run=run, tag=tag, format="csv") in ours["csv"], (run, tag)
            assert served(server, "scalars", run=run, tag=tag) in ours["json"], (run, tag)
    for run, tag, _, _ in some[:5]:  # the same by name, one at a time
        choice = [f"--run={run}", f"--tag={tag.replace('[', '[[]')}"]
        server = servers[0]
        bytes_served = served(server, "scalars", run=run, tag=tag, format="csv")
        assert export("export", log, "--format=tb-csv", *choice) == bytes_served
        assert export("export", log, "--format=tb-json", *choice) == served(server, "scalars", run=run, tag=tag)


def test_several_runs(log, servers):
    want = json.loads(export("export", log, "--format=tb-json", "--multirun", "--tag=loss", "--view=tensorboard",
                             "--run=[gs]*"))
    assert set(want) == {"golden", "sample", "sample/eval"}
    form = urllib.parse.urlencode([("tag", "loss"), *(("runs", run) for run in want)]).encode()
    fast = servers[1]
    assert json.loads(served(fast, "scalars_multirun", data=form)) == want
    # A series that rises: the very bytes.
    form = urllib.parse.urlencode([("tag", "loss"), ("runs", "sample")]).encode()
    ours = export("export", log, "--format=tb-json", "--multirun", "--tag=loss", "--run=sample")
    assert [served(server, "scalars_multirun", data=form) for server in servers] == [ours, ours]


def test_tags(log, servers):
    ours = json.loads(export("tags", log, "--format=tb-json"))
    slow, fast = (json.loads(served(server, "tags")) for server in servers)
    for run, tags in slow.items():
        for tag, shown in tags.items():
            # The Python loader puts the tag where a simple_value has no name.
            assert ours[run][tag]["displayName"] in (shown["displayName"], "") and not shown["description"]
    assert {run: set(tags) for run, tags in ours.items()} == {run: set(tags) for run, tags in slow.items()}
    shown = {run: {tag: both for tag, both in tags.items() if tag != 'acc, "top" 1'} for run, tags in ours.items()}
    assert shown == fast  # all but the double


def test_hyperparameters(log, servers):
    """The same table as TensorBoard's own download, whose columns come in the experiment's order."""
    ours = json.loads(export("hparams", log, "--json", "--no-run", "--metric=accuracy"))
    assert ours["header"] == ["optimizer", "rate", "accuracy"]
    want = {"allowedStatuses": ["STATUS_UNKNOWN", "STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_RUNNING"],
            "startIndex": 0, "sliceSize": 100, "colParams": [{"hparam": "rate"}, {"hparam": "optimizer"}]}
    for server in servers:
        theirs = server.get("hparams/download_data", format="json", request=json.dumps(want),
                            columnsVisibility="[true,true,true]")
        assert sorted(theirs["header"]) == ["Accuracy", "optimizer", "rate"]
        columns = [[name.lower() for name in theirs["header"]].index(name) for name in ours["header"]]
        assert sorted([row[i] for i in columns] for row in theirs["rows"]) == sorted(ours["rows"])


def test_csv_in_pandas(log):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.BytesIO(export("export", log)), keep_default_na=False, na_values={"value": ["NaN"]})
    lines = [json.loads(x) for x in export("export", log, "--format=jsonl").decode().splitlines()]
    assert list(frame.columns) == ["run", "tag", "step", "value", "wall_time"] and len(frame) == len(lines)
    assert frame.run.tolist() == [p["run"] for p in lines] and frame.tag.tolist() == [p["tag"] for p in lines]
    assert frame.step.tolist() == [p["step"] for p in lines]
    for column, values in ("value", frame.value), ("wall_time", frame.wall_time):
        wanted = [float(p[column]) for p in lines]
        assert all(struct.pack("<d", a) == struct.pack("<d", b) or (math.isnan(a) and math.isnan(b))
                   for a, b in zip(values, wanted))
    wide = pandas.read_csv(io.BytesIO(export("export", log / "golden", "--format=wide")))
    assert wide.columns.tolist() == ["run", "step", "loss"] and wide.loss.tolist() == [2.0, 0.75, 0.5]
