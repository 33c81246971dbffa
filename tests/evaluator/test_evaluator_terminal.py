"""What the evaluator says while it runs: on terminals of several widths nothing that is drawn anew wraps."""
import os
import signal

import pytest

from evaluators import EVALUATOR, Evaluator, write
from terminal import Terminal
from waiting import DEADLINE, wait_for

PATH = "a/rather/long/path/to/the/checkpoints/of/a/training"


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_on_a_terminal(tmp_path, columns):
    write(tmp_path, "--last", 100, checkpoints=PATH)
    (tmp_path / "score.sh").write_text(f"touch '{tmp_path}/started'\n"
                                       f"while [ ! -e '{tmp_path}/go' ]; do sleep 0.02; done\necho accuracy 0.9\n")
    command = [EVALUATOR, "--checkpoint-dir", tmp_path / PATH, "--eval-dir", tmp_path / "eval", "--exec",
               f"sh '{tmp_path}/score.sh'", "--best-metric", "accuracy"]
    terminal = Terminal(columns, command, os.environ)
    wait_for((tmp_path / "started").exists, "the command")
    terminal.shows(r"model\.ckpt-100: [\d.]+ s, 0 queued")  # for how long: a command does not say how far it is
    (tmp_path / "go").touch()
    terminal.shows(r"waiting: 1 done, newest .* old, best accuracy 0\.900" if columns > 80 else r"waiting: 1 done, ")
    terminal.process.send_signal(signal.SIGTERM)
    terminal.shows(r"evaluator: SIGTERM: ending\r\n(.*\r\n)*.*best accuracy 0\.900 \(model\.ckpt-100\)\r\n")
    assert terminal.process.wait(DEADLINE) == 0
    os.close(terminal.master)
    assert max(map(len, terminal.lines())) <= columns and "%" not in terminal.screen
    drawn = [line for line in terminal.lines() if not line.startswith(("evaluator: watching", "step: ", "  "))]
    assert len(drawn) > 3 and max(map(len, drawn)) < columns
    assert "evaluator: 1 evaluated; in all 1 done, 0 failed, 0 gone" in drawn


def test_in_a_pipe(tmp_path):
    """No line that is drawn anew, and nothing but text."""
    write(tmp_path, "--last", 200)
    with Evaluator(tmp_path, "--once", "--best-metric", "accuracy", how=["--exec", "echo accuracy 0.9"]) as evaluator:
        said = evaluator.ends(0).said()
    assert said.count("\n") == len(said.splitlines()) == 6 and "\x1b" not in said and "\r" not in said


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("count", [1, 3])
def test_status_fits(tmp_path, columns, count):
    write(tmp_path, "--last", 200, checkpoints=PATH)
    for i in range(count):
        with Evaluator(tmp_path, "--once", how=["--exec", "echo accuracy 0.9"], checkpoints=PATH,
                       evaluation=f"{PATH}/{i}") as evaluator:
            evaluator.ends(0)
    terminal = Terminal(columns, [EVALUATOR, "status", tmp_path / PATH], {**os.environ, "NO_COLOR": "1"})
    terminal.shows(r"(best|no best|ended).*\r\n" if count == 1 else r"(ended.*\r\n){3}")
    terminal.process.wait(DEADLINE)
    os.close(terminal.master)
    assert max(map(len, terminal.screen.splitlines())) <= columns and "\x1b" not in terminal.screen
