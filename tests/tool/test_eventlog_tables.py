"""eventlog stats, tags, hparams and inspect --tree: exact output, options, figures computed again in Python."""
import csv
import io
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"

STATS = """run,tag,count,nan_count,first_step,first,last_step,last,min_step,min,max_step,max,mean,std
.,loss,3,1,0,0.699999988079071,20,NaN,10,0.10000000149011612,0,0.699999988079071,0.3999999947845936,0.4242640592288876
.,lr,1,0,0,9.999999747378752e-06,0,9.999999747378752e-06,0,9.999999747378752e-06,0,9.999999747378752e-06,9.999999747378752e-06,
eval,"acc, ""top"" 1",1,0,10,0.9,10,0.9,10,0.9,10,0.9,0.9,
eval,größe,1,0,9007199254740992,16777216.0,9007199254740992,16777216.0,9007199254740992,16777216.0,9007199254740992,16777216.0,16777216.0,
eval,loss,3,0,20,inf,10,3.0,20,0.25,20,inf,1.625,1.9445436482630056
"""
HPARAMS = """run,name,value
trial-0,augment,False
trial-0,optimizer,sgd
trial-0,rate,0.0
trial-1,augment,True
trial-1,optimizer,adam
trial-1,rate,0.25
"""


def run(*arguments, status=0):
    done = subprocess.run([TOOL, *arguments], capture_output=True)
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def refused(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, done.stderr
    return done.stderr


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    return tmp_path / "log"


def test_stats(log, tmp_path):
    assert run("stats", log) == STATS
    document = json.loads(run("stats", log, "--json"))
    assert (document["type"], document["version"]) == ("stats", 1)
    assert document["total"] == {"series": 5, "points": 9, "nan": 1, "inf": 1, "damage": 0}
    objects = document["series"]
    assert [list(o)[:14] for o in objects] == [STATS.splitlines()[0].split(",")] * 5
    assert all((o["points"], o["nan"]) == (o["count"], o["nan_count"]) for o in objects) and objects[4]["inf"] == 1
    assert objects[0]["last"] == "NaN" and objects[1]["std"] is None and objects[4]["max"] == "Infinity"
    assert [json.loads(x) for x in run("stats", log, "--format=jsonl").splitlines()] == objects
    assert run("stats", log, "--tag=none", status=1) == STATS.splitlines(True)[0]
    assert json.loads(run("stats", log, "--tag=none", "--json", status=1))["series"] == []
    run("stats", log, "-o", tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == STATS
    assert "-f" in refused("stats", log, "-o", tmp_path / "x.csv")
    assert run("stats", log, "--tag=loss", "--run=eval", "--view=tensorboard").splitlines()[1].startswith(
        "eval,loss,1,0,10,3.0,")
    assert run("stats", log, "--tag=loss", "--to-step=10", "--run=.").splitlines()[1].startswith(".,loss,2,0,0,")


def test_stats_of_many(tmp_path):
    subprocess.run([SAMPLE, "many", tmp_path], check=True)
    series = {}
    for _, tag, step, value, _ in list(csv.reader(io.StringIO(run("export", tmp_path, "--order=file"))))[1:]:
        series.setdefault(tag, []).append((int(step), float(value)))
    rows = list(csv.DictReader(io.StringIO(run("stats", tmp_path))))
    assert [r["tag"].encode() for r in rows] == sorted(t.encode() for t in series)
    for row in rows:
        points = series[row["tag"]]
        finite = [v for _, v in points if math.isfinite(v)]
        some = [(s, v) for s, v in points if not math.isnan(v)]
        assert (int(row["count"]), int(row["nan_count"])) == (len(points), len(points) - len(some))
        assert (int(row["first_step"]), int(row["last_step"])) == (points[0][0], points[-1][0])
        for word, best in ("min", min(some, key=lambda p: p[1])), ("max", max(some, key=lambda p: p[1])):
            assert (int(row[f"{word}_step"]), float(row[word])) == best
        assert math.isclose(float(row["mean"]), statistics.fmean(finite), rel_tol=1e-9, abs_tol=1e-12)
        assert math.isclose(float(row["std"]), statistics.stdev(finite), rel_tol=1e-9)


def test_hparams(kinds, log, tmp_path):
    assert run("hparams", kinds) == HPARAMS
    metrics = "--metric=loss:min", "--metric=loss", "--metric=none", "--metric=loss:max"
    assert run("hparams", kinds, "--wide", *metrics, status=1) == (
        "run,augment,optimizer,rate,loss:min,loss,none,loss:max\n"
        "trial-0,False,sgd,0.0,0.25,0.25,,1.0\ntrial-1,True,adam,0.25,0.5,0.5,,2.0\n")
    assert run("hparams", kinds, "--json", "--metric=loss", "--metric=none", status=1) == (
        '{"header": ["run", "augment", "optimizer", "rate", "loss", "none"], "rows": [["trial-0", false, "sgd", 0.0, '
        '0.25, null], ["trial-1", true, "adam", 0.25, 0.5, null]]}\n')
    assert json.loads(run("hparams", kinds, "--json", "--no-run"))["rows"][0] == [False, "sgd", 0.0]
    assert run("hparams", kinds, "--wide", "--no-run", "--run=trial-1") == "augment,optimizer,rate\nTrue,adam,0.25\n"
    assert run("hparams", log, status=1) == "run,name,value\n"
    assert json.loads(run("hparams", log, "--json", status=1)) == {"header": ["run"], "rows": []}
    assert "--metric" in refused("hparams", kinds, "--metric=loss")
    run("hparams", kinds, "-o", tmp_path / "h.csv")
    assert (tmp_path / "h.csv").read_text() == HPARAMS


def test_tags(kinds, log):
    rows = list(csv.DictReader(io.StringIO(run("tags", kinds))))
    assert {"run": "kinds", "tag": "text/one", "plugin": "text", "display_name": "Größe",
            "description": "*how* much"} in rows
    assert {r["plugin"] for r in rows} >= {"scalars", "images", "audio", "text", "histograms", "pr_curves", "mesh",
                                           "hparams", "custom_scalars"}
    assert json.loads(run("tags", kinds, "--json"))["series"] == rows
    assert [r["tag"] for r in csv.DictReader(io.StringIO(run("tags", kinds, "--plugin=audio")))] == [
        "audio/file", "audio/stereo"]
    assert run("tags", log, "--tag=loss", "--run=eval") == (
        "run,tag,plugin,display_name,description\neval,loss,scalars,,\n")
    assert run("tags", log, "--format=tb-json", "--tag=gr*") == (
        '{"eval": {"gr\\u00f6\\u00dfe": {"displayName": "", "description": ""}}}')
    assert run("tags", log, "--format=tb-json", "--tag=x", status=1) == "{}"
    assert list(json.loads(run("tags", kinds, "--format=tb-json"))) == ["kinds", "trial-0", "trial-1"]
    assert "scalars" in refused("tags", kinds, "--format=tb-json", "--plugin=text")


def test_tree(log, tmp_path):
    file = next((log / "eval").iterdir())
    for name in "a", "a/b", "a-b", "c/d/e", "c/d/f":
        (tmp_path / "tree" / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / "tree" / name)
    with open(tmp_path / "tree/c/d/e" / file.name, "ab") as f:
        f.write(b"\1")
    tail = f"  {file.stat().st_size} B, 1 file, 3 series, 5 points, steps 10 to 9007199254740992\n"
    cut = tail.replace(str(file.stat().st_size), str(file.stat().st_size + 1))
    cut = cut.replace("\n", ", stops inside a record\n")
    assert run("inspect", "--tree", tmp_path / "tree") == (
        f"a{tail}  b{tail}a-b{tail}c/\n  d/\n    e{cut}    f{tail}")
    assert run("inspect", "--tree", tmp_path / "tree", "--run=c*", "--tag=loss").count("1 series, 3 points") == 2
    assert "one of them" in refused("inspect", "--tree", "--json", log)
