"""Text: the model of the next word learns, the evaluator scores it with the same words, and other words are refused."""
import math
import re
import shutil
import subprocess

import ranks
from licenses import LICENSES, words_of_test_part

MODEL = ["--model", "next_word", "--data", "text"]


def evaluate(directory, *options, status=0):
    run = subprocess.run([ranks.BUILD / "bin" / "evaluator", *MODEL, "--checkpoint-dir", directory / "ckpt", "--eval-dir",
                          directory / "eval", "--once", *map(str, options)], capture_output=True, text=True,
                         env=ranks.ENVIRONMENT)
    assert run.returncode == status, run.stderr
    return run.stderr


def test_learns(tmp_path):
    """Better on the test part than its most frequent word is; the loss falls from that of guessing."""
    ranks.train(0, *MODEL, "--batch-size", 64, "--max-steps", 200, "--checkpoint-dir", tmp_path / "ckpt")
    said = evaluate(tmp_path, "--metrics", "top5", "--tags", "im2txt")
    found = [(float(loss), float(precision)) for loss, precision in
             re.findall(r"ckpt-\d+: loss: ([\d.]+), precision: ([\d.]+)", said)]
    words = words_of_test_part()
    assert len(found) == 2 and abs(found[0][0] - math.log(10000)) < 0.1
    assert found[1][0] < 6 and found[1][1] > 1.5 * words.count("the") / len(words) > 0.05
    assert max(words, key=words.count) in ("the", ",")
    perplexity = ranks.curves(tmp_path / "eval")["Perplexity"]
    assert perplexity[1] == (200, perplexity[1][1]) and abs(math.log(perplexity[1][1]) - found[1][0]) < 0.01


def test_other_words(tmp_path):
    """Neither the evaluator nor a training that resumes takes a checkpoint for numbers of other words."""
    shutil.copytree(LICENSES, tmp_path / "text")
    options = [*MODEL, "--data-dir", tmp_path / "text", "--batch-size", 4, "--checkpoint-dir", tmp_path / "ckpt"]
    ranks.train(0, *options, "--max-steps", 1)
    evaluate(tmp_path, "--num-examples", 10, "--data-dir", tmp_path / "text")
    (tmp_path / "text" / "new").write_text("the " * 3 + "entirely unheard-of words")
    shutil.rmtree(tmp_path / "eval")
    said = evaluate(tmp_path, "--num-examples", 10, "--data-dir", tmp_path / "text", status=1)
    assert "was trained with another vocabulary than that of the files of --data-dir" in said
    _, said = ranks.train(0, *options, "--max-steps", 2, status=2)
    assert "another vocabulary than that of the files of --data-dir; resume with the files" in said


def test_parameter_servers_and_momentum():
    """Packets of a server may cut a row, of which momentum moves all or nothing."""
    _, said = ranks.train(2, *MODEL, "--run-option", "ps", "--async", "--staleness", 1, "--optimizer", "momentum",
                          "--max-steps", 1, status=2)
    assert "--optimizer momentum needs whole rows of the model's embedding" in said and "--staleness" in said


def test_each_rank_its_files(tmp_path):
    """--shard files: other words for each worker, one vocabulary."""
    (tmp_path / "text").mkdir()
    for name, words in ("a", "one two three four five six seven"), ("b", "eight nine ten one two three four"):
        (tmp_path / "text" / f"{name}.train").write_text(words)
    options = [*MODEL, "--data-dir", tmp_path / "text", "--batch-size", 1, "--max-steps", 2, "--run-option", "mpi"]
    _, said = ranks.train(2, *options, "--shard", "files")
    assert re.search(r"rank 0 on host \S+ reads a.train: 3 words", said), said
    assert re.search(r"rank 1 on host \S+ reads b.train: 3 words", said), said
    _, said = ranks.train(3, *options, "--shard", "files", status=2)
    assert "worker 2 of 3 has no file" in said
