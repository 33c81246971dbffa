"""The evaluator with --exec: metrics from any command, its process group, deadline, retries, logs, and the order of
results with several at a time."""
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from evaluators import EVALUATOR, KILLS, Exec, alive, ledger, points, script, start_writing, steps, write
from interposed import LACKING, interposed
from waiting import DEADLINE, wait_for


def log_of(directory, step):
    return (directory / "eval" / "logs" / f"{step}-model.ckpt-{step}.log").read_text()


def test_values(tmp_path):
    """Placeholders, environment, metrics in their order, the best of one of them, tags, log files."""
    directory = tmp_path / "with 'blanks'"
    directory.mkdir()
    write(directory, "--last", 300)
    command = script(tmp_path, 'echo talk; echo warning >&2; echo "words $*"\n'
                               'test "$1" = "$EVALUATOR_CHECKPOINT" -a "$2" = "$EVALUATOR_STEP" || exit 9\n'
                               'test "$3" = "$EVALUATOR_INDEX" -a "$4" = "$EVALUATOR_EVAL_DIR" || exit 8\n'
                               'test -f "$1.index" -a -d "$4" || exit 7\n'
                               'echo "wer $((500 - $2))"; echo "{\\"loss\\": 0.5, \\"index\\": $3}"\n')
    with Exec(directory, command + " {checkpoint} {step} {index} {eval_dir} {name}", "--once", "--best-metric", "wer",
              "--best-mode", "min") as evaluator:
        evaluator.ends(0)
        assert "step: 300, model.ckpt-300: loss: 0.500, wer: 200" in evaluator.said()
        assert "best wer 200.000 (model.ckpt-300)" in evaluator.said()
    records = ledger(directory)
    assert [list(r["metrics"].items()) for r in records] == [
        [("wer", 400), ("best_wer", 400), ("loss", 0.5), ("index", 0)],
        [("wer", 300), ("best_wer", 300), ("loss", 0.5), ("index", 1)],
        [("wer", 200), ("best_wer", 200), ("loss", 0.5), ("index", 2)]]
    assert "examples" not in records[0] and "weights" not in records[0]
    series = points(directory / "eval")
    assert {tag: [p[1] for p in s] for tag, s in series.items()} == {
        "wer": [400, 300, 200], "best_wer": [400, 300, 200], "loss": [0.5] * 3, "index": [0, 1, 2]}
    for word in ("attempt 1", "talk", "warning", "model.ckpt-200", "exit status 0"):
        assert word in log_of(directory, 200)


@pytest.mark.parametrize("text, words", [
    ("echo loss 1; exit 3", ["exit status 3", "logs/100-"]), ("echo it broke >&2; exit 1", ["exit status 1: it broke"]),
    ("kill -SEGV $$", ["signal 11"]), ("echo nothing to see", ["no metric", "logs/100-"]),
    ("echo loss 1; echo loss 2", ["'loss' is named twice"]), ("echo loss nan", ["the loss is NaN"]),
])
def test_failures(tmp_path, text, words):
    write(tmp_path, "--last", 200)
    command = script(tmp_path, f"if [ $1 = 200 ]; then echo loss 1; exit 0; fi\n{text}\n")
    with Exec(tmp_path, command + " {step}", "--once", "--strict" if "SEGV" in text else "--once") as evaluator:
        evaluator.ends(1)
    records = ledger(tmp_path)
    assert steps(records, "failed") == [100]
    assert steps(records) == ([] if "SEGV" in text else [200])
    for word in words:
        assert word in records[0]["reason"], records[0]["reason"]


def test_nan_is_said(tmp_path):
    write(tmp_path, "--last", 200)
    with Exec(tmp_path, script(tmp_path, "echo precision nan; echo loss 1\n"), "--once") as evaluator:
        evaluator.ends(0)
        assert "model.ckpt-100: precision is NaN" in evaluator.said() and "no best checkpoint yet" in evaluator.said()
    assert [r["metrics"] for r in ledger(tmp_path)] == [{"precision": "NaN", "loss": 1}] * 2


def test_cannot_run(tmp_path):
    write(tmp_path)
    with Exec(tmp_path, "/nonexistent/program {checkpoint}", "--once") as evaluator:
        evaluator.ends(1)
    assert "/nonexistent/program" in ledger(tmp_path)[0]["reason"] and "No such file" in ledger(tmp_path)[0]["reason"]


def test_retries(tmp_path):
    """The second attempt works; after as many as --retries allows it has failed, with what the last one said."""
    write(tmp_path, "--last", 200)
    command = script(tmp_path, f'cd "{tmp_path}"; echo x >> tried.$1\n'
                               '[ $1 = 200 ] && echo always && exit 4\n'
                               '[ $(wc -l < tried.$1) -lt 2 ] && exit 4\necho loss 1\n')
    with Exec(tmp_path, command + " {step}", "--once", "--retries", 1, "--jobs", 2) as evaluator:
        evaluator.ends(1)
    first, second = ledger(tmp_path)
    assert first["status"] == "done" and second["status"] == "failed" and "status 4: always" in second["reason"]
    assert (tmp_path / "tried.100").read_text().count("x") == (tmp_path / "tried.200").read_text().count("x") == 2
    assert log_of(tmp_path, 100).count("attempt") == 2 and first["seconds"] >= 1


def test_deadline_ends_the_whole_group(tmp_path):
    """A command that hangs and ignores SIGTERM, with a child of its own: both are gone after deadline and grace."""
    write(tmp_path)
    command = script(tmp_path, f"trap '' TERM; sleep 1000 & echo $! > '{tmp_path}/child'\n"
                               f"echo $$ > '{tmp_path}/leader'; while :; do sleep 1000; done\n")
    with Exec(tmp_path, command, "--once", "--exec-timeout", 3) as evaluator:
        evaluator.ends(1)
    assert "3 s of --exec-timeout" in ledger(tmp_path)[0]["reason"]
    for name in ("child", "leader"):
        wait_for(lambda: not alive(int((tmp_path / name).read_text())), f"the end of the {name}")


@pytest.mark.parametrize("output, names", [("{'accuracy': 0.9, 'n': 100}", "accuracy, n"),
                                           ("Test accuracy: 97.1%", "Test accuracy")])
def test_names_what_may_be_the_best(tmp_path, output, names):
    write(tmp_path, "--last", 200)
    with Exec(tmp_path, script(tmp_path, f'echo "{output}"\n'), "--once") as evaluator:
        evaluator.ends(0)
        said = evaluator.said()
    assert said.count(f"no metric 'precision' to choose the best by; choose with --best-metric: {names}\n") == 1, said


@pytest.mark.parametrize("left", ["sleep 1000 &", "sleep 1000 > /dev/null 2>&1 &", "(trap '' TERM; exec sleep 1000) &"])
def test_what_is_left_behind(tmp_path, left):
    """A command that ends while a process of it lives, holds its output open, ignores SIGTERM: its result counts, the
    process is ended."""
    write(tmp_path)
    command = script(tmp_path, f"{left} echo $! > '{tmp_path}/child'; echo loss 1\n")
    with Exec(tmp_path, command, "--once") as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [100]
    wait_for(lambda: not alive(int((tmp_path / "child").read_text())), "the end of what was left")


def test_endless_output(tmp_path):
    """A command that prints for ever: its log stays bounded, and the deadline ends it."""
    write(tmp_path)
    with Exec(tmp_path, "yes 0123456789abcdef", "--once", "--exec-timeout", 1) as evaluator:
        evaluator.ends(1)
    assert "--exec-timeout" in ledger(tmp_path)[0]["reason"]
    assert (tmp_path / "eval" / "logs" / "100-model.ckpt-100.log").stat().st_size < 20 << 20


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_much_output(tmp_path, stream):
    """Of 40 MB on either stream the log keeps beginning and end, 16 MiB, and says how much is missing between; the last
    line is the reason of the failure. What just fits is kept whole."""
    write(tmp_path, "--last", 200)
    command = script(tmp_path, f"(if [ $1 = 100 ]; then echo first; yes 0123456789abcdef | head -c 40000000; echo; "
                               f"echo it broke; else yes 0123456789abcdef | head -c {16 << 20}; fi){stream}\nexit 3\n")
    with Exec(tmp_path, command + " {step}", "--once") as evaluator:
        evaluator.ends(1)
    much, fits = log_of(tmp_path, 100), log_of(tmp_path, 200)
    assert "exit status 3: it broke" in ledger(tmp_path)[0]["reason"]
    kept = sum(len(line) for line in much.splitlines(keepends=True) if not line.startswith("# "))
    missing, = re.findall(r"^# \S+ (\d+) bytes are left out here$", much, re.MULTILINE)
    # The note begins a line of its own, after the first 16 MiB less 64 KiB, which do not end one.
    assert kept == (16 << 20) + 1 and int(missing) == len("first\n\nit broke\n") + 40000000 - (16 << 20)
    assert "\nfirst\n0123" in much and "left out" not in fits
    assert sum(len(line) for line in fits.splitlines(keepends=True) if not line.startswith("# ")) == (16 << 20) + 1


def test_jobs_in_order(tmp_path):
    """Four at a time, each the slower the earlier it started: points and lines stand in the order of the steps."""
    write(tmp_path, "--last", 1200)
    command = script(tmp_path, f"echo x >> '{tmp_path}/running'; while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done\n"
                               "sleep 0.$((9 - $2 % 4 * 2)); echo loss $1\n")
    with Exec(tmp_path, command + " {step} {index}", "--once", "--jobs", 4) as evaluator:
        wait_for(lambda: (tmp_path / "running").exists() and (tmp_path / "running").read_text().count("x") >= 4,
                 "four at a time")
        assert not ledger(tmp_path)
        (tmp_path / "go").touch()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == list(range(100, 1201, 100))
    assert [(p[0], p[1]) for p in points(tmp_path / "eval")["loss"]] == [(s, s) for s in range(100, 1201, 100)]


def test_signals(tmp_path):
    """The first signal lets the commands finish, the second ends them; what was ended is evaluated by the next start."""
    write(tmp_path, "--last", 300)
    command = script(tmp_path, f"touch '{tmp_path}/started'; while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done\n"
                               "echo loss 1\n")
    with Exec(tmp_path, command, "--jobs", 2) as evaluator:
        wait_for((tmp_path / "started").exists, "a command")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.says("a second signal")
        (tmp_path / "go").touch()
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) in ([100], [100, 200])
    for name in ("go", "started"):
        (tmp_path / name).unlink()
    before = ledger(tmp_path)
    with Exec(tmp_path, command) as evaluator:
        wait_for((tmp_path / "started").exists, "a command")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.says("a second signal")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
    assert ledger(tmp_path) == before


def test_killed_at_any_moment(tmp_path):
    """kill -9 of the evaluator, or of a command, at random moments: nothing lost, nothing recorded twice."""
    chance = random.Random(2)
    wanted = list(range(100, 100 * KILLS + 1, 100))
    pids = tmp_path / "pids"
    pids.mkdir()
    command = script(tmp_path, f"touch '{pids}/'$$; sleep 0.02; echo loss $1; rm '{pids}/'$$\n") + " {step}"
    writer = start_writing(tmp_path, "--last", 100 * KILLS, "--interval", 0.1, "--finish")
    for i in range(KILLS):
        with Exec(tmp_path, command, "--jobs", 1 + i % 3, "--retries", 3) as evaluator:
            time.sleep(chance.uniform(0.03, 0.3))  # the moment is the test, nothing is waited for
            if i % 2:
                for path in pids.iterdir():
                    try:
                        os.kill(int(path.name), signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                time.sleep(chance.uniform(0, 0.2))
            evaluator.process.kill()
        for path in pids.iterdir():  # a command dies with its evaluator
            wait_for(lambda: not alive(int(path.name)), "the end of a command")
            path.unlink(missing_ok=True)  # its own rm may come first
    with Exec(tmp_path, command, "--jobs", 2) as evaluator:
        evaluator.ends(0, DEADLINE + KILLS)
    assert writer.wait(DEADLINE) == 0
    records = ledger(tmp_path)
    assert steps(records) == wanted and len(records) == len(wanted)
    assert all(r["metrics"]["loss"] == r["step"] for r in records)
    series = points(tmp_path / "eval")["loss"]
    assert sorted({p[0] for p in series}) == wanted and all(p[0] == p[1] for p in series)


def test_deleted_before_the_command(tmp_path):
    """Without --pin a checkpoint may be deleted first: counted and named, and not a failure of the command."""
    write(tmp_path, "--last", 300)
    command = script(tmp_path, f"rm -f '{tmp_path}'/ckpt/model.ckpt-200*; [ -e $1.index ] || exit 5; echo loss 1\n")
    with Exec(tmp_path, command + " {checkpoint}", "--once", "--retries", 2) as evaluator:
        evaluator.ends(1)
        assert "model.ckpt-200: gone" in evaluator.said() and "1 gone" in evaluator.said()
    status = subprocess.run([EVALUATOR, "status", tmp_path / "eval"], capture_output=True, text=True)
    assert status.returncode == 1 and "2 done, 0 failed, 1 gone" in status.stdout
    shown = subprocess.run([EVALUATOR, "status", "--help"], capture_output=True, text=True).stdout
    assert "checkpoints failed or were deleted" in " ".join(shown.split())
    records = ledger(tmp_path)
    assert steps(records) == [100, 300] and steps(records, "gone") == [200]


@pytest.mark.parametrize("call, said", [
    ("fork", "cannot start a process: Cannot allocate memory"), ("pipe2", "cannot start a process: Too many open files"),
    ("execvpe", "cannot run 'echo': Resource temporarily unavailable")])
def test_what_the_machine_lacks(tmp_path, call, said):
    """A shortage of memory or descriptors is not the checkpoint's failure: it waits, says so once, and goes on."""
    write(tmp_path, "--last", 200)
    lack = tmp_path / "lack"
    environment = interposed(tmp_path, "lacking", LACKING, LACK_OF=call, LACK_WHILE=lack)
    with Exec(tmp_path, "echo loss 1", "--until-step", 300, "--retries", 0, env=environment) as evaluator:
        wait_for(lambda: steps(ledger(tmp_path)) == [100, 200], "both")
        lack.touch()
        write(tmp_path, "--first", 300, "--last", 300)
        evaluator.says(f"model.ckpt-300 waits: {said}; trying again every second")
        lack.unlink()
        evaluator.ends(0)
        assert evaluator.said().count("waits: ") == 1 and "failed:" not in evaluator.said()
    assert steps(ledger(tmp_path)) == [100, 200, 300] and log_of(tmp_path, 300).count("attempt 1") == 1


def test_shell(tmp_path):
    """A shell is there when it is asked for, and finds the values in its environment."""
    write(tmp_path)
    with Exec(tmp_path, """sh -c 'printf "%s" "$EVALUATOR_NAME" | wc -c | sed "s/^/name\\/length /"'""", "--once",
              "--json") as evaluator:
        evaluator.ends(0)
        assert "step: 100, model.ckpt-100: name/length: 14" in evaluator.said()
    assert json.loads(evaluator.output)["metrics"] == {"name/length": 14}


@pytest.mark.parametrize("arguments, word", [
    (["--exec", "x 'y"], "quote"), (["--exec", ""], "empty"), (["--exec", "x {chekpoint}"], "{checkpoint}"),
    (["--exec", "sh -c 'x {checkpoint}'"], '"$EVALUATOR_CHECKPOINT"'),
    (["--exec", "x", "--on-best", "env bash -c 'cp {checkpoint} .'"], '"$EVALUATOR_CHECKPOINT"'),
    (["--exec", "x", "--jobs", "0"], "jobs"), (["--jobs", "2"], "--exec"), (["--exec", "x", "--model", "lenet"], "--model"),
])
def test_wrong_usage(tmp_path, arguments, word):
    run = subprocess.run([EVALUATOR, "--checkpoint-dir", tmp_path, "--eval-dir", tmp_path / "eval", *arguments],
                         capture_output=True, text=True)
    talk = [line for line in run.stderr.splitlines() if "watching" not in line]
    assert run.returncode == 2 and len(talk) == 1 and word in talk[0]
