"""The formats of `eventlog export` beyond csv, wide and json: exact texts, files, options."""
import csv
import glob
import io
import json
import math
import os
import pathlib
import re
import sqlite3
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"

SERIES = r"""{"points": {"steps": [0, 10, 20], "values": [0.699999988079071, 0.10000000149011612, "NaN"], "wall_times": [1700000000.0, 1700000010.25, 1700000020.5]}, "run": ".", "summary_metadata": "", "tag": "loss"}
{"points": {"steps": [0], "values": [9.999999747378752e-06], "wall_times": [1700000000.0]}, "run": ".", "summary_metadata": "CgkKB3NjYWxhcnM=", "tag": "lr"}
{"points": {"steps": [10], "values": [0.9], "wall_times": [1700000012.000001]}, "run": "eval", "summary_metadata": "CgkKB3NjYWxhcnM=", "tag": "acc, \"top\" 1"}
{"points": {"steps": [9007199254740992], "values": [16777216.0], "wall_times": [1700000030.0]}, "run": "eval", "summary_metadata": "", "tag": "gr\u00f6\u00dfe"}
{"points": {"steps": [10, 20, 20], "values": [3.0, "Infinity", 0.25], "wall_times": [1700000012.0, 1700000022.123456, 1700000023.0]}, "run": "eval", "summary_metadata": "", "tag": "loss"}
"""
TB_CSV = ("Wall time,Step,Value\r\n1700000000.0,0,0.699999988079071\r\n1700000010.25,10,0.10000000149011612\r\n"
          "1700000020.5,20,nan\r\n")
TB_JSON = ('[[1700000000.0, 0, 0.699999988079071], [1700000010.25, 10, 0.10000000149011612], '
           '[1700000020.5, 20, "NaN"]]')
PROM = r"""# HELP tb_scalar Newest value of a series in an event log.
# TYPE tb_scalar gauge
tb_scalar{run=".",tag="loss"} NaN
tb_scalar{run=".",tag="lr"} 9.999999747378752e-06
tb_scalar{run="eval",tag="acc, \"top\" 1"} 0.9
tb_scalar{run="eval",tag="größe"} 16777216.0
tb_scalar{run="eval",tag="loss"} 3.0
# HELP tb_scalar_step Step of that value.
# TYPE tb_scalar_step gauge
tb_scalar_step{run=".",tag="loss"} 20
tb_scalar_step{run=".",tag="lr"} 0
tb_scalar_step{run="eval",tag="acc, \"top\" 1"} 10
tb_scalar_step{run="eval",tag="größe"} 9007199254740992
tb_scalar_step{run="eval",tag="loss"} 10
# HELP tb_scalar_wall_time_seconds Unix time of that value.
# TYPE tb_scalar_wall_time_seconds gauge
tb_scalar_wall_time_seconds{run=".",tag="loss"} 1700000020.5
tb_scalar_wall_time_seconds{run=".",tag="lr"} 1700000000.0
tb_scalar_wall_time_seconds{run="eval",tag="acc, \"top\" 1"} 1700000012.000001
tb_scalar_wall_time_seconds{run="eval",tag="größe"} 1700000030.0
tb_scalar_wall_time_seconds{run="eval",tag="loss"} 1700000012.0
# HELP tb_scalar_points Points of the series in the log.
# TYPE tb_scalar_points gauge
tb_scalar_points{run=".",tag="loss"} 3
tb_scalar_points{run=".",tag="lr"} 1
tb_scalar_points{run="eval",tag="acc, \"top\" 1"} 1
tb_scalar_points{run="eval",tag="größe"} 1
tb_scalar_points{run="eval",tag="loss"} 3
"""
REDUCED = """,loss,acc,loss,acc
,mean,mean,std,std
step,,,,
0,0.625,0.375,0.1767766952966369,0.1767766952966369
10,0.375,0.875,0.1767766952966369,0.1767766952966369
20,0.125,,,
"""
LOSS = ["--run=.", "--tag=loss"]


def sample(kind, directory):
    subprocess.run([SAMPLE, kind, directory], check=True)
    return directory


@pytest.fixture
def log(tmp_path):
    return sample("sample", tmp_path / "log")


def run(*arguments, status=0, **environment):
    done = subprocess.run([TOOL, *arguments], capture_output=True, env={**os.environ, **environment})
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def refused(*arguments):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout, done.stderr
    return done.stderr


@pytest.mark.parametrize("options, want", [
    (["--format=jsonl-series"], SERIES), (["--format=tb-csv", *LOSS], TB_CSV), (["--format=tb-json", *LOSS], TB_JSON)])
def test_exact_output(log, tmp_path, options, want):
    assert run("export", log, *options) == run("export", log, *options, LC_ALL="de_DE.UTF-8") == want
    run("export", log, *options, "-o", tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == want.encode()
    refused("export", log, *options, "-o", tmp_path / "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "x"]


def test_series_options(log):
    lines = [json.loads(line) for line in run("export", log, "--format=jsonl-series", "--nonfinite=null").splitlines()]
    assert lines[0]["points"]["values"][2] is None and list(lines[0]) == ["points", "run", "summary_metadata", "tag"]
    assert '"values": [0.7, 0.1, "NaN"]' in run("export", log, "--format=jsonl-series", "--float32=short")
    unsorted = run("export", log, "--format=jsonl-series", "--order=file", "--run=eval", "--tag=loss")
    assert json.loads(unsorted)["points"]["steps"] == [20, 20, 10]
    one = run("export", log, "--format=jsonl-series", "--from-step=10", "--to-step=15", "--tag=loss", "--run=.")
    assert json.loads(one)["points"]["steps"] == [10]


def test_steps_from_and_to(log):
    assert run("export", log, "--from-step=20", "--to-step=20").splitlines()[1:] == [
        ".,loss,20,NaN,1700000020.5", "eval,loss,20,inf,1700000022.123456", "eval,loss,20,0.25,1700000023.0"]
    assert run("export", log, "--format=wide", "--to-step=9").splitlines() == [
        "run,step,loss,lr", ".,0,0.699999988079071,9.999999747378752e-06"]
    assert run("export", log, "--order=file", "--from-step", "9007199254740992").count("\n") == 2
    assert "--from-step" in refused("export", log, "--from-step=2", "--to-step=1")


def test_a_file_each(log, tmp_path):
    run("export", log, "--format=tb-csv", "-o", f"{tmp_path}/d/")
    assert sorted(os.listdir(tmp_path / "d")) == [
        "run-.-tag-loss.csv", "run-.-tag-lr.csv", "run-eval-tag-acc___top__1.csv", "run-eval-tag-gr____e.csv",
        "run-eval-tag-loss.csv"]
    assert (tmp_path / "d/run-.-tag-loss.csv").read_bytes() == TB_CSV.encode()
    # Together they are the csv, but for how TensorBoard spells NaN.
    rows = set()
    for name in glob.glob(f"{tmp_path}/d/*.csv"):
        with open(name, newline="") as f:
            rows |= {(wall, step, value.replace("nan", "NaN")) for wall, step, value in list(csv.reader(f))[1:]}
    table = list(csv.reader(io.StringIO(run("export", log))))[1:]
    assert rows == {(wall, step, value) for _, _, step, value, wall in table} and len(table) == 9
    assert "-f" in refused("export", log, "--format=tb-csv", "-o", f"{tmp_path}/d/")
    run("export", log, "--format=tb-csv", "-f", "-o", f"{tmp_path}/d")  # a directory without the slash, too
    run("export", log, "--format=tb-json", "-o", f"{tmp_path}/j/")
    assert (tmp_path / "j/run-.-tag-loss.json").read_text() == TB_JSON
    assert "5 series" in refused("export", log, "--format=tb-json")


def test_names_that_fall_together(tmp_path):
    for run_name in "a/b", "a_b", "a b", "a_b-tag-x-2":
        sample("sample", tmp_path / "log")
        (tmp_path / "log" / run_name).parent.mkdir(parents=True, exist_ok=True)
        os.rename(tmp_path / "log/eval", tmp_path / "log" / run_name)
    run("export", tmp_path / "log", "--format=tb-csv", "-o", f"{tmp_path}/d/", "--tag=loss", "--run=a*")
    assert sorted(os.listdir(tmp_path / "d")) == [
        "run-a_b-tag-loss-2.csv", "run-a_b-tag-loss-3.csv", "run-a_b-tag-loss.csv", "run-a_b-tag-x-2-tag-loss.csv"]


def test_several_runs_in_one_object(log):
    both = json.loads(run("export", log, "--format=tb-json", "--multirun", "--tag=loss"))
    assert both == {".": json.loads(TB_JSON),
                    "eval": [[1700000012.0, 10, 3.0], [1700000022.123456, 20, "Infinity"], [1700000023.0, 20, 0.25]]}
    assert "one tag" in refused("export", log, "--format=tb-json", "--multirun")
    assert "tb-json" in refused("export", log, "--format=tb-csv", "--multirun")


def test_nothing_matched(log, tmp_path):
    for name, want in ("jsonl-series", ""), ("tb-csv", "Wall time,Step,Value\r\n"), ("tb-json", "[]"), (
            "reduce", "\n\nstep\n"):
        assert run("export", log, "--tag=none", f"--format={name}", status=1) == want
    assert run("export", log, "--tag=none", "--format=tb-json", "--multirun", status=1) == "{}"
    run("export", log, "--tag=none", "--format=prom", "-o", tmp_path / "x.prom", status=1)
    assert (tmp_path / "x.prom").read_text() == "".join(x for x in PROM.splitlines(True) if x.startswith("#"))


# ---- prom --------------------------------------------------------------------------------------------------------


def parse_prometheus(text):
    """The text format 0.0.4, strictly: lines of a metric together, TYPE before them, no timestamp, LF at the end."""
    assert text.endswith("\n") and "\n\n" not in text
    samples, types, current = {}, {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            kind, name, rest = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)", line).groups()
            if kind == "HELP":
                assert name not in types
                current = name
            else:
                assert name == current and rest in ("gauge", "counter", "untyped") and name not in types
                types[name] = rest
            continue
        match = re.fullmatch(r'([a-zA-Z_:][a-zA-Z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\} '
                             r"([+-]?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf)|NaN)", line)
        assert match, line
        name, labels, value = match.groups()
        assert name == current and name in types
        pairs = re.findall(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"', labels)
        key = tuple((k, re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], v)) for k, v in pairs)
        assert (name, key) not in samples
        samples[name, key] = float(value)
    return samples


def test_prometheus(log, tmp_path):
    run("export", log, "--format=prom", "-o", tmp_path / "x.prom")
    assert (tmp_path / "x.prom").read_text() == PROM
    samples = parse_prometheus(PROM)
    assert len(samples) == 20 and samples["tb_scalar", (("run", "eval"), ("tag", 'acc, "top" 1'))] == 0.9
    assert ".prom" in refused("export", log, "--format=prom")
    assert ".prom" in refused("export", log, "--format=prom", "-o", tmp_path / "x.txt")
    for bad in "", "9a", "a-b", "ä":
        assert "--prom-prefix" in refused("export", log, "--format=prom", f"--prom-prefix={bad}", "-o",
                                          tmp_path / "y.prom")
    run("export", log, "--format=prom", "-f", "-o", tmp_path / "x.prom", "--prom-prefix=my_1", "--run=eval",
        "--nonfinite=drop", "--view=tensorboard")
    samples = parse_prometheus((tmp_path / "x.prom").read_text())
    assert {name for name, _ in samples} == {"my_1_scalar", "my_1_scalar_step", "my_1_scalar_wall_time_seconds",
                                             "my_1_scalar_points"}
    promtool = next((p for d in os.environ["PATH"].split(":") if os.access(p := f"{d}/promtool", os.X_OK)), None)
    if promtool:
        subprocess.run([promtool, "check", "metrics"], input=PROM, text=True, check=True)


def test_prometheus_odd_labels(tmp_path):
    sample("many", tmp_path / "log")
    run("export", tmp_path / "log", "--format=prom", "-o", tmp_path / "x.prom")
    samples = parse_prometheus((tmp_path / "x.prom").read_text())
    assert ("tb_scalar", (("run", "."), ("tag", "größe/π 1 😀"))) in samples and len(samples) == 400


# ---- sqlite ------------------------------------------------------------------------------------------------------


def database(path):
    handle = sqlite3.connect(path)
    assert handle.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return handle


def same_rows(rows, table):
    """Rows of a database against those of the csv, bit for bit; NULL is NaN."""
    read = [(r, t, int(s), float(v), float(w)) for r, t, s, v, w in csv.reader(io.StringIO(table.split("\n", 1)[1]))]
    return repr([(r, t, s, math.nan if v is None else v, w) for r, t, s, v, w in rows]) == repr(read)


def test_sqlite(log, tmp_path):
    run("export", log, "--format=sqlite", "-o", tmp_path / "x.db", SOURCE_DATE_EPOCH="1")
    run("export", log, "--format=sqlite", "-o", tmp_path / "y.db", SOURCE_DATE_EPOCH="1")
    assert (tmp_path / "x.db").read_bytes() == (tmp_path / "y.db").read_bytes()
    db = database(tmp_path / "x.db")
    assert same_rows(db.execute("SELECT run, tag, step, value, wall_time FROM scalars ORDER BY run, tag, step"),
                     run("export", log))
    assert db.execute("SELECT value FROM latest WHERE run = 'eval' AND tag = 'loss'").fetchall() == [(3.0,)]
    assert db.execute("SELECT seq, step FROM points WHERE series_id = 5").fetchall() == [(0, 20), (1, 20), (2, 10)]
    assert dict(db.execute("SELECT key, value FROM meta")) == {
        "tool": "eventlog", "tool_version": "0.1.0", "logdir": str(log), "view": "all", "points": "9", "skipped": "0"}
    assert db.execute("PRAGMA application_id").fetchone()[0] == 0x54464576
    assert db.execute("PRAGMA user_version").fetchone()[0] == 1
    assert dict(db.execute("SELECT tag, dtype FROM series WHERE run = 'eval'")) == {
        'acc, "top" 1': "float64", "größe": "float32", "loss": "float32"}
    plan = db.execute("EXPLAIN QUERY PLAN SELECT * FROM latest").fetchall()
    assert not any("SCAN p" in row[-1] for row in plan), plan
    refused("export", log, "--format=sqlite", "-o", tmp_path / "x.db")
    run("export", log, "--format=sqlite", "-f", "-o", tmp_path / "x.db", "--view=tensorboard", "--from-step=20")
    assert database(tmp_path / "x.db").execute("SELECT count(*) FROM scalars").fetchone() == (2,)
    assert "exported_at" in dict(database(tmp_path / "x.db").execute("SELECT key, value FROM meta"))
    run("export", log, "--format=sqlite", "-o", tmp_path / "empty.db", "--tag=none", status=1)
    assert database(tmp_path / "empty.db").execute("SELECT count(*) FROM series").fetchone() == (0,)
    assert "-o" in refused("export", log, "--format=sqlite")
    refused("export", log, "--format=sqlite", "-o", "/dev/null")
    assert sorted(os.listdir(tmp_path)) == ["empty.db", "log", "x.db", "y.db"]


def test_sqlite_many(tmp_path):
    sample("many", tmp_path / "log")
    run("export", tmp_path / "log", "--format=sqlite", "-o", tmp_path / "x.db")
    rows = database(tmp_path / "x.db").execute(
        "SELECT run, tag, step, value, wall_time FROM scalars JOIN (SELECT 0) ORDER BY run, CAST(tag AS BLOB), step")
    assert same_rows(rows, run("export", tmp_path / "log"))


def test_sqlite_texts_and_hyperparameters(kinds, tmp_path):
    run("export", kinds, "--format=sqlite", "-o", tmp_path / "x.db", "--tag=text/*", "--tag=loss")
    db = database(tmp_path / "x.db")
    texts = db.execute("SELECT tag, seq, step, value FROM texts JOIN series USING(series_id) ORDER BY tag, seq")
    assert texts.fetchall() == [("text/list", 0, 0, "a\n**b**\n\ngröße\ne\nf"), ("text/one", 0, 0, "*hello* wörld"),
                     ("text/one", 1, 1, ""), ("text/table", 0, 0, "a\t**b**\n\tgröße\ne\tf")]
    assert db.execute("SELECT plugin, display_name, description FROM series WHERE tag = 'text/one'").fetchall() == [
        ("text", "Größe", "*how* much")]
    assert db.execute("SELECT run, name, value, typeof(value) FROM hparams ORDER BY run, name").fetchall() == [
        ("trial-0", "augment", 0, "integer"), ("trial-0", "optimizer", "sgd", "text"), ("trial-0", "rate", 0.0, "real"),
        ("trial-1", "augment", 1, "integer"), ("trial-1", "optimizer", "adam", "text"),
        ("trial-1", "rate", 0.25, "real")]


# ---- reduce ------------------------------------------------------------------------------------------------------


def test_reduce(tmp_path):
    sample("reduce", tmp_path)
    assert run("export", tmp_path, "--format=reduce", "--min-runs=1") == REDUCED
    assert run("export", tmp_path, "--format=reduce") == "".join(REDUCED.splitlines(True)[:-1])
    assert run("export", tmp_path, "--format=reduce", "--columns=name", "--ops=max").splitlines()[:4] == [
        ",acc,loss", ",max,max", "step,,", "0,0.5,0.75"]
    assert "'nix'" in refused("export", tmp_path, "--format=reduce", "--ops=mean,nix")
    assert "twice" in refused("export", tmp_path, "--format=reduce", "--ops=mean,mean")


def test_reduce_refuses(log, tmp_path):
    assert "'lr' in run eval" in refused("export", log, "--format=reduce")
    assert "--dup" in refused("export", log, "--format=reduce", "--tag=loss")
    assert run("export", log, "--format=reduce", "--tag=loss", "--dup=first", "--ops=count,max").splitlines()[3:] == [
        "10,2,3.0", "20,1,inf"]  # the NaN of one run is no value


@pytest.fixture
def odd(tmp_path):
    """Three runs, with two NaN and two infinities at four steps."""
    rows = {"a": ["1", "nan", "inf", "4"], "b": ["3", "2", "2", "nan"], "c": ["5", "4", "-inf", "8"]}
    for name, values in rows.items():
        subprocess.run([TOOL, "write", "--dir", tmp_path / "odd" / name, "-"], check=True, capture_output=True,
                       input="step,loss\n" + "".join(f"{i},{v}\n" for i, v in enumerate(values)), text=True)
    return tmp_path / "odd"


def reduced(*words):
    done = subprocess.run([TOOL, "export", "--format=reduce", "--ops=count,mean,min,median,std", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[3:], done.stderr


def test_reduce_says_what_it_leaves_out(odd):
    rows, said = reduced(odd)
    assert rows == ["0,3,3.0,1.0,3.0,2.0", "1,2,3.0,2.0,3.0,1.4142135623730951", "2,3,NaN,-inf,2.0,NaN", "3,2,6.0,4.0,6.0,2.8284271247461903"]
    assert said == "eventlog export: left out 2 values that are NaN; with --nonfinite=keep they count as NaN\n"
    rows, said = reduced("--nonfinite=keep", odd)
    assert rows == ["0,3,3.0,1.0,3.0,2.0", "1,3,NaN,NaN,NaN,NaN", "2,3,NaN,-inf,2.0,NaN", "3,3,NaN,NaN,NaN,NaN"] and said == ""
    rows, said = reduced("--nonfinite=drop", "--min-runs=1", odd)
    assert rows[2] == "2,1,2.0,2.0,2.0," and said == "eventlog export: left out 4 values that are not finite\n"
    assert reduced("--to-step=0", odd)[1] == ""  # nothing of it was left out
    assert "--nonfinite=keep applies only to --format=reduce" in refused("export", "--nonfinite=keep", odd)


def test_csv_spells_what_is_not_finite(odd, tmp_path):
    """With the words that polars, pandas, DuckDB and Arrow all take for numbers; TensorBoard's CSV has its own."""
    for words in ["--format=csv"], ["--format=csv", "--order=file"], ["--format=csv", "--tsv"], ["--format=wide"], ["--format=csv", "--float32=short"]:
        cells = run("export", *words, odd).replace("\t", ",").split(",")
        values = [c.split("\n")[0] for c in cells if c.split("\n")[0].lower().lstrip("-") in ("nan", "inf")]
        assert sorted(values) == ["-inf", "NaN", "NaN", "inf"], words
    assert run("stats", "--format=csv", odd).count(",NaN,") == 1 and "nan," not in run("stats", "--format=csv", odd).split("\n", 1)[1]
    assert run("export", "--format=tb-csv", "--run=a", odd).count(",nan\r\n") == 1
    again = tmp_path / "again"
    subprocess.run([TOOL, "write", "--dir", again, "-"], check=True, capture_output=True, input=run("export", odd), text=True)
    assert run("export", again) == run("export", odd)


def test_reduce_to_event_files(tmp_path):
    sample("reduce", tmp_path / "log")
    run("export", tmp_path / "log", "--format=reduce", "--events", "-o", f"{tmp_path}/red/", "--min-runs=1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "red-mean", "red-std"]
    assert run("export", tmp_path / "red-mean") == (
        "run,tag,step,value,wall_time\n.,acc,0,0.375,1700000001.0\n.,acc,10,0.875,1700000002.0\n"
        ".,loss,0,0.625,1700000001.0\n.,loss,10,0.375,1700000002.0\n.,loss,20,0.125,1700000003.0\n")
    assert run("export", tmp_path / "red-std").count("\n") == 5
    run("verify", tmp_path / "red-mean", tmp_path / "red-std")
    assert "exists" in refused("export", tmp_path / "log", "--format=reduce", "--events", "-o", f"{tmp_path}/red/")
    assert "-o" in refused("export", tmp_path / "log", "--format=reduce", "--events")


# ---- damage ------------------------------------------------------------------------------------------------------


ALL = ["csv", "wide", "json", "jsonl", "jsonl-series", "tb-csv", "tb-json", "reduce", "prom", "sqlite", "histograms"]


@pytest.mark.parametrize("name", ALL)
def test_damage(tmp_path, name):
    """The sound part is written, the place told, status 1."""
    log = sample("golden", tmp_path / "log")
    file = next(log.iterdir())
    data = bytearray(file.read_bytes())
    options = ["--format", name, *(["--tag=loss"] if name.startswith("tb") else []),
               *(["--dup=last"] if name == "reduce" else [])]
    run("export", log, *options, "-o", tmp_path / "good.prom")
    data[140] ^= 1  # in the third of four points
    file.write_bytes(data)
    done = subprocess.run([TOOL, "export", log, *options, "-o", tmp_path / "x.prom"], capture_output=True, text=True)
    assert done.returncode == 1 and f"{file}:122: " in done.stderr
    assert (tmp_path / "x.prom").stat().st_size > 0
    assert (tmp_path / "x.prom").read_bytes() != (tmp_path / "good.prom").read_bytes() or name == "histograms"
    file.write_bytes(data[:-3])  # and its last record is being written: that is no damage of its own
    done = subprocess.run([TOOL, "export", log, *options, "-o", tmp_path / "y.prom"], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count(f"{file}:") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["good.prom", "log", "x.prom", "y.prom"]
