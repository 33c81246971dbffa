"""What a command of --exec or of a hook starts is ended with it, however the command or the evaluator ends: plain
children, those in sessions of their own, those that forked twice, those that ignore SIGTERM. And what the guard between
the two (evaluator/score/command_process.h) costs: no descriptor, no zombie."""
import os
import pathlib
import signal

import pytest

from evaluators import Evaluator, Exec, alive, ledger, script, steps, write
from waiting import wait_for


# In: the file for process numbers. One child holds the output open, a grandchild ends up with init as things are.
DESCENDANTS = """
pids="$1"
sleep 1000 & echo $! >> "$pids"
(trap '' TERM; exec sleep 1000) > /dev/null 2>&1 & echo $! >> "$pids"
setsid sh -c 'trap "" TERM; echo $$ >> "$0"; while :; do sleep 1000; done' "$pids" &
(setsid sh -c 'echo $$ >> "$0"; (setsid sleep 1000 & echo $! >> "$0"); exec sleep 1000' "$pids" > /dev/null 2>&1 &)
while [ $(wc -l < "$pids") -lt 5 ]; do sleep 0.02; done
echo $$ >> "$pids"
"""
COUNT = 6


def descendants(directory):
    """Those of a command that has started all of them."""
    path = directory / "pids"
    wait_for(lambda: path.exists() and path.read_text().count("\n") == COUNT, "all processes of the command")
    return [int(line) for line in path.read_text().split()]


def command(directory, then):
    return script(directory, DESCENDANTS + then) + f" '{directory}/pids'"


def nobody(pids):
    wait_for(lambda: not any(map(alive, pids)), "the end of " + " ".join(str(p) for p in pids if alive(p)))


def children(pid):
    return [int(child) for task in pathlib.Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()]


@pytest.mark.parametrize("then, status", [("echo loss 1", 0), ("exit 3", 1), ("kill -KILL $$", 1),
                                          ("while :; do sleep 1000; done", 1)])
def test_command_ends(tmp_path, then, status):
    """By itself, with an error, by a signal, by its timeout: when the evaluator has ended, all have."""
    write(tmp_path)
    with Exec(tmp_path, command(tmp_path, then), "--once", "--exec-timeout", 4 if "sleep" in then else 0) as evaluator:
        pids = descendants(tmp_path)
        evaluator.ends(status)
    assert not any(map(alive, pids))
    assert steps(ledger(tmp_path), "failed" if status else "done") == [100]


@pytest.mark.parametrize("how", ["killed", "killed with its group", "Ctrl-C"])
def test_evaluator_ends(tmp_path, how):
    write(tmp_path)
    with Exec(tmp_path, command(tmp_path, "while :; do sleep 1000; done"), start_new_session=True) as evaluator:
        pids = descendants(tmp_path)
        if how == "Ctrl-C":
            os.killpg(evaluator.process.pid, signal.SIGINT)
            evaluator.says("a second signal")
            assert all(map(alive, pids))
            os.killpg(evaluator.process.pid, signal.SIGINT)
            evaluator.ends(1)
            assert not any(map(alive, pids))
        elif how == "killed":
            evaluator.process.kill()
        else:
            os.killpg(evaluator.process.pid, signal.SIGKILL)
        nobody(pids)
    assert not ledger(tmp_path)


@pytest.mark.parametrize("killed", [False, True])
def test_hook(tmp_path, killed):
    write(tmp_path)
    hook = command(tmp_path, "while :; do sleep 1000; done" if killed else "")
    with Evaluator(tmp_path, "--once", how=["--exec", "echo precision 1", "--on-best", hook]) as evaluator:
        pids = descendants(tmp_path)
        if killed:
            evaluator.process.kill()
            nobody(pids)
        else:
            evaluator.ends(0)
            assert not any(map(alive, pids))


def test_guard_holds_nothing(tmp_path):
    """While a command runs its guard has the pipe for its report and nothing else; a SIGTERM for everybody is not for
    it; afterwards it is gone, and waited for."""
    write(tmp_path)
    wait = f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done; echo loss 1"
    with Exec(tmp_path, command(tmp_path, wait)) as evaluator:
        pids = descendants(tmp_path)
        guard, = children(evaluator.process.pid)
        assert [os.readlink(f"/proc/{guard}/fd/{fd}")[:5] for fd in os.listdir(f"/proc/{guard}/fd")] == ["pipe:"]
        assert pathlib.Path(f"/proc/{guard}/comm").read_text() == "eval-guard\n"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(guard, number)
        (tmp_path / "go").touch()
        wait_for(lambda: steps(ledger(tmp_path)) == [100], "the evaluation")
        assert not any(map(alive, pids)) and not children(evaluator.process.pid)


def test_guard_killed(tmp_path):
    """Then the kernel ends the command, and the attempt has failed."""
    write(tmp_path)
    with Exec(tmp_path, script(tmp_path, f"echo $$ > '{tmp_path}/pid'; exec sleep 1000"), "--once") as evaluator:
        wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "the command")
        guard, = children(evaluator.process.pid)
        os.kill(guard, signal.SIGKILL)
        evaluator.ends(1)
        nobody([int((tmp_path / "pid").read_text())])
    assert "signal 9" in ledger(tmp_path)[0]["reason"]
