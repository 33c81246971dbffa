"""What `eventlog export` writes, in other programs' hands: pandas computes the same, DuckDB reads the same bits."""
import csv
import io
import math
import os
import pathlib
import re
import shutil
import statistics
import struct
import subprocess
import sys

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def sample(kind, directory):
    subprocess.run([SAMPLE, kind, directory], check=True)
    return directory


def run(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, check=True).stdout


def test_reduce_as_pandas(tmp_path):
    pandas = pytest.importorskip("pandas")
    sample("reduce", tmp_path / "log")
    for name in "c", "d":
        sample("sample", tmp_path / "log")
        os.rename(tmp_path / "log/eval", tmp_path / "log" / name)
    for file in (tmp_path / "log").glob("*tfevents*"):
        file.unlink()
    operations = "mean std min max median sum count var".split()
    options = ["--format=reduce", "--dup=last", "--min-runs=1", "--lax-tags", f"--ops={','.join(operations)}"]
    (tmp_path / "x.csv").write_text(run("export", tmp_path / "log", *options))
    ours = pandas.read_csv(tmp_path / "x.csv", header=[0, 1], index_col=0)
    (tmp_path / "all.csv").write_text(run("export", tmp_path / "log"))
    points = pandas.read_csv(tmp_path / "all.csv").drop_duplicates(["run", "tag", "step"], keep="last")
    for tag in points.tag.unique():
        table = points[points.tag == tag].pivot(index="step", columns="run", values="value")
        for operation in operations:
            theirs = getattr(table, operation)(axis=1)
            for step, value in theirs.items():
                mine = ours.loc[step, (tag, operation)]
                assert mine == value or (math.isnan(mine) and math.isnan(value)), (tag, operation, step)
    assert ours["loss", "std"][0] == statistics.stdev([0.5, 0.75])


def test_parquet(tmp_path):
    """The command of the manual page, as it stands there: DuckDB reads back the same bits, and no run or tag as a number."""
    path = f"{BUILD / 'bin'}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    if not shutil.which("duckdb", path=path):
        pytest.skip("no duckdb here")
    log = sample("sample", tmp_path / "log")
    page = pathlib.Path(__file__).parents[2] / "docs/man/eventlog-export.txt"
    line, = re.findall("^    eventlog export .*duckdb .*\n(?:    .*\n)+", page.read_text(), re.MULTILINE)
    names = "run,tag,step,value,wall_time\n"
    lines = names + "002,null,-3,5e-324,0.1\n002,NA,1,0.1000000000000000055,1e-300\n1,7,2,nan,1\n"
    subprocess.run([TOOL, "write", "--dir", log / "written", "-"], input=lines.encode(), check=True)
    subprocess.run(["bash", "-c", "set -o pipefail; " + line.replace(" logs ", f" '{log}' ")], check=True, cwd=log.parent,
                   env={**os.environ, "PATH": path})

    def query(sql):
        return subprocess.run(["duckdb", "-csv", "-c", sql], capture_output=True, text=True, check=True, cwd=log.parent,
                              env={**os.environ, "PATH": path}).stdout

    def points(text):
        rows = list(csv.reader(io.StringIO(text)))
        return rows[0], [(run, tag, int(step), struct.pack("<dd", float(value), float(time)))
                         for run, tag, step, value, time in rows[1:]]

    want = points(run("export", "--format=csv", log))
    assert points(query("from 'points.parquet'")) == want and len(want[1]) > 10
    assert [row[1] for row in csv.reader(io.StringIO(query("describe from 'points.parquet'")))][1:] == \
        ["VARCHAR", "VARCHAR", "BIGINT", "DOUBLE", "DOUBLE"]
