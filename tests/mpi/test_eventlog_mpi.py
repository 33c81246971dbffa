"""eventlog_mpi.h: numbers reduced over ranks, written once; ranks that differ get the same sentence and nobody hangs."""
import functools
import math
import operator
import pathlib
import subprocess
import tempfile

import pytest

import ranks
from tensorboard_server import python_loader_points
from waiting import DEADLINE

CASES = ranks.BUILD / "tests/mpi/eventlog_mpi_cases"
ARGUMENT, IO = -4, -1


def cases(count, name, directory, status=0):
    """{(what, how often it was before): [(code, sentence) of each rank]}."""
    found = {}
    with tempfile.TemporaryDirectory() as said:
        run = subprocess.run(["mpirun", "--bind-to", "none", "-n", str(count), CASES, name,
                              directory, f"{said}/"], capture_output=True, text=True, timeout=DEADLINE,
                             env=ranks.ENVIRONMENT)
        assert run.returncode == status, run.stdout + run.stderr
        for rank in range(count):
            times = {}
            for line in pathlib.Path(said, str(rank)).read_text().splitlines():
                what, code, sentence = line.split("\t")
                number = times[what] = times.get(what, -1) + 1
                found.setdefault((what, number), []).append((int(code), sentence))
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_reduced(count, tmp_path):
    found = cases(count, "reduce", tmp_path)
    assert set(found) == {(what, 0) for what in ("open", "many", "flush", "close")}
    assert all(line == [(0, "")] * count for line in found.values())
    assert len(list(tmp_path.iterdir())) == 1
    got = python_loader_points(tmp_path)
    per_rank = [[(rank + 1) * (step + 1) for rank in range(count)] for step in range(10)]
    for tag, want in (("mean", [sum(v) / count for v in per_rank]), ("sum", [sum(v) for v in per_rank]),
                      ("min", [min(v) for v in per_rank]), ("max", [-min(v) for v in per_rank])):
        assert [p[0] for p in got[tag]] == list(range(10))
        assert [p[1] for p in got[tag]] == [1700000000.0 + step for step in range(10)], "rank 0's times"
        assert [p[2] for p in got[tag]] == pytest.approx(want, rel=1e-7)
    in_order = functools.reduce(operator.add, [[1, 1e17, -1e17, 1][rank % 4] for rank in range(count)])
    assert [p[2] for p in got["order"]] == pytest.approx([in_order] * 10, rel=1e-7)
    assert all(math.isnan(p[2]) for p in got["nan"]) and len(got["nan"]) == 10
    assert [got[f"many/{i}"][0][2] for i in range(5000)] == [sum(rank + i for rank in range(count)) for i in range(5000)]


def test_a_run_per_rank(tmp_path):
    found = cases(3, "ranks", tmp_path)
    assert all(code == 0 for line in found.values() for code, _ in line)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["rank-0", "rank-1", "rank-2"]
    for rank in range(3):
        points = python_loader_points(tmp_path / f"rank-{rank}")["loss"]
        assert [(p[0], p[2]) for p in points] == [(s, rank * 10 + s) for s in range(rank + 1)]


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_that_differ(count, tmp_path):
    """The same code and sentence on every rank, and the next call works."""
    found = cases(count, "differ", tmp_path)
    last = count - 1
    want = {
        "tag": f"the ranks differ: rank 0 calls step 0 of 1 scalar 'loss' (mean); rank {last} calls step 0 of 1 scalar "
               f"'other' (mean)",
        "step": f"rank {last} calls step 3 of 1 scalar 'loss' (mean)",
        "operation": f"rank {last} calls step 3 of 1 scalar 'loss' (min)",
        "count": f"rank 0 calls step 4 of 2 scalars, 'a' (sum) first; rank {last} calls step 4 of 1 scalar 'a' (sum)",
        "second": f"rank 0 and rank {last} call step 5 of 2 scalars, 'a' (sum) first, but not with the same",
        "function": f"rank 0 calls step 6 of 1 scalar 'loss' (mean); rank {last} calls flush",
        "no tag": f"rank {last} of {count}: scalar 1 of 1 has no tag",
        "none": f"rank {last} of {count}: 0 scalars",
        "no operation": f"rank {last} of {count}: scalar 'loss': 7 is not an operation",
        "not UTF-8": f"rank 0 of {count}: ",
    }
    for what, sentence in want.items():
        line = found[what, 0]
        assert len(line) == count and len(set(line)) == 1, line
        assert line[0][0] == ARGUMENT and sentence in line[0][1], line
    for what in (("fine", 0), ("fine", 1), ("open", 0), ("close", 0)):
        assert found[what] == [(0, "")] * count
    assert [(p[0], p[2]) for p in python_loader_points(tmp_path)["loss"]] == [(1, count), (11, count)]


def test_open_fails_on_all_ranks(tmp_path):
    (tmp_path / "file").write_text("")
    line = cases(3, "reduce", tmp_path / "file")["open", 0]
    assert len(line) == 3 and len(set(line)) == 1 and line[0][0] == IO and line[0][1].startswith("rank 0 of 3: ")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/rank-1").write_text("")
    line = cases(3, "ranks", tmp_path / "runs")["open", 0]
    assert len(line) == 3 and len(set(line)) == 1 and line[0][0] == IO and line[0][1].startswith("rank 1 of 3: ")
    line = cases(2, "mixed", tmp_path / "mixed")["open", 0]
    assert len(set(line)) == 1 and "rank 0 calls open, reduced; rank 1 calls open, a run per rank" in line[0][1]


def test_a_rank_that_does_not_come(tmp_path):
    found = cases(3, "miss", tmp_path, status=1)  # mpirun's, for ranks that cannot finalize
    assert [code for code, _ in found["missed", 0]] == [IO, IO]
    assert all(f"rank {rank} of 3 waited 0.2 seconds for the other ranks in step 1 of 1 scalar 'loss'" in sentence
               for rank, (_, sentence) in enumerate(found["missed", 0]))
    assert all(code == IO and "only closing is left" in sentence for code, sentence in found["after", 0])
    assert found["close", 0] == [(0, ""), (0, "")]
    assert [(p[0], p[2]) for p in python_loader_points(tmp_path)["loss"]] == [(0, 3)]


def test_before_and_after_mpi(tmp_path):
    found = cases(1, "early", tmp_path / "early")
    assert found["open", 0][0][0] == ARGUMENT and "MPI is not running" in found["open", 0][0][1]
    found = cases(1, "late", tmp_path / "late")
    assert found["close", 0] == [(0, "")]
    assert len(python_loader_points(tmp_path / "late")["loss"]) == 1
