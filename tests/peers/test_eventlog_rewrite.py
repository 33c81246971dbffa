"""The commands that make logs into other logs: TensorBoard's loaders read what they write, every value bit for bit."""
import json
import os
import pathlib
import subprocess

import pytest

from tensorboard_server import python_loader_points

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"
pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing import event_file_loader  # noqa: E402
from tensorboard.compat.proto import event_pb2  # noqa: E402


def tool(*arguments, status=0, **more):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, **more)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stdout if status < 2 else done.stderr


def told(*arguments, **more):
    return json.loads(tool(*arguments, "--json", **more))["total"]


def event_files(directory):
    return sorted(p for p in pathlib.Path(directory).rglob("*tfevents*") if p.is_file())


def pairs(old, new):
    """The files of two logs with the same names."""
    before, after = event_files(old), event_files(new)
    assert [p.relative_to(old) for p in before] == [p.relative_to(new) for p in after] != []
    return zip(before, after)


def events(path):
    return [event_pb2.Event.FromString(e) for e in event_file_loader.RawEventFileLoader(str(path)).Load()]


def values(path, renamed=lambda tag: tag):
    """(step, wall time, tag, the rest of the value as bytes) of each value of a file, in order."""
    found = []
    for event in events(path):
        for value in event.summary.value:
            tag = renamed(value.tag)
            value.ClearField("tag")
            found.append((event.step, event.wall_time, tag, value.SerializeToString()))
    return found


def others(path):
    return [e.SerializeToString() for e in events(path) if e.WhichOneof("what") != "summary"]


def test_every_kind_survives_a_new_name(kinds, tmp_path):
    report = told("rename-tag", "--regex", "^=x/", kinds, "-o", tmp_path / "new")
    count = 0
    for a, b in pairs(kinds, tmp_path / "new"):
        assert values(a, lambda tag: "x/" + tag) == values(b) and others(a) == others(b)
        count += len(values(a))
    assert report["values"] == report["renamed"] == count > 20
    # And back again: the same values in files as long as they were.
    tool("rename-tag", "--regex", "^x/=", tmp_path / "new", "-o", tmp_path / "back")
    for a, b in pairs(kinds, tmp_path / "back"):
        assert values(a) == values(b)
        assert len(a.read_bytes()) == len(b.read_bytes())


def test_names_change_places(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    before = python_loader_points(tmp_path / "log")
    tool("rename-tag", "loss=lr", "lr=loss", tmp_path / "log", "-o", tmp_path / "new")
    after = python_loader_points(tmp_path / "new")
    assert repr(after) == repr({"lr": before["loss"], "loss": before["lr"]})
    tool("rename-tag", "-e", "loss=lr", "-e", "lr=loss", tmp_path / "log", "-o", tmp_path / "swapped")
    assert repr(python_loader_points(tmp_path / "swapped")) == repr(after)
    log = event_files(tmp_path / "log")[-1]  # of the run ".", behind eval/
    assert "both be 'lr'" in tool("rename-tag", "loss=lr", tmp_path / "log", "-o", tmp_path / "none", status=2)
    assert not (tmp_path / "none").exists()
    assert "holds event files" in tool("rename-tag", "loss=x", log, "-o", tmp_path / "new", status=2)
    tool("rename-tag", "loss=x", log, "-o", tmp_path / "new", "-f")
    assert set(python_loader_points(tmp_path / "new")) == {"x", "lr"}
    assert "one of the input files" in tool("rename-tag", "loss=x", log, "-o", log.parent, "-f", status=2)
    tool("rename-tag", "nothing=x", log, "-o", tmp_path / "copy", status=1)
    assert event_files(tmp_path / "copy")[0].read_bytes() == log.read_bytes()


def test_series_are_dropped(kinds, tmp_path):
    tags = {v[2] for p in event_files(kinds) for v in values(p)}
    gone = {tag for tag in tags if tag.startswith("i")}
    assert gone and gone != tags
    report = told("drop-tag", "i*", kinds, "-o", tmp_path / "less")
    assert report["tags"] == len(gone) and report["dropped"] > 0
    for a, b in pairs(kinds, tmp_path / "less"):
        assert [v for v in values(a) if v[2] not in gone] == values(b) and others(a) == others(b)
    tool("drop-tag", "i*", "[a-h]*", kinds, "-o", tmp_path / "several")
    assert {v[2] for p in event_files(tmp_path / "several") for v in values(p)} == {t for t in tags if t[0] not in "abcdefghi"}
    tool("drop-tag", "--keep", "--tag", "i*", kinds, "-o", tmp_path / "only")
    for a, b in pairs(kinds, tmp_path / "only"):
        assert [v for v in values(a) if v[2] in gone] == values(b) and others(a) == others(b)


def test_in_place_keeps_the_old_file(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    old = {p: p.read_bytes() for p in event_files(tmp_path / "log")}
    with open(next(iter(old)), "ab"):
        assert "is being written" in tool("drop-tag", "loss", tmp_path / "log", "--in-place", status=2)
    assert {p: p.read_bytes() for p in event_files(tmp_path / "log")} == old
    tool("drop-tag", "lr", tmp_path / "log", "--in-place")
    changed = [p for p in old if p.read_bytes() != old[p]]
    assert len(changed) == 1 and set(python_loader_points(changed[0].parent)) == {"loss"}
    backup = changed[0].with_name(changed[0].name.replace("tfevents", "tf-events") + ".bak")
    assert backup.read_bytes() == old[changed[0]]
    tool("drop-tag", "l*", tmp_path / "log", "--in-place", status=2)  # a backup is there
    assert event_files(tmp_path / "log") == sorted(old)


def test_damage_is_told_and_left_out(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    log = event_files(tmp_path / "log")[-1]
    data = bytearray(log.read_bytes())
    data[60] ^= 1
    log.write_bytes(bytes(data[:-3]))
    done = subprocess.run([TOOL, "drop-tag", "none", log, "-o", tmp_path / "new", "--json"], capture_output=True, text=True)
    report = json.loads(done.stdout)["total"]
    assert done.returncode == 1 and report["damage"] == 1 and report["lost"] > 0
    assert f"{log}:40: wrong data CRC" in done.stderr and "incomplete last record" in done.stderr
    tool("verify", tmp_path / "new")


def largest_triangles(points, most):
    """The published algorithm, step by step."""
    if len(points) <= most:
        return points
    width, kept, start = (len(points) - 2) / (most - 2), [points[0]], 1
    edge = lambda b: 1 + int(b * width)  # noqa: E731
    for bucket in range(most - 2):
        end = len(points) - 1 if bucket + 3 == most else edge(bucket + 1)
        behind = points[end:] if bucket + 3 == most else points[end:len(points) - 1 if bucket + 4 == most else
                                                                edge(bucket + 2)]
        mx, my = sum(p[0] for p in behind) / len(behind), sum(p[1] for p in behind) / len(behind)
        px, py = kept[-1]
        kept.append(max(points[start:end], key=lambda p: abs((px - mx) * (p[1] - py) - (px - p[0]) * (my - py))))
        start = end
    return kept + [points[-1]]


def test_fewer_points(kinds, tmp_path):
    subprocess.run([TOOL, "write", "--dir", tmp_path / "log", "-"], check=True, text=True, input="step,a,b\n" + "".join(
        f"{s},{(s * 7919 % 1000) / 1024 + s / 100},{s % 3 if s < 40 else ''}\n" for s in range(1000)))
    before = python_loader_points(tmp_path / "log")
    report = told("downsample", "--max-points", 100, tmp_path / "log", "-o", tmp_path / "shape")
    after = python_loader_points(tmp_path / "shape")
    assert [(s, v) for s, _, v in after["a"]] == largest_triangles([(s, v) for s, _, v in before["a"]], 100)
    assert after["b"] == before["b"] and (report["series"], report["dropped"]) == (1, 900)
    told("downsample", "--every", 7, "--tag", "a", tmp_path / "log", "--in-place")
    after = python_loader_points(tmp_path / "log")
    assert after == {"a": before["a"][::7] + [before["a"][-1]] * (999 % 7 > 0), "b": before["b"]}
    told("downsample", "--max-points", 2000, tmp_path / "shape", "-o", tmp_path / "copy", status=1)
    # All kinds: the first and the last of each series.
    told("downsample", "--max-points", 2, kinds, "-o", tmp_path / "ends")
    for a, b in pairs(kinds, tmp_path / "ends"):
        whole, fewer = values(a), values(b)
        for tag in {v[2] for v in whole}:
            old, new = [v for v in whole if v[2] == tag], [v for v in fewer if v[2] == tag]
            assert new == old[:1] + old[1:][-1:]
    for wrong in ([], ["--every", 0], ["--max-points", 1], ["--every", 2, "--max-points", 2]):
        tool("downsample", *wrong, kinds, "-o", tmp_path / "x", status=2)


def test_split_by_tags_and_steps(kinds, tmp_path):
    told("split", "--tags", "one=i*", "--tags", "two=t*", "--rest", "others", kinds, "-o", tmp_path / "tags")
    old = event_files(kinds)
    for name, mine in (("one", lambda t: t[0] == "i"), ("two", lambda t: t[0] == "t"), ("others", lambda t: t[0] not in "it")):
        for a in old:
            b = tmp_path / "tags" / name / a.relative_to(kinds)
            want = [v for v in values(a) if mine(v[2])]
            assert want == values(b) and others(a) == others(b) if want else not b.exists()
    report = told("split", "--tags", "one=i*", kinds, "-o", tmp_path / "one")
    assert report["dropped"] == sum(v[2][0] != "i" for a in old for v in values(a))
    told("split", "--steps", "low=:2", "--steps", "high=2:", kinds, "-o", tmp_path / "steps")
    for a in old:
        for name, mine in (("low", lambda s: s < 2), ("high", lambda s: s >= 2)):
            b = tmp_path / "steps" / name / a.relative_to(kinds)
            want, got = [v for v in values(a) if mine(v[0])], values(b) if b.exists() else []
            # A series whose first values are in the other part begins with their metadata.
            assert [v[:3] for v in got] == [v[:3] for v in want]
            assert all(g[3].startswith(w[3]) for g, w in zip(got, want))
    tool("verify", tmp_path / "tags", tmp_path / "steps")
    for wrong in (["--tags", "x"], ["--steps", "a=5:2"], ["--steps", "a=:"], ["--size", "0"], ["--size", "1x"], [],
                  ["--by", "run", "--size", "1k"], ["--tags", "a=x", "--tags", "a=y"], ["--tags", "../a=x"]):
        tool("split", *wrong, kinds, "-o", tmp_path / "x", status=2)


def test_split_by_size_run_and_session(kinds, tmp_path):
    told("split", "--size", "2k", kinds, "-o", tmp_path / "size")
    for a in event_files(kinds):
        parts = sorted((tmp_path / "size" / a.relative_to(kinds)).parent.glob(a.name + "*"))
        assert (len(parts) > 1) == (a.stat().st_size > 2048)
        assert all(p.stat().st_size <= 2048 or len(events(p)) == 2 for p in parts)
        assert all(events(p)[0].file_version == "brain.Event:2" for p in parts)
        assert [v[:3] for v in values(a)] == [v[:3] for p in parts for v in values(p)]
    tool("verify", tmp_path / "size")
    for number, (steps, wall) in enumerate((((0, 10, 20), 0), ((30, 40), 100), ((20, 30), 200), ((5,), 300))):
        text = "step,wall_time,a\n" + "".join(f"{s},{1.7e9 + wall + s},1\n" for s in steps)
        subprocess.run([TOOL, "write", "--new", "--dir", tmp_path / "log/r/s", "-"], check=True, text=True, input=text)
    told("split", "--by", "session", tmp_path / "log", "-o", tmp_path / "sessions")
    got = {p.name: [s for s, *_ in python_loader_points(p)["a"]] for p in (tmp_path / "sessions/r/s").iterdir()}
    assert got == {"session-1": [0, 10, 20, 30, 40], "session-2": [20, 30], "session-3": [5]}
    told("split", "--by", "run", tmp_path / "log", "-o", tmp_path / "runs")
    assert [p.name for p in (tmp_path / "runs").iterdir()] == ["r-s"]
