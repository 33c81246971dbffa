"""What `make bench` says of an earlier run: a change counts where the measurements of both runs do not overlap."""
import json
import os
import pathlib
import sys

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def summary(monkeypatch):
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    import summary
    monkeypatch.setattr(summary, "RESULTS", [])
    monkeypatch.setattr(summary, "ROOFS", {})
    return summary


def test_compare(summary, tmp_path, capsys):
    before = {"slow": [10, 11, 12], "fast": [10, 11, 12], "same": [10, 11, 12], "once": [11], "gone": [1, 2]}
    now = {"slow": [12.5, 13, 14], "fast": [8, 9, 9.5], "same": [11.5, 12, 13], "once": [22], "new": [5, 6]}
    for measurements, path in ((before, tmp_path / "before"), (now, tmp_path / "now")):
        summary.RESULTS.clear()
        for name, values in measurements.items():
            summary.add(name, "ms", sorted(values)[len(values) // 2], 20, "peer", measured=values)
        summary.write(path)
    assert json.loads((tmp_path / "now").read_text())["results"][0]["measured"] == [12.5, 13, 14]
    summary.show(*summary.read(tmp_path / "before"))
    said = capsys.readouterr().out
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.startswith(tuple(now))}
    assert rows["slow"][-4:] == ["11", "0.85", "x", "worse"] and rows["fast"][-4:] == ["11", "1.22", "x", "better"]
    assert rows["same"][-1] == "x" and rows["once"][-1] == "?" and rows["new"][-1] == "x"
    assert "of 4 results that were measured before, too, 1 are worse and 1 better" in said and "1 of before are not" in said
    assert "worse: slow: 11 ms (10 to 12) before, 13 ms (12.5 to 14) now: 1.18 times" in said
    assert "better: fast: 11 ms (10 to 12) before, 9 ms (8 to 9.5) now: 0.82 times" in said


def test_other_programs(monkeypatch):
    """The processors of this process alone count, without waiting for disks and without guests twice."""
    monkeypatch.syspath_prepend(BENCH)
    import processors
    stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 20 30 5000 700 4 5 6 90 1\ncpu1 1000 0 0 9 9 0 0 0 0 0\ncpu10 7 0 0 1 1 0 0 1 0 0\nintr 5\n\n"
    ticks = os.sysconf("SC_CLK_TCK")
    assert processors.seconds_of(stat, {0, 10}) == 173 / ticks and processors.seconds_of(stat, {5}) == processors.seconds_of("", {0}) == 0
    others = processors.Others()
    for share, said in (0.05, ""), (0.25, "other programs used 25 % of the processors meanwhile: these speeds say little"):
        monkeypatch.setattr(others, "share", lambda share=share: share)
        assert others.note() == said


def test_files_of_older_versions(summary, tmp_path, capsys):
    """They have no measurements."""
    (tmp_path / "old").write_text(json.dumps({"version": 1, "results": [{"what": "a", "unit": "ms", "ours": 2}]}))
    summary.add("a", "ms", 3, measured=[3, 4])
    summary.show(*summary.read(tmp_path / "old"))
    assert "0.67 x       ?" in capsys.readouterr().out
