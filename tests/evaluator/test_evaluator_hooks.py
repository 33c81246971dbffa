"""Commands that are run when something happens: what they get, when, and that they change nothing."""
import json
import shlex
import signal
import subprocess

import pytest

from evaluators import EVALUATOR, Exec, Several, alive, ledger, script, steps, write, write_into
from waiting import DEADLINE, wait_for


def hook(directory, name, text):
    """A script beside that of the evaluation; returns the command that runs it."""
    path = directory / f"{name}.sh"
    path.write_text(text)
    return f"sh {shlex.quote(str(path))}"


def told(directory, name):
    """What hooks have written: one JSON object a line."""
    path = directory / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def teller(directory, name):
    """A hook that writes down its arguments and environment as JSON."""
    return hook(directory, name, f"""exec python3 - "$@" >> '{directory}/{name}' <<'END'
import json, os, sys
print(json.dumps({{"words": sys.argv[1:], **{{k[10:].lower(): v for k, v in os.environ.items() if k[:10] == "EVALUATOR_"}}}}))
END
""")


WORDS = " {event} {name} {step} '{value} of {metric}' {checkpoint} {reason}"
SCORES = 'case $1 in 100) echo accuracy 0.5;; 200) exit 3;; 300) echo accuracy 0.75;; 400) echo accuracy 0.25;; esac\n'


@pytest.mark.parametrize("keep", [True, False], ids=["kept", "not kept"])
def test_values(tmp_path, keep):
    """Words and environment of each event; the line of the ledger and best/ are there before the command runs."""
    directory = tmp_path / "with 'blanks'"
    directory.mkdir()
    write(directory, "--last", 400)
    best = teller(tmp_path, "best")
    check = hook(tmp_path, "check", f"grep -q '\"step\":'$EVALUATOR_STEP, \"$EVALUATOR_EVAL_DIR\"/evaluations.jsonl || exit 5\n"
                                    f'test -e "$EVALUATOR_CHECKPOINT".index || exit 6\nexec {best} "$@"\n')
    # A better one takes its place in best/ only once the command for it has run.
    scores = SCORES.replace("300)", f"300) timeout {DEADLINE} sh -c 'until test -s \"$0\"; do sleep 0.02; done' '{tmp_path}/best';")
    with Exec(directory, script(tmp_path, scores) + " {step}", "--once", "--best-metric", "accuracy",
              *(["--keep-best"] if keep else []), "--on-best", check + WORDS, "--on-failure",
              teller(tmp_path, "failure") + WORDS, "--on-end", teller(tmp_path, "end") + WORDS) as evaluator:
        evaluator.ends(1)
        assert "--on-" not in evaluator.said(), evaluator.said()
    place = str(directory / "eval/best") if keep else str(directory / "ckpt")
    first, second = told(tmp_path, "best")
    assert first["words"] == ["best", "model.ckpt-100", "100", "0.5 of accuracy", f"{place}/model.ckpt-100", ""]
    assert second["words"] == ["best", "model.ckpt-300", "300", "0.75 of accuracy", f"{place}/model.ckpt-300", ""]
    assert (second["event"], second["step"], second["value"]) == ("best", "300", "0.75")
    assert (second["done"], second["failed"], second["gone"]) == ("2", "1", "0")
    assert (second["eval_dir"], second["checkpoint_dir"]) == (str(directory / "eval"), str(directory / "ckpt"))
    failure, = told(tmp_path, "failure")
    assert failure["words"][:5] == ["failure", "model.ckpt-200", "200", " of ", f"{directory}/ckpt/model.ckpt-200"]
    assert "exit status 3" in failure["reason"] == failure["words"][5]
    end, = told(tmp_path, "end")
    assert end["words"] == ["end", "model.ckpt-300", "300", "0.75 of accuracy", f"{place}/model.ckpt-300",
                            "all existing checkpoints have been evaluated (--once)"]
    assert (end["done"], end["failed"]) == ("3", "1")
    for name, count in (("best", 2), ("failure", 1), ("end", 1)):
        log = (directory / f"eval/logs/on-{name}.log").read_text()
        assert log.count("exit status 0") == count and f"--on-{name}" in log


def test_failing_ones_change_nothing(tmp_path):
    """A status of its own, a program that is not there, a signal: told, and neither ledger nor exit status differ."""
    write(tmp_path, "--last", 100)
    with Exec(tmp_path, "echo precision 1", "--once", "--on-best", hook(tmp_path, "a", "echo out; echo 'no route' >&2; exit 7\n"),
              "--on-end", "/nonexistent/program") as evaluator:
        evaluator.ends(0)
        said = evaluator.said()
    assert "--on-best for model.ckpt-100: the command ended with exit status 7: no route; see " in said
    assert "--on-end: cannot run '/nonexistent/program': No such file" in said
    assert "out\nno route\n" in (tmp_path / "eval/logs/on-best.log").read_text()
    assert steps(ledger(tmp_path)) == [100]


def test_one_that_hangs(tmp_path):
    """Evaluations go on beside it; it is ended with its group at its timeout, and the evaluator ends."""
    write(tmp_path, "--last", 300)
    hang = hook(tmp_path, "hang", f"trap '' TERM; sleep 1000 & echo $! > '{tmp_path}/child'; echo $$ > '{tmp_path}/leader'\n"
                                  "while :; do sleep 1000; done\n")
    with Exec(tmp_path, "echo precision 1", "--on-best", hang, "--hook-timeout", 3, "--forever") as evaluator:
        wait_for(lambda: len(ledger(tmp_path)) == 3, "evaluations beside it")
        assert alive(int((tmp_path / "leader").read_text()))
        evaluator.says("ran longer than the 3 s of --hook-timeout")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    for name in ("child", "leader"):
        wait_for(lambda: not alive(int((tmp_path / name).read_text())), f"the end of the {name}")


def test_signals(tmp_path):
    """A first signal lets --on-end run, with the reason; a further one does not wait for it."""
    write(tmp_path, "--last", 100)
    wait = hook(tmp_path, "wait", f"echo \"$EVALUATOR_REASON\" > '{tmp_path}/reason'; echo $$ > '{tmp_path}/pid'; exec sleep 1000\n")
    with Exec(tmp_path, "echo precision 1", "--forever", "--on-end", wait) as evaluator:
        evaluator.says("step: 100,")
        evaluator.process.send_signal(signal.SIGTERM)
        wait_for((tmp_path / "pid").exists, "the command")
        assert (tmp_path / "reason").read_text() == "a signal ended the evaluator\n"
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0, 10)
    wait_for(lambda: not alive(int((tmp_path / "pid").read_text())), "the end of the command")


def test_output_is_capped(tmp_path):
    write(tmp_path, "--last", 100)
    with Exec(tmp_path, "echo precision 1", "--once", "--on-best", "yes 0123456789abcdef", "--hook-timeout", 1) as evaluator:
        evaluator.ends(0)
    log = tmp_path / "eval/logs/on-best.log"
    assert 0.9 * (1 << 20) < log.stat().st_size < 1.1 * (1 << 20) and "bytes are left out here" in log.read_text()
    with open(log, "ab") as file:
        file.truncate(17 << 20)
    write(tmp_path, "--first", 200, "--last", 200)
    with Exec(tmp_path, "echo precision 2", "--once", "--on-best", "echo hello") as evaluator:
        evaluator.ends(0)
    assert log.stat().st_size < 1000 and (tmp_path / "eval/logs/on-best.log.old").stat().st_size == 17 << 20


def test_too_many(tmp_path):
    """Faster than they can be run: some are left out, which is told once; nothing waits for them."""
    write(tmp_path, "--last", 20000)
    hold = hook(tmp_path, "hold", f"echo x >> '{tmp_path}/runs'; while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done\n")
    command = script(tmp_path, "exit $(($1 / 100 % 2 + 1))\n") + " {step}"  # not in the same way, which would be waited for
    with Exec(tmp_path, command, "--once", "--jobs", 8, "--on-failure", hold) as evaluator:
        wait_for(lambda: len(ledger(tmp_path)) == 200, "all outcomes")
        evaluator.says("100 runs are waiting")
        (tmp_path / "go").touch()
        evaluator.ends(1)
        assert evaluator.said().count("events are skipped") == 1
    assert (tmp_path / "runs").read_text().count("x") == 100


def test_several(tmp_path):
    """Each directory has its own events, told with its name."""
    for name in "ab":
        write_into(tmp_path / name, "--last", 100)
    with Several(tmp_path, "--watch", f"a={tmp_path / 'a'}", "--watch", f"b={tmp_path / 'b'}", "--once", "--on-end",
                 teller(tmp_path, "end") + " {eval_dir}; exit 2") as several:
        several.ends(0)
    assert sorted(one["words"][0] for one in told(tmp_path, "end")) == [
        f"{tmp_path}/runs/{name}/eval;" for name in "ab"]


def test_killed(tmp_path):
    """A command dies with its evaluator, and is not run again for what was recorded."""
    write(tmp_path, "--last", 100)
    hang = hook(tmp_path, "hang", f"echo $$ >> '{tmp_path}/pids'; exec sleep 1000\n")
    with Exec(tmp_path, "echo precision 1", "--forever", "--on-best", hang) as evaluator:
        wait_for((tmp_path / "pids").exists, "the command")
        evaluator.process.kill()
    wait_for(lambda: not alive(int((tmp_path / "pids").read_text())), "the end of the command")
    with Exec(tmp_path, "echo precision 1", "--once", "--on-best", hang) as evaluator:
        evaluator.ends(0)
    assert (tmp_path / "pids").read_text().count("\n") == 1


@pytest.mark.parametrize("arguments, word", [
    (["--on-best", "x {chekpoint}"], "--on-best: unknown {chekpoint}; did you mean '{checkpoint}'"),
    (["--on-end", "x 'y"], "--on-end: a quote"), (["--on-failure", ""], "--on-failure: the command is empty"),
    (["--hook-timeout", "0"], "hook-timeout"),
])
def test_wrong_usage(tmp_path, arguments, word):
    run = subprocess.run([EVALUATOR, "--checkpoint-dir", tmp_path, "--eval-dir", tmp_path / "eval", "--exec", "true",
                          *arguments], capture_output=True, text=True)
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and word in run.stderr
