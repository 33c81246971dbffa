"""A part of `make same-bits` (tests/matrix/same_bits.py): some cells of the matrix have one hash and one curve; the list of
cells is whole; and the program tells what differs, keeps results and goes on with them."""
import itertools
import json
import os
import pathlib
import sys

import pytest

import waiting

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "matrix"))

import cells  # noqa: E402  where it is, is known now
import same_bits  # noqa: E402
from cells import Cell, Training  # noqa: E402


def run(chosen, tmp_path):
    matrix = same_bits.Matrix(chosen, same_bits.Results(tmp_path / "results"), {}, tmp_path)
    matrix.run(2)
    return matrix.table()


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for hosts need root")
def test_some_cells(tmp_path, capsys):
    """On one host and several; two trainings are killed at step 37, and go on otherwise."""
    small, large = (("--bucket-bytes", 1024),), (("--bucket-bytes", 64 << 20),)
    ring = Training("lenet", "ring", 3, "one host", 0, small)
    servers = Training("lenet", "ps", 5, "3 hosts", 2, large)
    levels = Training("lenet", "mpi", 4, "2 hosts", 0, (*small, ("--transport", "two-level")))
    threads = Training("lenet", "mirrored shared", 3, "one host", 0, small)
    refused = Training("lenet", "mpi", 5, "2 hosts, in turn", 0, (*small, ("--transport", "two-level")))
    chosen = [Cell(ring), Cell(servers), Cell(threads, levels, 3), Cell(levels, ring, 0), Cell(refused)]
    assert run(chosen, tmp_path), capsys.readouterr().out
    rows = [json.loads(line) for line in (tmp_path / "results" / "results.jsonl").read_text().splitlines()]
    assert len({row["weights"] for row in rows if row["status"] == "ran"}) == 1 and len(rows) == len(chosen) + 1
    assert [row["cell"] for row in rows if row["status"] == "refused"] == [f"{refused}"]
    assert all(row["from"] in range(10, 37) for row in rows if "killed" in row["cell"])
    capsys.readouterr()
    assert run(chosen, tmp_path)
    assert "5 cells, of which 0 are to run" in capsys.readouterr().out


def test_every_strategy(tmp_path, capsys):
    """Fifty steps of each, with every number of workers and of servers, and size of buckets."""
    small, middle, large = ((("--bucket-bytes", size),) for size in cells.BUCKETS)
    chosen = [Training("lenet", "mpi", 1, options=middle), Training("lenet", "mpi", 8, options=(*small, ("--transport", "mpi"))),
              Training("lenet", "ring", 2, options=middle), Training("lenet", "ring", 5, options=large),
              Training("lenet", "ps", 4, servers=1, options=small),
              Training("lenet", "ps", 2, servers=3, options=middle),
              Training("lenet", "hybrid", 3, options=large), Training("lenet", "hybrid", 4, options=small),
              *(Training("lenet", "mirrored shared", count, options=large) for count in (1, 4, 8)),
              *(Training("lenet", "mirrored copied", count, options=small) for count in (2, 3, 5))]
    assert {training.workers for training in chosen} == set(cells.WORKERS)
    assert run([Cell(training) for training in chosen], tmp_path), capsys.readouterr().out


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces for hosts need root")
@pytest.mark.parametrize("layout", ["one host", "2 hosts"])
def test_what_hangs_is_ended(layout, tmp_path, monkeypatch):
    """With its ranks, also on other hosts; the next training has new ones."""
    monkeypatch.setattr(same_bits, "LIMIT", 3)
    bench, training = same_bits.Bench(tmp_path, {}, 10**9), Training("lenet", "mpi", 2, layout)
    hosts, close = [], same_bits.bridged_hosts.Hosts.close
    monkeypatch.setattr(same_bits.bridged_hosts.Hosts, "close", lambda made: (hosts.append(made), close(made)))
    for _ in range(2):
        assert bench.cell(Cell(training))["why"].startswith("hangs: 3 s: ")
        assert bench.process.poll() is not None and bench.hosts is None
    assert len(hosts) == (2 if layout == "2 hosts" else 0)
    assert not any(holder.poll() is None for made in hosts for holder in made.holders.values())
    waiting.wait_for(lambda: not trainers_of(tmp_path), lambda: f"{trainers_of(tmp_path)} to end")
    bench.close()


def trainers_of(directory):
    """Processes with this directory in their command line."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [entry.parent.name] if os.fsencode(directory) in entry.read_bytes() else []
        except OSError:
            pass
    return found


def test_what_differs_is_told(tmp_path, capsys, monkeypatch):
    """Weights, a curve alone, a failure; a cell that differs is run again, and one of another build, too."""
    right = {"status": "ran", "weights": "a", "from": 0, "hashes": {"10": "x", "20": "y"}, "curve": {"1": "c", "2": "d"}}
    of_ring = iter([{**right, "weights": "b", "hashes": {"10": "x", "20": "z"}}, right])
    answers = {"single": right, "mpi": {**right, "curve": {"1": "c", "2": "e"}}, "hybrid": {"status": "failed", "why": "status 1"}}
    monkeypatch.setattr(same_bits.Bench, "cell",
                        lambda _, cell: next(of_ring) if cell.strategy == "ring" else answers[cell.strategy])
    chosen = [Cell(Training("lenet", name, 2)) for name in ("ring", "mpi", "hybrid")]
    assert not run(chosen, tmp_path)
    told = capsys.readouterr().out
    for name, text in (("ring", "other weights, b, from step 20"), ("mpi", "another curve from step 2"), ("hybrid", "status 1")):
        assert f"WRONG lenet {name}, 2 workers, one host: {text}" in told and f"wrong: lenet {name}" in told
    assert run(chosen[:1], tmp_path)
    assert "1 cells, of which 1 are to run" in capsys.readouterr().out
    file = tmp_path / "results" / "results.jsonl"
    file.write_text(file.read_text().replace('"build": "', '"build": "0') + '{"build": "')
    found = same_bits.Results(tmp_path / "results")
    assert found.old == 5 and not found.found and file.read_text() == ""


def test_cells_are_all():
    """Every strategy with each number of workers, of servers, and size of buckets, and resumed from every other."""
    for model in cells.MODELS:
        found = list(cells.cells([model]))
        assert len(set(map(str, found))) == len(found) and found[0] == cells.reference(model)
        pairs = {(cell.killed.strategy, cell.training.strategy) for cell in found if cell.killed}
        assert len(pairs) == 7 * 6
        assert all(cell.killed.workers != cell.training.workers for cell in found if cell.killed)
        if cells.MODELS[model].few:
            assert len(found) == 1 + 7 * 6
            continue
        here = {(cell.training.strategy, cell.training.workers, cell.training.servers, cell.training.options[0][1])
                for cell in found[1:] if cell.layout == "one host" and not cell.killed}
        for strategy in ("mpi", "ring", "ps", "hybrid", "mirrored shared", "mirrored copied"):
            served = strategy == "ps" or (strategy == "hybrid" and cells.MODELS[model].tables)
            for wanted in itertools.product(cells.WORKERS, cells.SERVERS if served else (0,), cells.BUCKETS):
                assert (strategy, *wanted) in here
        gathered = {(cell.training.workers, cell.layout) for cell in found
                    if ("--sparse-exchange", "all-gather") in cell.training.options}
        assert len(gathered) == (len(cells.WORKERS) + sum(
            workers >= hosts for workers in cells.WORKERS for hosts in list(cells.LAYOUTS.values())[1:])) * cells.MODELS[model].tables
        for strategy, layout in itertools.product(("mpi", "ring", "ps", "hybrid"), list(cells.LAYOUTS)[1:]):
            those = [cell.training for cell in found if cell.training.strategy == strategy and cell.layout == layout]
            assert {training.workers for training in those} >= {4, 5, 8}
            assert {dict(training.options)["--bucket-bytes"] for training in those} == set(cells.BUCKETS)
