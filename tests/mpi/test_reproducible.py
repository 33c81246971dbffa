"""--reproducible: one hash of the weights for any number of workers, any synchronous strategy, and after a resume."""
import os
import platform
import re
import shutil
import signal
import subprocess

import pytest

import ranks
import waiting

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--reproducible", "--global-batch", 64, "--hash-every", 4,
         "--json", "--log-every", 1]


def hashes(said):
    """{step: hash} of the log lines."""
    return dict(re.findall(r"^step: (\d+), weights: ([0-9a-f]{16})$", said, re.M))


def curve(said):
    return re.findall(r"^step: \d+, loss: .*$", said, re.M)


@pytest.fixture(scope="module")
def alone():
    """What one rank computes: its hashes, its points, and the hash of its last weights."""
    summary, said = ranks.train(0, *LENET, "--max-steps", 9)
    assert list(hashes(said)) == ["4", "8", "9"] and hashes(said)["9"] == summary["weights"]
    assert len(set(hashes(said).values())) == 3
    return hashes(said), curve(said)


def test_hashes_in_tensorboard(alone, tmp_path):
    """As texts, by TensorBoard's own reading: a float would not hold all digits."""
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    ranks.train(2, *LENET, "--run-option", "mpi", "--max-steps", 9, "--log-dir", tmp_path)
    events = loader.EventAccumulator(str(tmp_path), size_guidance={"tensors": 0}).Reload()
    found = {str(event.step): event.tensor_proto.string_val[0].decode() for event in events.Tensors("weights")}
    assert events.SummaryMetadata("weights").plugin_data.plugin_name == "text" and found == alone[0]


@pytest.mark.parametrize("count,options", [
    (3, ["--run-option", "mpi", "--bucket-bytes", 1024]),
    (5, ["--run-option", "mpi", "--transport", "mpi"]),
    (5, ["--run-option", "ps", "--servers", 2, "--bucket-bytes", 1024]),
    (6, ["--run-option", "ps"]),
    (0, ["--run-option", "mirrored", "--threads", 3]),
    (0, ["--run-option", "mirrored", "--threads", 5, "--weights", "shared"]),
    (0, ["--threads", 3]), (2, ["--run-option", "mpi", "--threads", 3]), (3, ["--run-option", "ps", "--threads", 2])],
    ids=["mpi-3", "messages-5", "ps-3x2", "ps-5x1", "mirrored-3", "mirrored-5", "threads-3", "mpi-2x3", "ps-2x2"])
def test_one_hash(count, options, alone):
    summary, said = ranks.train(count, *LENET, "--max-steps", 9, *options)
    assert (hashes(said), curve(said)) == alone
    assert {str(row["step"]): row["weights"] for row in summary["hashes"]} == hashes(said)
    assert [len(row["workers"] + row["servers"]) for row in summary["hosts"]] == [max(count, 1)]
    assert "8 micro-shards" in said and re.search(r"(; |global )batch 64 ", said)
    assert re.search(r" \(\d x (8 to 16|16 to 24|32|64), 8 micro-shards(, \d threads( each)?)?\)", said), said


def test_threads_are_micro_shards():
    """Without --micro-shards each thread has a part of its worker's batch; gradients travel as they always do."""
    lenet = ["--model", "lenet", "--data", "fashion-mnist", "--max-steps", 4, "--json"]
    alone = [ranks.train(0, *lenet, "--batch-size", 24, *how) for how in (["--threads", 3], ["--micro-shards", 3])]
    assert alone[0][0]["weights"] == alone[1][0]["weights"] and "(1 x 24, 3 threads)" in alone[0][1]
    found = {ranks.train(count, *lenet, "--batch-size", 24, "--threads", 2, "--run-option", how)[0]["weights"]
             for count, how in [(2, "mpi"), (2, "ring"), (3, "ps")]}
    assert len(found) == 1
    for options in ["ps", "--async"], ["mpi", "--exchange", "bfloat16", "--transport", "mpi"]:
        summary, _ = ranks.train(3, *lenet, "--run-option", *options, "--batch-size", 8, "--threads", 2)
        assert summary["state"] == "finished"
    _, said = ranks.train(0, *lenet, "--batch-size", 16, "--threads", 3, status=2)
    assert "--threads 3: a worker's batch of 16 cannot be cut into 3 equal parts" in said


def test_stopped_and_resumed_otherwise(alone, tmp_path):
    """Five ranks are stopped at some step; three workers with a server go on, then two ranks."""
    options = [*LENET, "--checkpoint-dir", tmp_path]
    process = ranks.start(5, *options, "--run-option", "mpi", "--max-steps", 100000, "--save-checkpoint-steps", 3)
    ranks.wait_for(process, (tmp_path / "model.ckpt-6.index").exists, "a checkpoint")
    os.kill(ranks.rank_processes(process)[0], signal.SIGTERM)
    process.communicate()
    stopped = ranks.training_json(tmp_path)
    assert stopped["state"] == "stopped"
    step = stopped["global_step"]
    wanted = ranks.train(0, *LENET, "--max-steps", step + 7)[0]["weights"]
    _, said = ranks.train(4, *options, "--run-option", "ps", "--max-steps", step + 3)
    assert "resuming from" in said and "global batch" not in said.split("continuing with")[1].splitlines()[0]
    summary, said = ranks.train(2, *options, "--run-option", "mpi", "--max-steps", step + 7)
    assert summary["weights"] == wanted


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """The checkpoint of step 37 of five ranks that were killed later; and the hash of 50 steps without that."""
    directory = tmp_path_factory.mktemp("killed")
    process = ranks.start(5, *LENET, "--run-option", "mpi", "--checkpoint-dir", directory, "--max-steps", 10**9,
                          "--save-checkpoint-steps", 37)
    ranks.wait_for(process, (directory / "model.ckpt-37.index").exists, "a checkpoint")
    for pid in list(ranks.rank_processes(process).values()):
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    return directory, ranks.train(0, *LENET, "--max-steps", 50)[0]["weights"]


@pytest.mark.parametrize("count,options", [
    (5, ["ps", "--servers", 2, "--bucket-bytes", 1024]),
    (8, ["ring"]),
    (0, ["mirrored", "--threads", 3, "--weights", "shared"]),
    (2, ["mpi"])], ids=["ps", "ring", "mirrored", "mpi"])
def test_killed_and_resumed_otherwise(killed, count, options, tmp_path):
    directory, wanted = killed
    shutil.copytree(directory, tmp_path / "ckpt")
    summary, _ = ranks.train(count, *LENET, "--run-option", *options, "--checkpoint-dir", tmp_path / "ckpt", "--resume", 37,
                             "--max-steps", 50)
    assert summary["steps"] == 13 and summary["weights"] == wanted


def test_changes_are_named(tmp_path):
    """Other micro-shards are other bits."""
    options = ["--model", "lenet", "--data", "fashion-mnist", "--global-batch", 64, "--checkpoint-dir", tmp_path]
    ranks.train(0, *options, "--max-steps", 1)
    _, said = ranks.train(0, *options, "--max-steps", 2, "--reproducible")
    assert "was trained with --micro-shards 0; continuing with --micro-shards 8" in said
    _, said = ranks.train(3, *options, "--max-steps", 3, "--reproducible", "--micro-shards", 16, "--run-option", "mpi")
    assert "with --run-option single, ranks: 1, --micro-shards 8; continuing with" in said
    assert "--run-option mpi, ranks: 3, --micro-shards 16" in said


@pytest.mark.skipif(platform.machine() != "x86_64", reason="Nehalem's kernels are x86's")
def test_kernels_are_named(tmp_path):
    """Those of another processor: refused beside others, and said on resume."""
    options = [*LENET[:5], "--checkpoint-dir", tmp_path]
    trainer = ranks.command(0, *options, "--run-option", "mpi")
    words = ranks.together((1, trainer), (1, ["env", "OPENBLAS_CORETYPE=Nehalem", *trainer]))
    run = subprocess.run(words, capture_output=True, text=True, timeout=waiting.DEADLINE, env=ranks.ENVIRONMENT)
    assert run.returncode == 2
    assert re.search("^trainer: rank 1 on host .*: --reproducible: this rank computes with OpenBLAS Nehalem.*, and rank 0 "
                     "with others; set OPENBLAS_CORETYPE", run.stderr, re.M), run.stderr
    ranks.train(0, *options, "--max-steps", 1)
    process = ranks.start(0, *options, "--max-steps", 2, OPENBLAS_CORETYPE="Nehalem")
    _, said = process.communicate(timeout=waiting.DEADLINE)
    assert re.search(r"was trained with kernels: OpenBLAS (?!Nehalem).*; continuing with kernels: OpenBLAS Nehalem", said)


def test_resnet(tmp_path):
    """With statistics of batch norm: of micro-shards, and so the same for 3 workers."""
    data = ranks.write_cifar(tmp_path / "data")
    model = ["--model", "resnet32", "--data", "cifar10", "--data-dir", data, "--reproducible", "--global-batch", 32,
             "--max-steps", 2, "--json", "--quiet"]
    found = {ranks.train(count, *model, *options)[0]["weights"]
             for count, options in ((0, []), (3, ["--run-option", "mpi"]), (4, ["--run-option", "ps"]))}
    assert len(found) == 1


@pytest.mark.parametrize("optimizer, ways", [
    ("momentum", [(3, ["mpi"]), (5, ["mpi", "--transport", "mpi", "--bucket-bytes", 65536]), (3, ["ring"]),
                  (4, ["hybrid"]), (5, ["ps", "--servers", 2, "--bucket-bytes", 65536]),
                  (0, ["mirrored", "--threads", 5, "--weights", "shared"]), (0, ["mirrored", "--threads", 3])]),
    ("adagrad", [(3, ["ps"]), (3, ["ps", "--replicas-to-aggregate", 2]), (5, ["hybrid", "--servers", 2])])])
def test_embedding(optimizer, ways):
    """A table whose rows are used by some workers only: all strategies update the same rows, to the same bits."""
    model = ["--model", "next_word", "--data", "text", "--optimizer", optimizer, "--learning-rate", 0.5, "--reproducible",
             "--global-batch", 32, "--max-steps", 3, "--json", "--quiet"]
    alone = ranks.train(0, *model)[0]["weights"]
    for count, way in ways:
        assert ranks.train(count, *model, "--run-option", *way)[0]["weights"] == alone, way


def test_too_many_workers():
    _, said = ranks.train(9, *LENET[:5], "--max-steps", 1, "--run-option", "mpi", status=2)
    assert re.search("^trainer: --micro-shards 8: too few for 9 workers", said, re.M), said
