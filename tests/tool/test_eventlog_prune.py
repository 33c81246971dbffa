"""eventlog prune: lists by default, deletes what its rules select and nothing else, and leaves what somebody writes."""
import gzip
import json
import lzma
import os
import pathlib
import shutil
import subprocess
import time

import pytest

from waiting import wait_for

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL = BUILD / "bin/eventlog"
DAY = 86400


def tool(*arguments, status=0, **more):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == status, done.stderr + done.stdout
    return done


def prune(*arguments, **more):
    """What it says of itself: the document, and the names of the runs that go."""
    document = json.loads(tool("prune", "--json", *arguments, **more).stdout)
    assert (document["type"], document["version"]) == ("prune", 1)
    return document, [run["run"] for run in document["runs"] if run["state"] != "left"]


def files(directory):
    return sorted(p.relative_to(directory).as_posix() for p in directory.rglob("*") if not p.is_dir())


def age(path, days):
    when = time.time() - days * DAY
    for file in path.rglob("*tfevents*"):
        os.utime(file, (when, when))


@pytest.fixture
def logs(tmp_path):
    """Runs a/1 ... a/5 of 10, 20, ... values, last written 10, 20, ... days ago, and one of today."""
    for i in range(1, 6):
        lines = "".join(f'{{"tag":"loss","step":{s},"value":{s}}}\n{{"tag":"acc","step":{s},"value":{s}}}\n'
                        for s in range(10 * i))
        subprocess.run([TOOL, "write", "--dir", tmp_path / f"logs/a/{i}", "-"], input=lines.encode(), check=True)
        age(tmp_path / f"logs/a/{i}", 10 * i)
    tool("write", "--dir", tmp_path / "logs/now", "--step", 1, "loss=1")
    (tmp_path / "logs/a/5/notes.txt").write_text("mine")
    return tmp_path / "logs"


def test_only_lists(logs):
    before = files(logs)
    done = tool("prune", "--older-than", "25d", logs)
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", "a/5", "a/4", "a/3", "3"]
    assert "to be deleted with --delete; 3 runs" in lines[-1] and done.stderr == ""
    assert files(logs) == before
    document, runs = prune("--older-than", "25d", logs)
    assert runs == ["a/5", "a/4", "a/3"] and not document["deleted"]
    sizes = {run["run"]: run["bytes"] for run in document["runs"]}
    assert document["total"]["bytes"] == sum(sizes.values())
    assert sizes["a/4"] == sum(p.stat().st_size for p in (logs / "a/4").iterdir())
    assert abs(document["runs"][0]["last_written"] - (time.time() - 50 * DAY)) < DAY
    assert "nothing to delete: 6 runs" in tool("prune", "--older-than", "100d", logs).stdout


def test_rules(logs):
    date = time.strftime("%Y-%m-%d", time.localtime(time.time() - 35 * DAY))
    assert prune("--older-than", date, logs)[1] == ["a/5", "a/4"]
    document, runs = prune("--fewer-than", 21, logs)  # of the longest series, not of all together
    assert runs == ["a/2", "a/1"] and [run["points"] for run in document["runs"]] == [20, 10]
    document, runs = prune("--older-than", "45d", "--fewer-than", 15, logs)  # either selects
    assert [(run["run"], run["why"]) for run in document["runs"]] == [("a/5", ["age"]), ("a/1", ["points"])]
    every = sum(p.stat().st_size for p in logs.rglob("*tfevents*"))
    oldest = sum(p.stat().st_size for p in (logs / "a/5").glob("*tfevents*"))
    assert prune("--max-bytes", every, logs)[1] == []
    assert prune("--max-bytes", every - 1, logs)[1] == ["a/5"]
    assert prune("--max-bytes", every - oldest - 1, logs)[1] == ["a/5", "a/4"]
    assert prune("--older-than", "45d", "--max-bytes", every - oldest, logs)[1] == ["a/5"]
    document, runs = prune("--max-bytes", 10, logs, status=1)  # the one of today stays
    assert len(runs) == 5 and document["total"]["over_bytes"] > 0
    assert "--grace" in tool("prune", "--max-bytes", 10, logs, status=1).stderr
    assert prune("--max-bytes", 0, "--grace", "0s", logs)[1][-1] == "now"
    assert prune("--older-than", "5d", "--grace", "25d", logs)[1] == ["a/5", "a/4", "a/3"]
    assert prune("--older-than", "5d", "--keep", "a/[45]", logs)[1] == ["a/3", "a/2", "a/1"]
    assert prune("--older-than", "5d", "--run", "a/[45]", logs)[1] == ["a/5", "a/4"]
    shutil.copytree(logs, logs.parent / "others")
    assert prune("--older-than", "45d", logs, logs.parent / "others")[1] == [f"{logs}/a/5", f"{logs.parent}/others/a/5"]


def test_no_run_counts_twice(logs):
    before = files(logs)
    (logs.parent / "link").symlink_to(logs)
    for again in logs, logs / "a", logs.parent / "link":
        assert "are the same run" in tool("prune", "--max-bytes", 0, "--delete", logs, again, status=2).stderr
    assert files(logs) == before


def test_delete(logs):
    document, runs = prune("--older-than", "25d", "--delete", logs)
    assert runs == ["a/5", "a/4", "a/3"] and {run["state"] for run in document["runs"]} == {"deleted"}
    assert sorted(p.name for p in (logs / "a").iterdir()) == ["1", "2", "5"]  # no empty directory, but with the notes:
    assert files(logs / "a/5") == ["notes.txt"]
    assert prune("--older-than", "25d", "--delete", logs)[1] == []
    done = tool("prune", "--older-than", "5d", "--delete", logs)
    assert done.stdout.splitlines()[-1].startswith("2 runs, 2 files, ") and "deleted; 1 run, " in done.stdout
    assert tool("stats", logs).stdout.count("\n") == 2


def test_what_is_written_stays(logs):
    file, = (logs / "a/4").iterdir()
    before = files(logs)
    with open(file, "ab"):
        for mode in [], ["--delete"]:
            document, runs = prune("--older-than", "35d", "--keep", "a/5", *mode, logs, status=1)
            assert runs == [] and document["total"]["left"] == 1
            assert "is being written" in document["runs"][0]["reason"]
        assert files(logs) == before
        # Others go in its place to make room.
        room = sum(p.stat().st_size for p in logs.rglob("*tfevents*")) - 1
        assert prune("--max-bytes", room, "--keep", "a/5", logs, status=1)[1] == ["a/3"]
    assert prune("--older-than", "35d", "--keep", "a/5", "--delete", logs)[1] == ["a/4"]


def test_a_running_writer(logs):
    def points():
        return tool("export", "--format=csv", logs / "a/4").stdout.count(",loss,")

    writer = subprocess.Popen([TOOL, "write", "--dir", logs / "a/4", "-"], stdin=subprocess.PIPE)
    try:
        writer.stdin.write(b'{"tag":"loss","step":50,"value":1}\n')
        writer.stdin.flush()
        wait_for(lambda: points() == 41, "the first point")
        age(logs / "a/4", 60)
        document, runs = prune("--older-than", "5d", "--delete", logs, status=1)
        assert runs == ["a/5", "a/3", "a/2", "a/1"]
        writer.stdin.write(b'{"tag":"loss","step":51,"value":1}\n')
        writer.stdin.close()
        assert writer.wait(60) == 0
    finally:
        writer.kill()
        writer.wait()
    assert points() == 42


def test_only_event_files_go(logs, tmp_path):
    """TensorBoard takes any file with that word in its name; what is deleted has to be an event file by its bytes, too."""
    event_file = next((logs / "a/3").iterdir())
    mine = {"plot_tfevents.py": b"import this\n", "tfevents.csv": b"step,value\n1,2\n", "tfevents.zip": b"PK\3\4" + bytes(30),
            "my.tfevents.tar.gz": gzip.compress(b"notes.txt" + bytes(2000)), "zeros.tfevents": bytes(100)}
    for name, data in mine.items():
        (logs / "a/3" / name).write_bytes(data)
    (logs / "a/3/more.tfevents.gz").write_bytes(gzip.compress(event_file.read_bytes()))
    (logs / "a/3/more.tfevents.1.xz").write_bytes(lzma.compress(event_file.read_bytes()))
    (logs / "a/3/none.tfevents.gz").write_bytes(gzip.compress(b""))
    os.link(event_file, tmp_path / "the same file")
    os.mkfifo(logs / "a/3/pipe.tfevents")
    age(logs, 30)
    done = tool("prune", "--older-than", "20d", "--run", "a/3", "--delete", "--json", logs)
    assert f"files with 'tfevents' in their names that are not event files, and stay: {len(mine)}" in done.stderr
    assert json.loads(done.stdout)["total"]["files"] == 4
    assert files(logs / "a/3") == sorted([*mine, "pipe.tfevents"])
    assert (tmp_path / "the same file").stat().st_size > 100


def test_runs_without_points(logs):
    for name in "empty", "begun":
        (logs / name).mkdir()
    (logs / "empty/x.tfevents.1").write_bytes(b"")
    begun = next((logs / "a/1").iterdir()).read_bytes()
    (logs / "begun/x.tfevents.1").write_bytes(begun[:12 + int.from_bytes(begun[:8], "little") + 4])
    assert prune("--fewer-than", 1, "--delete", logs)[1] == []  # they may have been begun in this minute
    age(logs / "empty", 2)
    age(logs / "begun", 3)
    document, runs = prune("--fewer-than", 1, "--delete", logs)
    assert runs == ["begun", "empty"] and [run["points"] for run in document["runs"]] == [0, 0]
    assert not (logs / "empty").exists() and not (logs / "begun").exists() and (logs / "now").exists()


def test_what_cannot_be_done(logs, tmp_path):
    """One run that cannot be deleted, or output that cannot be written: the others go, and the status tells."""
    event_file = next((logs / "a/4").iterdir())
    (logs / "a/4" / (event_file.name + ".prune")).write_text("in the way")
    done = tool("prune", "--older-than", "25d", "--delete", "--json", logs, status=2)
    assert f"{event_file}: cannot be deleted, {event_file.name}.prune is in the way" in done.stderr
    states = {run["run"]: run["state"] for run in json.loads(done.stdout)["runs"]}
    assert states == {"a/5": "deleted", "a/4": "left", "a/3": "deleted"} and event_file.exists()
    with open("/dev/full", "w") as full:
        failed = subprocess.run([TOOL, "prune", "--older-than", "5d", logs], stdout=full, stderr=subprocess.PIPE)
    assert failed.returncode == 2 and b"standard output: cannot write" in failed.stderr


def test_a_mistyped_keep_deletes_nothing(logs):
    before = files(logs)
    done = tool("prune", "--older-than", "5d", "--keep", "a/55", "--delete", logs, status=2)
    assert "--keep 'a/55': no run matches; did you mean 'a/5'" in done.stderr and "nothing is deleted" in done.stderr
    assert files(logs) == before
    tool("prune", "--older-than", "5d", "--keep", "a/55", logs, status=1)
    tool("prune", "--older-than", "5d", "--run", "a/55", "--delete", logs, status=1)
    assert files(logs) == before


def test_fewer_points_judges_no_damage(logs, tmp_path):
    file, = (logs / "a/1").iterdir()
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(bytes(data))
    age(logs, 10)
    (logs / "empty").mkdir()
    (logs / "empty/x.tfevents.1").write_bytes(b"")
    packed = logs / "a/2" / (next((logs / "a/2").iterdir()).name + ".gz")
    packed.write_bytes(gzip.compress(packed.with_suffix("").read_bytes()))
    (logs / "hparams").mkdir()
    subprocess.run([BUILD / "tests/programs/eventlog_sample", "golden", logs / "hparams"], check=True)
    age(logs, 10)
    done = tool("prune", "--json", "--fewer-than", 21, "--delete", logs)
    assert "run a/1: is damaged, so --fewer-than does not select it" in done.stderr
    assert [run["run"] for run in json.loads(done.stdout)["runs"]] == ["a/2", "empty", "hparams", "now"]
    assert not (logs / "a/2").exists()  # the compressed twin as well


def test_hyperparameters_stay(logs):
    """The run that describes the experiment has no points, and none is to be expected."""
    (logs / "experiment").mkdir()
    record = bytes.fromhex("3c00000000000000")  # any length; the golden file's record of hyperparameters
    golden = logs.parent / "golden"
    subprocess.run([BUILD / "tests/programs/eventlog_sample", "golden", golden], check=True)
    data = next(golden.rglob("*tfevents*")).read_bytes()
    assert data[506:514] == record
    (logs / "experiment/x.tfevents.1").write_bytes(data[:40] + data[506:582])
    age(logs, 10)
    assert "experiment" not in prune("--fewer-than", 1000, logs)[1]
    assert "experiment" in prune("--older-than", "5d", logs)[1]


def test_links_are_not_followed(logs, tmp_path):
    outside = tmp_path / "outside"
    (logs / "a/4").rename(outside)
    (logs / "a/4").symlink_to(outside)
    (logs / "a/3/more.tfevents.2").symlink_to(next(outside.iterdir()))
    done = tool("prune", "--older-than", "5d", "--delete", logs)
    assert "symbolic links that are not followed: 2" in done.stderr
    assert len(list(outside.iterdir())) == 1 and (logs / "a/3/more.tfevents.2").is_symlink()
    (tmp_path / "elsewhere").symlink_to(logs)  # the directory itself may be one
    assert prune("--max-bytes", 0, "--grace", "0s", tmp_path / "elsewhere")[1] == ["now"]


def test_widths(logs):
    (logs / "a/4").rename(logs / ("a/" + "long_name_" * 12))
    for columns in 60, 80, 200:
        text = tool("prune", "--older-than", "25d", "--fewer-than", 60, logs,
                    env={**os.environ, "COLUMNS": str(columns), "LC_ALL": "C.UTF-8"}).stdout
        table = text.splitlines()[:-1]
        assert len(table) == 6 and all(len(line) <= columns for line in table), text
        assert ("long_name_" * 12 in text) == (columns == 200)


def test_wrong_use(logs, tmp_path):
    file = next((logs / "a/1").iterdir())
    for arguments in ([logs], ["--older-than", "25d"], ["--older-than", "soon", logs], ["--max-bytes", "x", logs],
                      ["--fewer-than", "0", logs], ["--grace", "x", "--older-than", "1d", logs],
                      ["--older-than", "25d", tmp_path / "none"], ["--older-than", "25d", file],
                      ["--older-than", "25d", "-"]):
        done = tool("prune", *arguments, status=2)
        assert done.stderr.count("\n") == 1 and done.stdout == ""
    (tmp_path / "nothing").mkdir()
    assert tool("prune", "--older-than", "1d", "--keep", "x", "--delete", tmp_path / "nothing").stdout == \
        "nothing to delete: 0 runs, 0 B\n"
