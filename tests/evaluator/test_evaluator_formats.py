"""The evaluator on checkpoints of any name and format: patterns, when one is ready, what makes one new, V1 refused."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest

from checkpoint_files import version_1
from evaluators import EVALUATOR, Evaluator, Exec, ledger, refused, script, steps, write
from waiting import wait_for


def scorer(directory):
    """Scores a file or directory by its size in bytes."""
    return script(directory, 'echo "bytes $(find "$1" -type f | xargs cat | wc -c)"\n') + " {checkpoint}"


def make(directory, name, size, inside=None):
    path = directory / "ckpt" / name
    (path if inside else path.parent).mkdir(parents=True, exist_ok=True)
    file = path / inside if inside else path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(os.urandom(size))
    return path


def test_names_that_are_not_utf8(tmp_path):
    """They are kept as they are: known again after a restart, and passed on to the command byte by byte."""
    names = [b"m\xff-1.pt", b"m\xe9\xc3\xa9-2.pt", b"m-3.pt"]
    (tmp_path / "ckpt").mkdir()
    for name in names:
        (tmp_path / "ckpt" / os.fsdecode(name)).write_bytes(b"a checkpoint")
    for _ in range(2):
        with Exec(tmp_path, scorer(tmp_path), "--pattern", "m{*}-{step}.pt", "--ready", "rename", "--once",
                  "--best-metric", "bytes") as evaluator:
            evaluator.ends(0)
    assert [record["checkpoint"] for record in ledger(tmp_path)] == ["m/xff-1.pt", "m/xe9\u00e9-2.pt", "m-3.pt"]
    assert all(record["metrics"]["bytes"] == 12 for record in ledger(tmp_path))


@pytest.mark.parametrize("pattern, names, inside", [
    ("model_{step}.pt", ["model_5.pt", "model_10.pt", "model_200.pt"], None),
    ("epoch={}-step={step}.ckpt", ["epoch=0-step=5.ckpt", "epoch=0-step=10.ckpt", "epoch=1-step=200.ckpt"], None),
    ("checkpoint-{step}", ["checkpoint-5", "checkpoint-10", "checkpoint-200"], "pytorch_model.bin"),
    ("checkpoint-{step}/", ["checkpoint-5", "checkpoint-10", "checkpoint-200"], "deep/down/model.bin"),
    ("iter_{step}", ["iter_0000005", "iter_0000010", "iter_0000200"], "mp_rank_00/model.pt"),
])
def test_patterns(tmp_path, pattern, names, inside):
    for size, name in enumerate(names, 1):
        make(tmp_path, name, size, inside)
    make(tmp_path, "other.pt", 9)
    make(tmp_path, "x" + names[0], 9, inside)
    make(tmp_path, names[0] + ".tmp", 9, inside)
    make(tmp_path, "checkpoint-7.txt", 9)
    os.mkfifo(tmp_path / "ckpt" / names[0].replace("5", "6"))
    with Exec(tmp_path, scorer(tmp_path), "--once", "--pattern", pattern, "--ready", "rename") as evaluator:
        evaluator.ends(0)
    assert [(r["step"], r["checkpoint"], r["metrics"]["bytes"]) for r in ledger(tmp_path)] == [
        (step, name, size) for size, (step, name) in enumerate(zip((5, 10, 200), names), 1)]
    # Moved, with other times: the same checkpoints.
    shutil.copytree(tmp_path / "ckpt", tmp_path / "moved", ignore=shutil.ignore_patterns("*6*"))
    before = ledger(tmp_path)
    with Exec(tmp_path, scorer(tmp_path), "--once", "--pattern", pattern, "--ready", "rename",
              checkpoints="moved") as evaluator:
        evaluator.ends(0)
    assert ledger(tmp_path) == before


@pytest.mark.parametrize("inside", [None, "weights.bin"])
def test_overwritten_is_new(tmp_path, inside):
    """The same name and size with other bytes: a new checkpoint, in a run of its own; touched only: the same."""
    name = "checkpoint-5" if inside else "model_5.pt"
    path = make(tmp_path, name, 100, inside)
    with Exec(tmp_path, scorer(tmp_path), "--pattern", "{*}_{step}.pt" if not inside else "checkpoint-{step}",
              "--ready", "quiet:0.2", "--poll-interval", 0.1) as evaluator:
        wait_for(lambda: len(ledger(tmp_path)) == 1, "the first")
        os.utime(path / inside if inside else path)
        make(tmp_path, name.replace("5", "7"), 100, inside)
        wait_for(lambda: len(ledger(tmp_path)) == 2, "the second")
        make(tmp_path, name, 100, inside)  # written in place: the directory's own time does not change
        wait_for(lambda: len(ledger(tmp_path)) == 3, "the overwritten one")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [5, 7, 5]
    assert [r["run"] for r in ledger(tmp_path)] == [0, 0, 1]


def test_quiet(tmp_path):
    """A file that is still written is left alone; how long it must rest is the rule's."""
    path = make(tmp_path, "model_1.pt", 1)
    with Exec(tmp_path, scorer(tmp_path), "--pattern", "model_{step}.pt", "--ready", "quiet:3",
              "--poll-interval", 0.05) as evaluator:
        with open(path, "ab", buffering=0) as file:
            for _ in range(20):
                file.write(b"x")
                time.sleep(0.1)  # the pace of the writer is what is tested
                assert not ledger(tmp_path)
        last = time.time()
        wait_for(lambda: ledger(tmp_path), "the evaluation")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    record, = ledger(tmp_path)
    assert record["metrics"]["bytes"] == 21 and record["started"] >= last + 1.5


@pytest.mark.parametrize("name, marker, where", [
    ("checkpoint-5", "DONE", "checkpoint-5/DONE"), ("checkpoint-5", "meta/.done", "checkpoint-5/meta/.done"),
    ("model_5.pt", ".done", "model_5.pt.done"), ("model_5.pt", "DONE", "model_5.pt.DONE"),
    ("model_5.pt", "done/{name}-{step}", "done/model_5.pt-5"),
])
def test_marker(tmp_path, name, marker, where):
    pattern = "checkpoint-{step}" if name[0] == "c" else "model_{step}.pt"
    make(tmp_path, name, 3, "weights" if name[0] == "c" else None)
    with Exec(tmp_path, scorer(tmp_path), "--pattern", pattern, "--ready", f"marker:{marker}", "--poll-interval", 0.1,
              "--quiet-time", 0.5) as evaluator:
        # It waits for the quiet time, records a failure, and takes the checkpoint all the same once it is ready.
        wait_for(lambda: ledger(tmp_path), "the failure in the ledger")
        assert f"its marker {where} does not exist" in ledger(tmp_path)[0]["reason"]
        (tmp_path / "ckpt" / where).parent.mkdir(exist_ok=True)
        (tmp_path / "ckpt" / where).touch()
        wait_for(lambda: steps(ledger(tmp_path)) == [5], "the evaluation")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)  # what failed early was scored later


def test_marker_that_is_filled_later(tmp_path):
    """As Hugging Face writes trainer_state.json: made first, filled afterwards; the directory is not touched by that."""
    state = make(tmp_path, "checkpoint-5", 3, "model.safetensors") / "trainer_state.json"
    text = json.dumps({"global_step": 5, "log_history": [{"loss": float("nan")}] * 9})
    with Exec(tmp_path, scorer(tmp_path), "--pattern", "checkpoint-{step}", "--ready", "marker:trainer_state.json",
              "--poll-interval", 0.05) as evaluator:
        evaluator.says("watching")
        with open(state, "w", buffering=1) as file:
            for part in ("", text[:20], text[20:40]):
                file.write(part)
                file.flush()
                time.sleep(0.7)  # longer than the moment for which a marker must be unchanged; nothing may happen in it
                assert not ledger(tmp_path)
            file.write(text[40:])
        evaluator.says("step: 5,")
        make(tmp_path, "checkpoint-7", 3, "trainer_state.json")
        (tmp_path / "ckpt/checkpoint-7/trainer_state.json").write_text("{}")
        evaluator.says("step: 7,")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [(r["step"], r["status"]) for r in ledger(tmp_path)] == [(5, "done"), (7, "done")]
    assert ledger(tmp_path)[0]["metrics"]["bytes"] == 3 + len(text)


def test_marker_that_never_is_whole(tmp_path):
    path = make(tmp_path, "checkpoint-5", 3, "weights")
    (path / "state.json").write_text('{"step": 5')
    with Exec(tmp_path, scorer(tmp_path), "--once", "--pattern", "checkpoint-{step}", "--ready", "marker:state.json",
              "--quiet-time", 0.7) as evaluator:
        evaluator.ends(1)
    assert "checkpoint-5/state.json is not complete JSON" in ledger(tmp_path)[0]["reason"]


def test_rules_together(tmp_path):
    """A marker and a quiet time: both must be met, whichever comes last."""
    path = make(tmp_path, "checkpoint-5", 1, "weights")
    with Exec(tmp_path, scorer(tmp_path), "--pattern", "checkpoint-{step}", "--ready", "marker:DONE", "--ready",
              "quiet:1", "--poll-interval", 0.05) as evaluator:
        evaluator.says("watching")
        time.sleep(1.5)  # quiet, but without the marker
        assert not ledger(tmp_path)
        (path / "DONE").touch()
        with open(path / "weights", "ab", buffering=0) as file:
            for _ in range(15):
                file.write(b"x")
                time.sleep(0.1)  # the pace of the writer is what is tested
                assert not ledger(tmp_path)
        evaluator.says("step: 5,")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [r["metrics"]["bytes"] for r in ledger(tmp_path)] == [16]


def test_failed_early_and_scored_later(tmp_path):
    """What failed or was gone and was scored in the end has not failed: in the exit status, in what is said, in status."""
    path = make(tmp_path, "checkpoint-5", 3, "weights")
    arguments = ["--pattern", "checkpoint-{step}", "--ready", "marker:DONE", "--quiet-time", 0.2, "--poll-interval", 0.05]
    with Exec(tmp_path, scorer(tmp_path), "--once", *arguments) as evaluator:
        evaluator.ends(1)
        assert "0 done, 1 failed" in evaluator.said()
    status = [EVALUATOR, "status", "--json", tmp_path / "eval"]
    assert subprocess.run(status, stdout=subprocess.DEVNULL).returncode == 1
    (path / "DONE").touch()
    with Exec(tmp_path, scorer(tmp_path), "--once", *arguments) as evaluator:
        evaluator.ends(0)
        assert "1 done, 0 failed, 0 gone" in evaluator.said()
    assert [r["status"] for r in ledger(tmp_path)] == ["failed", "done"]
    assert subprocess.run(status, stdout=subprocess.DEVNULL).returncode == 0
    (path / "weights").write_bytes(b"another")
    with Exec(tmp_path, "false", "--once", *arguments) as evaluator:
        evaluator.ends(1)  # the newest outcome counts


def test_rename_while_watching(tmp_path):
    """Written under another name and renamed: evaluated at once, not at the next look."""
    (tmp_path / "ckpt").mkdir()
    with Exec(tmp_path, scorer(tmp_path), "--pattern", "checkpoint-{step}/", "--ready", "rename",
              "--poll-interval", 3600) as evaluator:
        evaluator.says("watching")
        for step in range(1, 6):
            path = make(tmp_path, f"tmp-checkpoint-{step}", step, "weights")
            path.rename(tmp_path / "ckpt" / f"checkpoint-{step}")
            wait_for(lambda: len(ledger(tmp_path)) == step, "the evaluation")
    assert [r["metrics"]["bytes"] for r in ledger(tmp_path)] == [1, 2, 3, 4, 5]


def test_results_inside_the_checkpoint(tmp_path):
    """An evaluation that writes into the directory it scores does not make it new, nor after a restart."""
    command = script(tmp_path, 'date +%N > "$1/results-$(date +%N).json"; echo loss 1\n') + " {checkpoint}"
    make(tmp_path, "checkpoint-5", 10, "weights")
    arguments = ["--pattern", "checkpoint-{step}", "--ready", "quiet:0.1", "--poll-interval", 0.05]
    with Exec(tmp_path, command, *arguments) as evaluator:
        evaluator.says("step: 5,")
        # By rename: on a busy machine a file may stay empty for longer than the quiet time, and is new when it is not.
        make(tmp_path, "tmp-checkpoint-6", 10, "weights").rename(tmp_path / "ckpt" / "checkpoint-6")
        evaluator.says("step: 6,")
        time.sleep(0.5)  # time for what must not happen
    with Exec(tmp_path, command, "--once", *arguments) as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [5, 6]


def test_what_ends_like_v1(tmp_path):
    """A table without a suffix, alone or in shards, among V2 checkpoints; these are indexes, not V1 checkpoints."""
    write(tmp_path, "--last", 200)
    index = (tmp_path / "ckpt" / "model.ckpt-100.index").read_bytes()
    for name in ("model.ckpt-150", "model.ckpt-160-00000-of-00002", "model.ckpt-160-00001-of-00002"):
        (tmp_path / "ckpt" / name).write_bytes(index)
    (tmp_path / "ckpt" / "notes-170").write_text("no table at all")
    (tmp_path / "ckpt" / "model.ckpt-200").write_bytes(index)  # an index beside it: V2
    at_once = ["--once", "--quiet-time", 0.2]
    with Evaluator(tmp_path, *at_once) as evaluator:
        evaluator.ends(1)
    records = ledger(tmp_path)
    assert steps(records) == [100, 200] and sorted(steps(records, "failed")) == [150, 160]
    assert all("not a V1 checkpoint" in r["reason"] for r in records if r["status"] == "failed")
    with Evaluator(tmp_path, *at_once) as evaluator:
        evaluator.ends(1)
    assert ledger(tmp_path) == records


def test_v1(tmp_path):
    """Alone and in shards, of which the first stands for all."""
    (tmp_path / "ckpt").mkdir()
    for name in "model.ckpt-700", "model.ckpt-800-00000-of-00001":
        (tmp_path / "ckpt" / name).write_bytes(version_1())
    with Evaluator(tmp_path, "--once", how=["--exec", "echo loss 1"]) as evaluator:
        evaluator.ends(0)
    assert len(ledger(tmp_path)) == 2


def test_a_step_that_is_not_that_of_the_name(tmp_path):
    """The tensor counts, and that is said, once; where it is damaged its name counts, and that is said."""
    write(tmp_path, "--last", 200)
    for kind in "index", "data-00000-of-00001":
        (tmp_path / f"ckpt/model.ckpt-200.{kind}").rename(tmp_path / f"ckpt/model.ckpt-700.{kind}")
    found = subprocess.run([EVALUATOR.parent / "checkpoint", "inspect", "--json", tmp_path / "ckpt/model.ckpt-100"],
                           capture_output=True, check=True)
    offset = next(t["offset"] for t in json.loads(found.stdout)["tensors"] if t["name"] == "global_step")
    with open(tmp_path / "ckpt/model.ckpt-100.data-00000-of-00001", "r+b") as data:
        data.seek(offset)
        data.write(b"\xff")
    with Evaluator(tmp_path, "--once", how=["--exec", "echo loss 1"]) as evaluator:
        evaluator.ends(0)
        said = evaluator.said()
    assert said.count("model.ckpt-700: its name says step 700, but its global_step, which is used, is 200") == 1
    assert said.count("model.ckpt-100: ") > 1 and said.count("tensor global_step, 8 bytes at byte") == 1 and "CRC mismatch" in said
    assert {r["checkpoint"]: r["step"] for r in ledger(tmp_path)} == {"model.ckpt-100": 100, "model.ckpt-700": 200}
    with Evaluator(tmp_path, "--once", how=["--exec", "echo loss 1"]) as evaluator:
        evaluator.ends(0)
        assert "its name says" not in evaluator.said()


def test_pattern_picks_known_formats(tmp_path):
    """A pattern that fits a TensorFlow prefix or index finds it as such: {checkpoint} is the prefix."""
    write(tmp_path, "--last", 300)
    command = script(tmp_path, 'test -f "$1.index" -a ! -e "$1" && echo loss 1\n') + " {checkpoint}"
    for pattern in ("model.ckpt-{step}", "model.ckpt-{step}.index", "{*}-{step}"):
        with Exec(tmp_path, command, "--once", "--pattern", pattern, evaluation=f"e{len(pattern)}") as evaluator:
            evaluator.ends(0)
        assert steps(ledger(tmp_path, f"e{len(pattern)}")) == [100, 200, 300]


@pytest.mark.parametrize("arguments, word", [
    (["--pattern", "model.pt"], "{step}"), (["--pattern", "a{step}", "--ready", "now"], "quiet:SECONDS"),
    (["--ready", "rename"], "--pattern"), (["--pattern", "a{step}", "--ready", "quiet:x"], "quiet:x"),
    (["--pattern", "a{step}", "--ready", "marker:"], "marker:FILE"),
    (["--pattern", "a{step}", "--ready", "quiet:1", "--ready", "quiet:2"], "given twice"),
])
def test_wrong_usage(tmp_path, arguments, word):
    refused(tmp_path, word, *arguments)


def test_built_in_model_and_unknown_format(tmp_path):
    """The built-in models say what they cannot read, instead of what is missing in it."""
    make(tmp_path, "model_1.pt", 10)
    with Evaluator(tmp_path, "--once", "--pattern", "model_{step}.pt", "--ready", "rename") as evaluator:
        evaluator.ends(1)
    assert "--exec" in ledger(tmp_path)[0]["reason"]


def trainer(directory, names, inside=None):
    """Writes each under another name, renames it, and deletes the one before as soon as the evaluator has found it."""
    for size, name in enumerate(names, 1):
        path = make(directory, "tmp-" + name, size, inside)
        path.rename(directory / "ckpt" / name)
        wait_for(lambda: list(directory.glob(f"eval/pinned/[0-9]*/{name}")) or size in steps(ledger(directory)), "the pin")
        if inside:
            shutil.rmtree(directory / "ckpt" / name)
        else:
            (directory / "ckpt" / name).unlink()


@pytest.mark.parametrize("inside", [None, "deep/weights.bin"])
def test_pin(tmp_path, inside):
    """The trainer is faster than the evaluation and keeps none: with --pin none is lost, and nothing is left over."""
    names = [f"checkpoint-{step}" for step in range(1, 31)]
    (tmp_path / "ckpt").mkdir()
    command = script(tmp_path, 'sleep 0.1; echo "bytes $(find "$1" -type f | xargs cat | wc -c)"\n') + " {checkpoint}"
    with Exec(tmp_path, command, "--pin", "--pattern", "checkpoint-{step}", "--ready", "rename") as evaluator:
        evaluator.says("watching")
        trainer(tmp_path, names, inside)
        wait_for(lambda: len(ledger(tmp_path)) == 30, "all evaluations")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert [(r["step"], r["metrics"]["bytes"]) for r in ledger(tmp_path)] == [(s, s) for s in range(1, 31)]
    assert not list((tmp_path / "eval" / "pinned").iterdir()) and not list((tmp_path / "ckpt").iterdir())


def test_pin_outlives_a_crash(tmp_path):
    """Killed while checkpoints wait that the trainer has deleted: the next start has them."""
    arguments = ["--pin", "--pattern", "model_{step}.pt", "--ready", "rename"]
    for step in range(1, 11):
        make(tmp_path, f"model_{step}.pt", step)
    with Exec(tmp_path, script(tmp_path, "sleep 1000\n"), *arguments) as evaluator:
        wait_for(lambda: len(list(tmp_path.glob("eval/pinned/[0-9]*"))) == 10, "pins")
        evaluator.process.kill()
    shutil.rmtree(tmp_path / "ckpt")
    (tmp_path / "ckpt").mkdir()
    (tmp_path / "eval" / "pinned" / ".unfinished-x").mkdir()
    with Exec(tmp_path, scorer(tmp_path), "--once", *arguments) as evaluator:
        evaluator.ends(0)
    assert [r["metrics"]["bytes"] for r in ledger(tmp_path)] == list(range(1, 11))
    assert not list((tmp_path / "eval" / "pinned").iterdir())


@pytest.mark.parametrize("elsewhere", [False, True])
def test_pin_bundles(tmp_path, elsewhere):
    """TensorFlow's checkpoints at 50 a second, thirty kept, the built-in model; also where links cannot be made."""
    (tmp_path / "ckpt").mkdir()
    evaluation = "eval"
    if elsewhere:
        if not os.access("/dev/shm", os.W_OK) or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
            pytest.skip("no second file system to write to")
        evaluation = f"/dev/shm/evaluator-test-{os.getpid()}"
    try:
        with Evaluator(tmp_path, "--pin", evaluation=evaluation) as evaluator:
            evaluator.says("watching")
            write(tmp_path, "--first", 1, "--step", 1, "--last", 60, "--interval", 0.02, "--keep", 30, "--finish")
            evaluator.ends(0)
        assert steps(ledger(tmp_path, evaluation)) == list(range(1, 61))
        assert not list((tmp_path / evaluation / "pinned").iterdir())
    finally:
        if elsewhere:
            shutil.rmtree(evaluation, ignore_errors=True)


def test_pin_limit(tmp_path):
    """What is over the limit is not pinned, and that is said; what was deleted then is counted and named."""
    (tmp_path / "ckpt").mkdir()
    command = script(tmp_path, f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done; test -e $1 && echo loss 1\n")
    with Exec(tmp_path, command + " {checkpoint}", "--pin", "--pin-limit", 0.002, "--pattern", "model_{step}.pt",
              "--ready", "rename") as evaluator:
        for step in range(1, 5):
            make(tmp_path, f"tmp_{step}", 1000).rename(tmp_path / "ckpt" / f"model_{step}.pt")
            wait_for(lambda: step > 3 or len(list(tmp_path.glob("eval/pinned/[0-9]*"))) == step, "the pin")
        evaluator.says("all that --pin-limit allows")
        shutil.rmtree(tmp_path / "ckpt")
        (tmp_path / "go").touch()
        wait_for(lambda: len(ledger(tmp_path)) == 4, "all outcomes")
    assert steps(ledger(tmp_path)) == [1, 2, 3] and steps(ledger(tmp_path), "gone") == [4]


def test_best_of_a_pinned_one(tmp_path):
    """The best is kept although the trainer has deleted it before its evaluation began."""
    for step in range(1, 4):
        make(tmp_path, f"model_{step}.pt", step)
    command = script(tmp_path, f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done; echo precision 0.$(cat $1 | wc -c)\n")
    with Exec(tmp_path, command + " {checkpoint}", "--once", "--pin", "--keep-best", "--pattern", "model_{step}.pt",
              "--ready", "rename") as evaluator:
        wait_for(lambda: len(list(tmp_path.glob("eval/pinned/[0-9]*"))) == 3, "pins")
        shutil.rmtree(tmp_path / "ckpt")
        (tmp_path / "go").touch()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [1, 2, 3]
    assert (tmp_path / "eval" / "best" / "model_3.pt").stat().st_size == 3
