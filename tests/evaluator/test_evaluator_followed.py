"""Checkpoints whose step is not in their name: last.ckpt, overwritten again and again, and files that name the latest
one. None is scored half written, each content once, under the step that it is of."""
import json
import os
import random
import shutil
import signal
import time

import pytest

from evaluators import KILLS, Exec, ledger, refused, points, runs, script, steps
from interposed import SLOW_CLOCK, interposed
from waiting import wait_for

PIECES = 6


def content(number):
    """A checkpoint of its own size, so that a half of one is none."""
    return os.urandom(1000 * PIECES + number * PIECES)


def scorer(directory, wait=""):
    """Fails on half a checkpoint, and tells which content it was."""
    return script(directory, f"echo $2 >> '{directory}/runs'; {wait}\n"
                             'bytes=$(find "$1" -name "weights*" -o -type f -name "last*" | xargs cat | wc -c)\n'
                             f'test $((bytes % {PIECES})) = 0 -a $bytes -gt {1000 * PIECES} || exit 3\n'
                             f'echo "content $(((bytes - {1000 * PIECES}) / {PIECES}))"\n') + " {checkpoint} {step}"


def write_in_place(path, number, pause=0.02):
    data, piece = content(number), len(content(number)) // PIECES
    with open(path, "wb", buffering=0) as file:
        for i in range(PIECES):
            file.write(data[i * piece:(i + 1) * piece])
            time.sleep(pause)  # the pace of the writer is what is tested


def write_and_replace(path, number):
    part = path.with_name("tmp-" + path.name)
    part.write_bytes(content(number))
    os.replace(part, path)


def say_step(directory, step):
    (directory / "state.json").write_text(json.dumps({"loss": float("nan"), "trainer": {"global_step": step}}))


class Followed(Exec):
    def __init__(self, directory, *arguments, pattern="last.ckpt", wait="", **keywords):
        super().__init__(directory, scorer(directory, wait), "--pattern", pattern, "--poll-interval", 0.05, *arguments,
                         **keywords)

    def has(self, count):
        wait_for(lambda: len(ledger(self.directory)) >= count or self.process.poll() is not None, f"{count} results")
        assert self.process.poll() is None, self.said()


def results(directory):
    return [(r["step"], r["metrics"]["content"]) for r in ledger(directory) if r["status"] == "done"]


@pytest.mark.parametrize("write", [write_in_place, write_and_replace])
@pytest.mark.parametrize("source, wanted", [
    (["--step-from", "state.json:trainer.global_step"], [100, 200, 300, 400]), (["--step-from", "count"], [1, 2, 3, 4]),
    (["--step-from", "count", "--step-scale", 50, "--step-offset", -10], [40, 90, 140, 190]),
    (["--step-from", "mtime"], None),
], ids=["file", "count", "scaled", "mtime"])
def test_followed(tmp_path, write, source, wanted):
    """Overwritten four times, the evaluator started anew in between: each content once."""
    checkpoints, times = tmp_path / "ckpt", []
    checkpoints.mkdir()
    for turn in range(2):
        with Followed(tmp_path, *source, "--ready", "quiet:0.3") as evaluator:
            evaluator.says("watching")
            for number in (2 * turn + 1, 2 * turn + 2):
                write(checkpoints / "last.ckpt", number)
                say_step(checkpoints, 100 * number)
                times.append(int((checkpoints / "last.ckpt").stat().st_mtime))
                evaluator.has(number)
            evaluator.process.send_signal(signal.SIGTERM)
            evaluator.ends(0)
    assert results(tmp_path) == list(zip(wanted or times, [1, 2, 3, 4]))
    assert len(ledger(tmp_path)) == 4 and runs(tmp_path) == (wanted or times)
    assert [p[0] for p in points(tmp_path / "eval")["content"]] == (wanted or times)


def test_default_rule_is_safe(tmp_path):
    """Without --ready: a writer that stops for two seconds in the middle of a file is waited for."""
    (tmp_path / "ckpt").mkdir()
    data = content(7)
    with Followed(tmp_path, "--step-from", "count") as evaluator:
        evaluator.says("watching")
        for part in (data[:1000], data[:3000], data):  # begun anew each time
            (tmp_path / "ckpt/last.ckpt").write_bytes(part)
            time.sleep(2)  # the pace of the writer is what is tested
        evaluator.has(1)
    assert results(tmp_path) == [(1, 7)]


def newest_step(evaluation):
    work = evaluation / "work.json"
    return work.exists() and json.loads(work.read_text())["newest_step"]


def gate(directory):
    return f"while [ ! -e '{directory}/go' ]; do sleep 0.02; done"


@pytest.mark.parametrize("pin", [True, False], ids=["pinned", "not pinned"])
def test_overwritten_faster_than_evaluated(tmp_path, pin):
    """With --pin every content is copied and scored; without, those that are overwritten before are passed over."""
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    with Followed(tmp_path, "--step-from", "state.json:trainer.global_step", "--ready", "quiet:0.3",
                  *(["--pin", "--keep-best", "--best-metric", "content"] if pin else []), wait=gate(tmp_path)) as evaluator:
        evaluator.says("watching")
        for number in range(1, 5):
            write_in_place(checkpoints / "last.ckpt", number)
            say_step(checkpoints, 100 * number)
            if pin:  # accepted: a copy alone is removed again where the file has changed before that
                wait_for(lambda: newest_step(tmp_path / "eval") == 100 * number, "the copy")
            else:
                time.sleep(0.6)  # longer than it must be quiet
        (tmp_path / "go").touch()
        wait_for(lambda: (400, 4) in results(tmp_path) or evaluator.process.poll() is not None, "the last one")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    if pin:
        assert results(tmp_path) == [(100 * k, k) for k in range(1, 5)] and runs(tmp_path) == [100, 200, 300, 400]
        best = tmp_path / "eval/best/last.ckpt"
        assert best.stat().st_size == len(content(4)) and best.stat().st_ino != (checkpoints / "last.ckpt").stat().st_ino
        assert not list((tmp_path / "eval/pinned").iterdir())
    else:
        assert results(tmp_path) == [(400, 4)], evaluator.said()


def test_best_of_one_name(tmp_path):
    """The two best of what is always called last.ckpt, each under a name of its own; a restart changes nothing."""
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    arguments = ["--step-from", "count", "--ready", "quiet:0.2", "--keep-best", 2, "--best-metric", "content"]
    with Followed(tmp_path, *arguments) as evaluator:
        evaluator.says("watching")
        for turn, number in enumerate((3, 1, 5, 4), 1):
            write_in_place(checkpoints / "last.ckpt", number)
            evaluator.has(turn)
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    for _ in range(2):
        files = {path.name: path.stat().st_size for path in (tmp_path / "eval/best").glob("[!.]*")}
        state = files.pop("checkpoint") and (tmp_path / "eval/best/checkpoint").read_text()
        assert files == {"3-last.ckpt": len(content(5)), "4-last.ckpt": len(content(4))} and '"3-last.ckpt"' in state
        with Followed(tmp_path, *arguments, "--once") as evaluator:
            evaluator.ends(0)


def test_step_of_another_content(tmp_path):
    """A file with the step that is older than the checkpoint is that of the one before: never taken for this one."""
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    say_step(checkpoints, 100)
    time.sleep(0.05)  # so that the times differ
    with Followed(tmp_path, "--step-from", "state.json:trainer.global_step", "--ready", "quiet:0.2", "--quiet-time",
                  0.6) as evaluator:
        evaluator.says("watching")
        write_in_place(checkpoints / "last.ckpt", 2)
        evaluator.has(1)
        assert "state.json is older than the checkpoint" in ledger(tmp_path)[0]["reason"]
        (checkpoints / "state.json").write_text('{"trainer": {"epoch": 3}}')
        time.sleep(1)  # time for what must not happen
        assert not results(tmp_path)
        say_step(checkpoints, 200)
        evaluator.says("step: 200,")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)  # it was scored in the end
    assert results(tmp_path) == [(200, 2)]


def test_directory_and_deletion(tmp_path):
    """A directory without a number, deleted and written anew: that is no checkpoint lost."""
    last = tmp_path / "ckpt" / "last"
    with Followed(tmp_path, "--step-from", "trainer_state.json:global_step", "--ready", "quiet:0.3",
                  pattern="last/") as evaluator:
        for number in (1, 2, 3):
            shutil.rmtree(last, ignore_errors=True)
            last.mkdir(parents=True)
            write_in_place(last / "weights.bin", number)
            (last / "trainer_state.json").write_text(json.dumps({"global_step": 10 * number}))
            evaluator.has(number)
        shutil.rmtree(last)
        last.mkdir()
        shutil.rmtree(last)
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert results(tmp_path) == [(10, 1), (20, 2), (30, 3)]


def test_killed_while_it_follows(tmp_path):
    """kill -9 at random moments, while contents are copied, wait and are scored: none twice, none half, counts without
    a gap, nothing left over."""
    chance = random.Random(5)
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    arguments = ["--step-from", "count", "--ready", "quiet:0.1", "--pin"]
    for number in range(1, KILLS + 1):
        with Followed(tmp_path, *arguments) as evaluator:
            write_in_place(checkpoints / "last.ckpt", number, chance.choice([0, 0.01, 0.03]))
            time.sleep(chance.uniform(0, 0.5))  # the moment is the test, nothing is waited for
            evaluator.process.kill()
    with Followed(tmp_path, *arguments, "--once") as evaluator:
        evaluator.ends(0)
    scored = results(tmp_path)
    assert len(ledger(tmp_path)) == len(scored), "none failed, none is gone"
    assert [step for step, _ in scored] == list(range(1, len(scored) + 1))
    assert [number for _, number in scored] == sorted({number for _, number in scored}) and scored[-1][1] == KILLS
    assert not list((tmp_path / "eval/pinned").iterdir())


@pytest.mark.parametrize("name, pattern, file, text", [
    ("global_step{}", "global_step{step}/", "latest", "global_step{}"),
    ("iter_{:07d}", "iter_{step}/", "latest_checkpointed_iteration.txt", "{}"),
], ids=["deepspeed", "megatron"])
def test_latest_file(tmp_path, name, pattern, file, text):
    """Directories filled in place by several ranks, and a file in their parent that names the newest whole one."""
    checkpoints = tmp_path / "ckpt"

    def save(step, number, named=True, pause=0.02):
        directory = checkpoints / name.format(step)
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "mp_rank_01_model_states.pt").write_bytes(b"x")
        write_in_place(directory / "weights.pt", number, pause)
        time.sleep(0.05)  # so that the times differ
        if named:
            (checkpoints / file).write_text(text.format(step))

    save(100, 1)
    save(200, 2)
    with Followed(tmp_path, "--ready", f"latest:{file}", pattern=pattern) as evaluator:
        evaluator.has(2)  # of an earlier training: at once
        save(300, 3, named=False)
        time.sleep(1)  # time for what must not happen
        assert steps(ledger(tmp_path)) == [100, 200]
        (checkpoints / file).write_text("release" if file != "latest" else "")
        time.sleep(0.7)
        assert steps(ledger(tmp_path)) == [100, 200]
        (checkpoints / file).write_text(text.format(300))
        evaluator.has(3)
        save(200, 22, pause=0.4)  # begun anew from 100, while the file still names 300
        evaluator.has(4)
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    assert results(tmp_path) == [(100, 1), (200, 2), (300, 3), (200, 22)] and runs(tmp_path) == [100, 200, 300, 200]


def test_marked_together(tmp_path):
    """What one file marks is taken in the order of the steps, however long a look takes: the later of two directories had
    settled a little earlier, since it was looked at later."""
    for step in 100, 200, 300:
        (tmp_path / f"ckpt/global_step{step}").mkdir(parents=True)
        write_in_place(tmp_path / f"ckpt/global_step{step}/weights.pt", step // 100, pause=0)
    environment = interposed(tmp_path, "slow_clock", SLOW_CLOCK)
    (tmp_path / "ckpt/latest").write_text("global_step300")
    with Followed(tmp_path, "--ready", "latest:latest", "--once", pattern="global_step{step}/", env=environment) as evaluator:
        evaluator.ends(0)
    assert results(tmp_path) == [(100, 1), (200, 2), (300, 3)]


def test_never_named(tmp_path):
    """A training that died before it named the directory: failed, with what the file says, and taken when it does."""
    checkpoints = tmp_path / "ckpt"
    (checkpoints / "global_step7").mkdir(parents=True)
    write_in_place(checkpoints / "global_step7/weights.pt", 7)
    (checkpoints / "latest").write_text("global_step5")
    arguments = ["--ready", "latest:latest", "--quiet-time", 0.7]
    with Followed(tmp_path, *arguments, "--once", pattern="global_step{step}/") as evaluator:
        evaluator.ends(1)
    assert "latest does not name it yet, only step 5" in ledger(tmp_path)[0]["reason"]
    (checkpoints / "latest").write_text("global_step7")
    with Followed(tmp_path, *arguments, "--once", pattern="global_step{step}/") as evaluator:
        evaluator.ends(0)
    assert results(tmp_path) == [(7, 7)]


@pytest.mark.parametrize("arguments, word", [
    (["--step-from", "count"], "--pattern"), (["--pattern", "m_{step}", "--step-from", "count"], "--step-from"),
    (["--pattern", "last", "--step-from", "steps"], "FILE:KEY"), (["--pattern", "last"], "--step-from"),
    (["--pattern", "last", "--step-from", "count", "--ready", "latest:latest"], "latest:FILE"),
    (["--pattern", "m_{step}", "--step-scale", "0"], "step-scale"),
    (["--pattern", "last", "--step-from", "count", "--keep-best", "--no-pin"], "--no-pin"),
])
def test_wrong_usage(tmp_path, arguments, word):
    refused(tmp_path, word, *arguments)


@pytest.mark.parametrize("pattern, names, arguments, wanted", [
    ("weights.{step}-{*}.h5", ["weights.01-0.51.h5", "weights.02-0.32.h5"], ["--step-scale", 391], [391, 782]),
    ("epoch={step}-{*}.ckpt", ["epoch=0-val=1.ckpt", "epoch=1-val=0.ckpt"],
     ["--step-scale", 391, "--step-offset", 391], [391, 782]),
    ("epoch={step}-{*}.ckpt", ["epoch=0-val=1.ckpt", "epoch=1-val=0.ckpt"],
     ["--step-scale", 391, "--step-offset", 391, "--from", 400], [782]),
    ("m_{step}", ["m_0", "m_20"], ["--step-offset", -10], [10]),
], ids=["keras", "lightning", "from", "negative"])
def test_epochs(tmp_path, pattern, names, arguments, wanted):
    """A number that counts epochs: steps everywhere, in {step}, the ledger, the curves and --from."""
    checkpoints = tmp_path / "ckpt"
    checkpoints.mkdir()
    for name in names:
        (checkpoints / name).write_bytes(b"x")
    command = script(tmp_path, f"echo $1 >> '{tmp_path}/runs'; echo step_seen $1 | tr -d =\n") + " {step}"
    with Exec(tmp_path, command, "--once", "--pattern", pattern, "--ready", "rename", *arguments) as evaluator:
        evaluator.ends(1 if "-10" in map(str, arguments) else 0)
    assert steps(ledger(tmp_path)) == runs(tmp_path) == wanted
    assert [(p[0], p[1]) for p in points(tmp_path / "eval")["step_seen"]] == [(s, s) for s in wanted]
    assert all("no step" in r["reason"] for r in ledger(tmp_path) if r["status"] == "failed")
