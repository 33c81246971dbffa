"""tb-csv, tb-json, tags and hparams against what a running TensorBoard serves, by both loaders; csv in pandas."""
import io
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("tensorboard")

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/peers/eventlog_sample"


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


class Server:
    def __init__(self, log, fast, output):
        with open(output, "w") as f:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tensorboard.main", "--logdir", log, "--port", "0", "--host", "127.0.0.1",
                 f"--load_fast={'true' if fast else 'false'}", "--reload_interval", "1"], stdout=f, stderr=f)
        self.fast, self.output, self.base = fast, output, None

    def ready(self, runs):
        """Waits until all series have been read."""
        deadline = time.monotonic() + 90
        while "http://" not in self.output.read_text():
            assert time.monotonic() < deadline and self.process.poll() is None, self.output.read_text()
            time.sleep(0.05)
        self.base = "http://" + self.output.read_text().split("http://")[1].split()[0].rstrip("/")
        while not runs <= set(json.loads(self.get("tags"))) or len(json.loads(self.get("tags"))["many"]) < 100:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        while json.loads(self.get("scalars", run="many", tag="layer/99"))[-1][1] < 2**62:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self

    def get(self, route, data=None, plugin="scalars", **query):
        address = f"{self.base}/data/plugin/{plugin}/{route}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, data=data, timeout=30) as answer:
            return answer.read()


@pytest.fixture(scope="module")
def servers(log, tmp_path_factory):
    directory = tmp_path_factory.mktemp("output")
    started = [Server(log, fast, directory / str(fast)) for fast in (False, True)]
    try:
        runs = {"many", "sample", "golden", "sample/eval", "pages/train", "pages/trial-1"}
        yield [server.ready(runs) for server in started]
    finally:
        for server in started:
            server.process.terminate()
        for server in started:
            server.process.wait(30)


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
            if server.fast and not shown:
                continue  # doubles: the default loader does not have them
            assert server.get("scalars", run=run, tag=tag, format="csv") in ours["csv"], (run, tag)
            assert server.get("scalars", run=run, tag=tag) in ours["json"], (run, tag)
    for run, tag, _, _ in some[:5]:  # the same by name, one at a time
        choice = [f"--run={run}", f"--tag={tag.replace('[', '[[]')}"]
        server = servers[0]
        served = server.get("scalars", run=run, tag=tag, format="csv")
        assert export("export", log, "--format=tb-csv", *choice) == served
        assert export("export", log, "--format=tb-json", *choice) == server.get("scalars", run=run, tag=tag)


def test_several_runs(log, servers):
    want = json.loads(export("export", log, "--format=tb-json", "--multirun", "--tag=loss", "--view=tensorboard",
                             "--run=[gs]*"))
    assert set(want) == {"golden", "sample", "sample/eval"}
    form = urllib.parse.urlencode([("tag", "loss"), *(("runs", run) for run in want)]).encode()
    fast = servers[1]
    assert json.loads(fast.get("scalars_multirun", data=form)) == want
    # A series that rises: the very bytes.
    form = urllib.parse.urlencode([("tag", "loss"), ("runs", "sample")]).encode()
    ours = export("export", log, "--format=tb-json", "--multirun", "--tag=loss", "--run=sample")
    assert [server.get("scalars_multirun", data=form) for server in servers] == [ours, ours]


def test_tags(log, servers):
    ours = json.loads(export("tags", log, "--format=tb-json"))
    slow, fast = (json.loads(server.get("tags")) for server in servers)
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
        theirs = json.loads(server.get("download_data", plugin="hparams", format="json", request=json.dumps(want),
                                       columnsVisibility="[true,true,true]"))
        assert sorted(theirs["header"]) == ["Accuracy", "optimizer", "rate"]
        columns = [[name.lower() for name in theirs["header"]].index(name) for name in ours["header"]]
        assert sorted([row[i] for i in columns] for row in theirs["rows"]) == sorted(ours["rows"])


def test_csv_in_pandas(log):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(io.BytesIO(export("export", log)), keep_default_na=False, na_values={"value": ["nan"]})
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
