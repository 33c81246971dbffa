"""What is best of a tag: the least, the greatest, or nothing at all; and which figures NaN and infinities leave alone."""
import json
import os
import pathlib
import subprocess

import pytest

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"
MIN = """loss train/Loss val_loss trainLoss lossG loss/total_loss2 trainloss train_loss_step error error_rate wer
    kl train/approx_kl policy/kl nll test-nll perplexity mean_absolute_error rmse MSE cross_entropy softmax/crossentropy
    evaluation/seconds latency_ms staleness accuracy/loss reward_loss D.FID regret 100%error""".split()
MAX = """accuracy eval/Accuracy valAcc top1 top_1_accuracy top5 precision recall/macro f1 F1_score roc_auc mAP map50 mIoU
    bleu-4 ROUGE reward episode_return eval/mean_return psnr images/sec global_step/sec train_samples_per_second it/s
    tokens_per_sec throughput loss/accuracy success_rate r2""".split()
NEITHER = """lr learning_rate optimizer/lr train/lr_scale loss_scale loss/weight kl_coef kl_target epoch step global_step
    memory gpu/memory_allocated entropy grad_norm weights/mean beta temperature answer glossary2x layer1/activation 12
    accuracy_count reward/std größe s sec per""".split()


def eventlog(*words, status=0):
    done = subprocess.run([EVENTLOG, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stderr
    return done.stdout if status != 1 else done.stderr


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    top = tmp_path_factory.mktemp("best") / "log"
    for step, value in (1, 3), (2, 1), (3, 2):
        eventlog("write", "-d", top, "--step", step, *(f"{tag}={value}" for tag in MIN + MAX + NEITHER))
    return top


def test_directions(log):
    rows = {row["tag"]: row for row in json.loads(eventlog("compare", log, "--json"))["series"]}
    assert set(rows) == {*MIN, *MAX, *NEITHER}
    for tags, better, best, step in (MIN, "min", 1.0, 2), (MAX, "max", 3.0, 1), (NEITHER, None, None, None):
        for tag in tags:
            assert (tag, rows[tag]["better"], rows[tag]["best"], rows[tag]["best_step"]) == (tag, better, best, step)


def test_directions_by_option(log):
    def best(tag, *words):
        return json.loads(eventlog("compare", log, "--json", "--tag", tag, *words))["series"][0]["best"]

    assert (best("loss", "--higher", "lo*"), best("accuracy", "--lower", "acc*"), best("entropy", "--higher", "*")) == (3, 1, 3)
    assert best("loss", "--lower", "loss", "--higher", "l*") == 3
    assert "--lower 'acuracy': no tag matches; did you mean 'accuracy'" in eventlog(
        "compare", log, "--tag", "accuracy", "--tag", "loss", "--lower", "acuracy", status=1)
