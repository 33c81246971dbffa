"""--exchange bfloat16: gradients in messages take half the bytes; weights are equal on all ranks and each time, and near those
of float32."""
import array
import json
import math
import subprocess

import pytest
import ranks

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 16, "--max-steps", 10, "--quiet", "--json",
         "--hash-every", 5]
BFLOAT16 = ["--exchange", "bfloat16"]
WEIGHTS, TALLY = 21840, 48
MESSAGES = {"mpi": ["--run-option", "mpi", "--transport", "mpi"], "ring": ["--run-option", "ring"]}


def weights(prefix):
    """{name: numbers} of a checkpoint."""
    copy = prefix.with_name(f"{prefix.name}.safetensors")
    subprocess.run([ranks.BUILD / "bin" / "checkpoint", "convert", prefix, copy], check=True)
    data = copy.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, tensor in json.loads(data[8:start]).items():
        if name.endswith(("weights", "biases")):
            first, last = tensor["data_offsets"]
            found[name] = array.array("f", data[start + first:start + last])
    return found


@pytest.mark.parametrize("how", MESSAGES)
def test_three_ranks(how):
    """Replicas are compared every 5 steps (--hash-every), so a rank with other bits would end the run."""
    n = 3
    whole, rounded, again = (ranks.train(n, *LENET, *MESSAGES[how], *more)[0] for more in ([], BFLOAT16, BFLOAT16))
    assert rounded["weights"] == again["weights"] != whole["weights"]
    for summary, width in ((whole, 4), (rounded, 2)):
        for way in ("sent_per_step", "received_per_step"):
            assert sum(link[way] for link in summary["links"]) == (2 * (n - 1) * (width * WEIGHTS + 4) +
                                                                   n * (n - 1) * TALLY)


@pytest.mark.parametrize("how", MESSAGES)
def test_error_of_an_update(how, tmp_path):
    """Of each variable's first update beside float32's, as the length of the difference. A number is rounded by at most 1 /
    256 of itself, each rank's part and the sum of three; most errors are smaller, and independent."""
    updates = []
    for exchange in "float32", "bfloat16":
        directory = tmp_path / exchange
        ranks.train(3, *LENET, *MESSAGES[how], "--exchange", exchange, "--max-steps", 1, "--checkpoint-dir", directory)
        first, second = (weights(directory / f"model.ckpt-{step}") for step in (0, 1))
        updates.append({name: [b - a for a, b in zip(first[name], second[name])] for name in first})
    whole, rounded = updates
    assert len(whole) == 8
    for name, update in whole.items():
        error = math.dist(update, rounded[name]) / math.hypot(*update)
        print(f"{name}: {100 * error:.2f} %")
        assert 0 < error < 0.004, name


def test_shared_memory_is_not_rounded():
    """Nothing travels there."""
    whole, rounded = (ranks.train(3, *LENET, "--run-option", "mpi", *more)[0] for more in ([], BFLOAT16))
    assert rounded["weights"] == whole["weights"] and rounded["bytes_per_step"] == whole["bytes_per_step"]


@pytest.mark.parametrize("how", [*MESSAGES, "ps"])
def test_not_for_any_number_of_ranks(how):
    """Each rank's part is rounded, whatever part that is."""
    words = [word for word in LENET if word not in ("--batch-size", 16)]
    for more in (["--reproducible"], ["--global-batch", 24, "--micro-shards", 6]):
        _, said = ranks.train(3, *words, *MESSAGES.get(how, ["--run-option", how]), *BFLOAT16, *more, status=2)
        assert "--exchange bfloat16: each rank's part of the sum is rounded, so that the weights depend on the number of " \
               "ranks; train without --reproducible and --micro-shards" in said


@pytest.mark.parametrize("servers", [1, 2])
def test_servers(servers):
    """What is pushed takes half the bytes; the weights that come back are float32, so all workers have the same."""
    n = 2
    run = ["--run-option", "ps", "--servers", servers]
    whole, rounded, again = (ranks.train(n + servers, *LENET, *run, *more)[0] for more in ([], BFLOAT16, BFLOAT16))
    assert rounded["weights"] == again["weights"] != whole["weights"]
    assert whole["bytes_per_step"] - rounded["bytes_per_step"] == 2 * WEIGHTS
    assert abs(rounded["loss"] - whole["loss"]) < 0.1


@pytest.mark.parametrize("more", [["--async", "--clip-norm", 1], ["--clip-norm", 1, "--servers", 2],
                                  ["--replicas-to-aggregate", 1], ["--local-aggregation", "on"]], ids=lambda more: more[0])
def test_servers_of_all_kinds(more):
    words = LENET[:-2] if "--async" in more else LENET
    summary = ranks.train(4, *words, "--run-option", "ps", *BFLOAT16, *more)[0]
    assert summary["state"] == "finished" and 0 < summary["loss"] < 2.6


def test_hybrid(tmp_path):
    """The dense part is rounded in messages, the rows of tables are not; without tables it is mpi."""
    (tmp_path / "a.train").write_text(" ".join(f"w{n % 50}" for n in range(400)))
    words = ["--model", "language_model", "--data", "text", "--data-dir", tmp_path, "--batch-size", 2, "--max-steps", 3, "--quiet",
             "--json", "--run-option", "hybrid", "--transport", "mpi"]
    whole, rounded = (ranks.train(3, *words, *more)[0] for more in ([], BFLOAT16))
    assert rounded["weights"] != whole["weights"]
    sent = [sum(link["sent_per_step"] for link in summary["links"]) for summary in (whole, rounded)]
    assert 0.5 * sent[0] < sent[1] < 0.52 * sent[0]
    plain = ranks.train(3, *LENET, "--run-option", "hybrid", "--transport", "mpi", *BFLOAT16)[0]
    assert plain["weights"] == ranks.train(3, *LENET, *MESSAGES["mpi"], *BFLOAT16)[0]["weights"]


def test_not_alone():
    _, said = ranks.train(0, *LENET, *BFLOAT16, status=2)
    assert "--exchange needs --run-option mpi or ring or ps or hybrid, not single" in said


def test_not_with_all_gather(tmp_path):
    """Gathered rows are float32; said once, and not passed over."""
    (tmp_path / "a.train").write_text(" ".join(f"w{n}" for n in range(80)))
    _, said = ranks.train(2, "--model", "language_model", "--data", "text", "--data-dir", tmp_path, "--run-option", "mpi",
                          "--sparse-exchange", "all-gather", *BFLOAT16, "--batch-size", 2, "--max-steps", 1, status=2)
    assert said.count("--sparse-exchange all-gather sends float32; leave --exchange bfloat16 out") == 1
