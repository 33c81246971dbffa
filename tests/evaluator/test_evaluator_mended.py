"""A command with a mistake: after three failures of the same kind the evaluator waits, and goes on once it is mended."""
import os
import subprocess

import pytest

from evaluators import Exec, ledger, points, script, steps, write
from waiting import wait_for

GOOD = "echo accuracy 0.5\n"
ALL = list(range(100, 1001, 100))


def python(directory, text):
    (directory / "score.py").write_text(text)
    return f"python3 '{directory}/score.py' {{checkpoint}} {{step}}"


def mend(path, text):
    """As an editor does: a new file under the old name."""
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


@pytest.mark.parametrize("mistake, words", [
    ("print('accuracy 1'\n", ["exit status 1", "SyntaxError"]),
    ("import sys\nraise KeyError('model of ' + sys.argv[1])\n", ["exit status 1", "KeyError"]),
    ("import os\nos.kill(os.getpid(), 11)\n", ["signal 11"]),
    ("import sys\nprint('step', sys.argv[2])\n", ["no metric"]),
])
def test_once(tmp_path, mistake, words):
    """Three are tried, and all when it was mended; once more with the mistake burns none of the others."""
    write(tmp_path, "--last", 1000)
    command = python(tmp_path, mistake)
    for tries in (3, 6):
        with Exec(tmp_path, command, "--once") as evaluator:
            evaluator.ends(1)
            said = evaluator.said()
        assert said.count("in the same way 3 times in a row") == 1 and "7 checkpoints are left untried" in said, said
        assert all(word in said for word in words) and "7 untried" in said and "--retry-failed" not in said
        records = ledger(tmp_path)
        assert steps(records, "failed") == [100, 200, 300] * (tries // 3) and steps(records, "untried") == ALL[3:]
    mend(tmp_path / "score.py", "print('accuracy 0.5')\n")
    with Exec(tmp_path, command, "--once") as evaluator:
        evaluator.ends(0)
        assert "in all 10 done, 0 failed, 0 gone\n" in evaluator.said()
    assert steps(ledger(tmp_path)) == ALL and [p[0] for p in points(tmp_path / "eval")["accuracy"]] == ALL


@pytest.mark.parametrize("options", [[], ["--pin"], ["--jobs", "2"]])
def test_waits(tmp_path, options):
    """It waits and says so once; the mend, as the change of another word's file, makes it go on by itself."""
    write(tmp_path, "--last", 2000)
    # With several at a time, eight results may wait for the line of a slow one before them.
    most = 2 + 8 if "--jobs" in options else 3
    command = script(tmp_path, f"sh '{tmp_path}/part.sh'\n")
    (tmp_path / "part.sh").write_text("echo no such model >&2; exit 2\n")
    with Exec(tmp_path, f"{command} '{tmp_path}/part.sh'", "--until-step", "2000", *options) as evaluator:
        evaluator.says("in the same way")
        waiting = next(line for line in evaluator.said().splitlines() if "in the same way" in line)
        assert "exit status 2: no such model" in evaluator.said() and "no such model" not in waiting
        assert "left untried" not in evaluator.said() and len(ledger(tmp_path)) <= most
        mend(tmp_path / "part.sh", GOOD)
        evaluator.ends(0)
        assert evaluator.said().count("in the same way") == 1
    every = list(range(100, 2001, 100))
    assert sorted(steps(ledger(tmp_path))) == every
    if "--jobs" not in options:
        assert [p[0] for p in points(tmp_path / "eval")["accuracy"]] == every


def test_one_curve(tmp_path):
    """Those that failed come before those that waited, also where only quiet shows that a checkpoint is whole."""
    (tmp_path / "ckpt").mkdir()
    for step in range(1, 7):
        (tmp_path / "ckpt" / f"epoch_{step:03}.pt").write_text("weights")
    command = script(tmp_path, "exit 1\n")
    with Exec(tmp_path, command, "--pattern", "epoch_{step}.pt", "--until-step", "6") as evaluator:
        evaluator.says("waiting until a file")
        mend(tmp_path / "score.sh", GOOD)
        evaluator.ends(0)
    assert [p[0] for p in points(tmp_path / "eval")["accuracy"]] == list(range(1, 7))


def test_chmod_is_a_mend(tmp_path):
    write(tmp_path, "--last", 500)
    path = tmp_path / "score"
    path.write_text("#!/bin/sh\n" + GOOD)
    path.chmod(0o644)
    with Exec(tmp_path, f"'{path}' {{step}}", "--until-step", "500") as evaluator:
        evaluator.says("in the same way")
        path.chmod(0o755)
        evaluator.ends(0)
    assert sorted(steps(ledger(tmp_path))) == ALL[:5]


def test_program_of_path(tmp_path):
    """A program is found by PATH, and one that appears there is a mend."""
    write(tmp_path, "--last", 500)
    (tmp_path / "bin").mkdir()
    with Exec(tmp_path, "score-it {step}", "--until-step", "500",
              env={**os.environ, "PATH": f"{os.environ['PATH']}:{tmp_path}/bin"}) as evaluator:
        evaluator.says("in the same way")
        path = tmp_path / "bin" / "score-it.new"
        path.write_text("#!/bin/sh\n" + GOOD)
        path.chmod(0o755)
        path.rename(tmp_path / "bin" / "score-it")
        evaluator.ends(0)
    assert sorted(steps(ledger(tmp_path))) == ALL[:5]


def test_fewer_than_three(tmp_path):
    """With one or two the evaluator ends as ever; they stay failed until the script, or the command, is another one."""
    write(tmp_path, "--last", 200)
    command = python(tmp_path, "import nothing_such\n")
    for _ in range(2):
        with Exec(tmp_path, command, "--once") as evaluator:
            evaluator.ends(1)
            assert "--retry-failed evaluates the failed ones again" in evaluator.said()
        assert steps(ledger(tmp_path), "failed") == [100, 200] and len(ledger(tmp_path)) == 2
    with Exec(tmp_path, "sh -c 'exit 3'", "--once") as evaluator:
        evaluator.ends(1)
    assert len(ledger(tmp_path)) == 4
    with Exec(tmp_path, "sh -c 'echo loss 1'", "--once") as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [100, 200]


def test_other_mistakes_are_no_row(tmp_path):
    """Failures that differ, or have a score between them, say something about the checkpoints."""
    write(tmp_path, "--last", 1000)
    command = script(tmp_path, "case $1 in 100|200|400|500|700|800) exit 1;; 900|1000) exit 2;; esac\necho loss 1\n")
    with Exec(tmp_path, command + " {step}", "--once") as evaluator:
        evaluator.ends(1)
        assert "in the same way" not in evaluator.said()
    assert steps(ledger(tmp_path)) == [300, 600] and len(ledger(tmp_path)) == 10


def test_ends_with_its_training(tmp_path):
    """What waits for a mend ends when there is no training any more, and on a signal; the ledger says what was left."""
    write(tmp_path, "--last", 600)
    training = subprocess.Popen(["sleep", "1000"])
    with Exec(tmp_path, "false", "--pid", training.pid) as evaluator:
        evaluator.says("in the same way")
        training.kill()
        training.wait()
        evaluator.ends(1)
    assert steps(ledger(tmp_path), "untried") == [400, 500, 600]
    with Exec(tmp_path, "false", "--retry-failed") as evaluator:
        evaluator.says("in the same way")
        evaluator.process.terminate()
        evaluator.ends(1)
    assert steps(ledger(tmp_path), "untried") == [400, 500, 600] and len(ledger(tmp_path)) == 9
    with Exec(tmp_path, "echo loss 1", "--once") as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == ALL[:6]


def test_a_command_that_writes_to_a_file_it_names(tmp_path):
    """Its own file changes with each run, which is no mend."""
    write(tmp_path, "--last", 1000)
    (tmp_path / "notes").touch()
    command = script(tmp_path, 'echo x >> "$1"\nexit 1\n')
    with Exec(tmp_path, f"{command} '{tmp_path}/notes'", "--until-step", "1000") as evaluator:
        evaluator.says("waiting until a file")
        assert (tmp_path / "notes").read_text().count("x") <= 6
        mend(tmp_path / "score.sh", GOOD)
        evaluator.ends(0)
