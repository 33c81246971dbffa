"""Updates without the slowest workers (--replicas-to-aggregate), and runs that follow the record of another one: what was used
and dropped, by whom, and the same bits."""
import collections
import os
import pathlib
import signal
import struct

import pytest

import ranks
from interposed import SLOW_PRODUCTS, interposed
from waiting import DEADLINE

MODEL = ["--model", "lenet", "--data", "fashion-mnist", "--run-option", "ps"]
LENET = [*MODEL, "--batch-size", 8]


def record(path):
    """[(step, worker, version), ...]; a whole record has its end."""
    data = path.read_bytes()
    assert data[:8] == b"arrivals"
    rows = list(struct.iter_unpack("<III", data[136:len(data) - (len(data) - 136) % 12]))
    if rows and rows[-1][0] == 0xffffffff:
        assert rows.pop()[1] == len(rows)
    return rows


def test_a_slow_worker(tmp_path):
    """The time of an update is that of the third fastest of four, and the fourth is left out of nearly all."""
    library = interposed(tmp_path, "slow_products", SLOW_PRODUCTS)["LD_PRELOAD"]
    steps = 120
    options = [*LENET, "--replicas-to-aggregate", 3, "--max-steps", steps, "--json", "--record", tmp_path / "record"]
    trainer = [str(ranks.TRAINER), *map(str, options)]
    slow = ["env", f"LD_PRELOAD={library}", "SLOW_MICROSECONDS=50000", *trainer]
    summary, said = ranks.finish(ranks.together((3, trainer), (1, slow), (1, trainer)))
    assert "4 workers (1 backup) and 1 server; global batch 24 (3 x 8)" in said
    rows = record(tmp_path / "record")
    used = collections.Counter(worker for step, worker, version in rows if version == step)
    for step in range(steps):
        assert len({worker for at, worker, version in rows if at == step == version}) == 3
    assert summary["gradients_used"] == 3 * steps == sum(used.values())
    assert summary["samples_used"] == 3 * 8 * steps and summary["workers_left_out"] == steps
    assert summary["samples_dropped"] == 8 * summary["gradients_dropped"]
    # All that were dropped in an update are in the record; at the end each worker may have one more.
    dropped = sum(version < step for step, _, version in rows)
    assert dropped <= summary["gradients_dropped"] <= dropped + 4
    assert used[3] <= steps / 4 and min(used[w] for w in range(3)) >= steps / 2
    slow = summary["time"][3]
    gradient = (slow["seconds"] - slow["waiting"]) / slow["steps"]
    assert summary["seconds"] / steps < gradient / 3
    assert "times slower" not in said or "cost" not in said


@pytest.mark.parametrize("count, options", [(4, ["--async"]), (5, ["--async", "--staleness", 1, "--servers", 2]),
                                            (5, ["--replicas-to-aggregate", 2]),
                                            (6, ["--replicas-to-aggregate", 3, "--servers", 2])],
                         ids=["async", "bounded", "backup", "two servers"])
def test_replay(count, options, tmp_path):
    """The same weights after the same steps, also with checkpoints in between; a shorter run is its beginning."""
    def train(*more):
        return ranks.train(count, *LENET, *options, "--json", "--quiet", *more)[0]

    first = train("--max-steps", 40, "--record", tmp_path / "record")
    again = train("--max-steps", 40, "--replay", tmp_path / "record", "--record", tmp_path / "again", "--checkpoint-dir",
                  tmp_path / "ckpt", "--save-checkpoint-steps", 7)
    assert first["weights"] == again["weights"]
    assert (tmp_path / "record").read_bytes() == (tmp_path / "again").read_bytes()
    if "--replicas-to-aggregate" in options:
        assert again["gradients_used"] == first["gradients_used"] == 40 * options[1]
    short = train("--max-steps", 20, "--replay", tmp_path / "record", "--record", tmp_path / "short")
    assert short["global_step"] == 20
    rows = record(tmp_path / "short")
    assert rows == record(tmp_path / "record")[:len(rows)] and rows[-1][0] == 19
    assert not list(tmp_path.glob("*.part"))


def test_replay_refused(tmp_path):
    """Another number of workers, a damaged file, one that cannot be written: said before the training."""
    path = tmp_path / "record"
    options = [*LENET, "--replicas-to-aggregate", 2, "--max-steps", 5]
    ranks.train(4, *options, "--record", path)
    said = ranks.train(5, *options, "--replay", path, status=2)[1]
    assert f"--replay {path} is of a run with 3 workers, and here are 4" in said
    for more, wanted in ((["--seed", 9], "a run with --seed 1, and this one has 9"),
                         (["--learning-rate", 0.3], "a run with another optimizer, learning rate")):
        assert wanted in ranks.train(4, *options, *more, "--replay", path, status=2)[1]
    data = bytearray(path.read_bytes())
    data[136 + 4] ^= 1  # another worker
    path.write_bytes(data)
    assert "damaged at byte" in ranks.train(4, *options, "--replay", path, status=2)[1]
    assert "cannot open" in ranks.train(4, *options, "--record", tmp_path / "no" / "no", status=2)[1]


def test_several_batches_a_worker(tmp_path):
    """Four gradients of two workers: each computes two batches, which are micro-shards: the bits of one worker's four."""
    _, said = ranks.train(3, *LENET, "--replicas-to-aggregate", 4, "--max-steps", 4, "--scale-learning-rate", "linear",
                          "--checkpoint-dir", tmp_path / "two")
    assert "2 workers and 1 server; global batch 32 (2 x 16, 4 micro-shards)" in said and "(0.05 x 4 workers)" in said
    ranks.train(0, *LENET[:4], "--global-batch", 32, "--micro-shards", 4, "--max-steps", 4, "--learning-rate", 0.2,
                "--checkpoint-dir", tmp_path / "one")
    assert ranks.variables(tmp_path / "two" / "model.ckpt-4") == ranks.variables(tmp_path / "one" / "model.ckpt-4")


def test_what_does_not_fit():
    for options, says in [(["--replicas-to-aggregate", 5, "--record", "/dev/null"], "leave out --record"),
                          (["--replicas-to-aggregate", 2, "--micro-shards", 9, "--batch-size", 9],
                           "is not one node of their tree"),
                          (["--replicas-to-aggregate", 2, "--reproducible"], "--reproducible: an update has")]:
        assert says in ranks.train(4, *MODEL, *options, "--max-steps", 3, status=2)[1]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["terminated", "killed"])
@pytest.mark.parametrize("options", [["--replicas-to-aggregate", 2], ["--async", "--staleness", 2]], ids=["backup", "bounded"])
def test_ended(how, options, tmp_path):
    """Ended by a signal: saved, and resumed. Its record is whole, or, if a rank was killed, useful: the first steps again."""
    directory, path = tmp_path / "ckpt", tmp_path / "record"
    process = ranks.start(4, *LENET, *options, "--max-steps", 10**9, "--checkpoint-dir", directory, "--record", path,
                          OMPI_MCA_odls_base_sigkill_timeout="3")
    part = pathlib.Path(f"{path}.part")
    ranks.wait_for(process, lambda: part.exists() and part.stat().st_size > 136 + 30 * 12, "some steps to be recorded")
    if how == signal.SIGTERM:
        process.send_signal(how)
    else:
        os.kill(ranks.rank_processes(process)[1], how)
    _, said = process.communicate(timeout=DEADLINE)
    state = ranks.last_state(directory)
    if how == signal.SIGTERM:
        steps = state["global_step"]
        assert state["state"] == "stopped" and f"model.ckpt-{steps}" in ranks.state_file(directory), said
        assert path.exists() and not part.exists()
        ranks.train(4, *LENET, *options, "--max-steps", steps, "--replay", path, "--checkpoint-dir", tmp_path / "again")
        assert ranks.variables(tmp_path / "again" / f"model.ckpt-{steps}") == ranks.variables(
            directory / f"model.ckpt-{steps}")
        ranks.train(4, *LENET, *options, "--max-steps", steps + 3, "--checkpoint-dir", directory)
        assert ranks.training_json(directory)["global_step"] == steps + 3
    else:
        assert state["state"] == "failed" and part.exists() and not path.exists(), said
        ranks.train(4, *LENET, *options, "--max-steps", 10, "--replay", part)
