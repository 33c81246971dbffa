"""eventlog write: what is exported comes back, lines are seen as they come, and what is wrong is refused."""
import csv
import json
import os
import pathlib
import resource
import signal
import subprocess

import pytest

from eventlog_command import TOOL, export, run, write
from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
SAMPLE = BUILD / "tests/programs/eventlog_sample"


@pytest.mark.parametrize("how", [["--format=csv"], ["--format=jsonl"], ["--format=json"], ["--tsv"], ["--crlf"], ["--float32=short"]])
@pytest.mark.parametrize("kind", ["sample", "restart", "many"])
def test_export_comes_back(tmp_path, kind, how):
    """The same points, bit for bit; those with an infinite wall time, which no loader shows, are told."""
    subprocess.run([SAMPLE, kind, tmp_path / "log"], check=True)
    points = export(tmp_path / "log")
    rows = list(csv.reader(points.splitlines()[1:]))
    doubles = any(row[3] == "0.9" for row in rows)
    infinite = any("inf" in row[4] for row in rows)
    text = export(tmp_path / "log", *how)
    if infinite:
        assert "the wall time is not a finite number" in write(tmp_path / "bad", "-", text=text, status=2).stderr
        write(tmp_path / "new", "--keep-going", "-", text=text, status=1)
        kept = [row for row in rows if "inf" not in row[4]]
        assert list(csv.reader(export(tmp_path / "new").splitlines()[1:])) == kept
        return
    report = json.loads(write(tmp_path / "new", "--json", "-", text=text).stdout)["total"]
    assert report["points"] == len(rows)
    got = export(tmp_path / "new")
    if doubles:
        got = got.replace("0.8999999761581421", "0.9")  # what a float32 makes of it
        if "--float32=short" not in how:
            write(tmp_path / "exact", "--double", "-", text=text)
            assert export(tmp_path / "exact") == points
    assert got == points


def test_lines_are_seen_as_they_come(tmp_path):
    process = subprocess.Popen([TOOL, "write", "--dir", tmp_path, "-"], stdin=subprocess.PIPE)
    tail = subprocess.Popen([TOOL, "tail", "-f", "--json", "--interval", "0.02", tmp_path], stdout=subprocess.PIPE)
    try:
        for step in range(3):
            process.stdin.write(b'{"tag":"a","step":%d,"value":%d}\n' % (step, step))
            process.stdin.flush()
            assert json.loads(tail.stdout.readline())["step"] == step
        process.stdin.close()
        assert process.wait(DEADLINE) == 0
    finally:
        tail.terminate()
        tail.communicate()
        process.kill()
        process.wait()


def test_bad_input(tmp_path):
    text = "tag,step,value\na,1,1\na,x,1\na,2,1e300\na,3,3\n"
    (tmp_path / "in.csv").write_text(text)
    told = write(tmp_path / "log", "--input", tmp_path / "in.csv", status=2).stderr
    assert told == f"eventlog write: {tmp_path}/in.csv:3: 'x' is not a step\n"
    assert export(tmp_path / "log").count("\n") == 2  # the line before it is there
    told = write(tmp_path / "going", "--keep-going", "-", text=text, status=1).stderr
    assert "standard input:3: 'x' is not a step" in told and "standard input:4: tag 'a' at step 2: 1e+300 is beyond" in told
    assert [row.split(",")[2] for row in export(tmp_path / "going").splitlines()[1:]] == ["1", "3"]
    write(tmp_path / "none", "--keep-going", "-", text="a,b\n1,2\n", status=2)
    for run_name in ("../x", "/x", "a/../../x", "", ".."):
        told = write(tmp_path / "log", "-", text=f"run,tag,step,value\n{run_name},a,1,1\n", status=2).stderr
        assert "is not below the log directory" in told
    assert not (tmp_path / "x").exists()
    for arguments in (["a=1"], ["--step", 1], ["--step", 1, "a"], ["--step", 1, "a=x"], ["--step", 1, "=1"],
                      ["--step", 1, "--image", "a=/none"], ["--step", 1, "--image", f"a={tmp_path / 'in.csv'}"]):
        write(tmp_path / "log", *arguments, status=2)
    run("write", "--step", 1, "a=1", status=2)


def test_a_full_disk_is_no_success(tmp_path):
    """For a limit on the size of files: the first record fits, the point does not."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60))

    done = subprocess.run([TOOL, "write", "--dir", tmp_path, "--json", "--step", "1", "a=1"], capture_output=True, text=True,
                          preexec_fn=limit)
    assert done.returncode == 2 and "File too large" in done.stderr and not done.stdout


def test_times_as_they_are(tmp_path):
    """0 is 1970 where it is given, and now where nothing is."""
    text = "run,tag,step,value,wall_time\n.,a,0,1.0,0.0\n.,a,1,2.0,-5.5\n.,a,2,3.0,1.0\n"
    write(tmp_path / "log", "-", text=text)
    assert export(tmp_path / "log") == text
    write(tmp_path / "double", "--double", "-", text=text)
    assert export(tmp_path / "double") == text
    write(tmp_path / "now", "--step", 1, "a=1")
    assert float(export(tmp_path / "now").splitlines()[1].split(",")[4]) > 1.7e9
