"""What the test runner says while tests run: who waits for it sees what it waits for."""
import pathlib
import shutil
import subprocess
import sys

from waiting import wait_for

TESTS = pathlib.Path(__file__).resolve().parents[1]

SOME = """
import pathlib
from waiting import wait_for

def test_long():
    wait_for(pathlib.Path(__file__).with_name("told").exists, "the line that names this test")

def test_wrong():
    assert False
"""


def test_a_test_that_runs_is_named(tmp_path):
    """The runner's own plugin, with less patience: the test ends only after it was named."""
    for name in ("conftest.py", "kinds_log.py", "making.py", "progress.py", "waiting.py"):
        shutil.copy(TESTS / name, tmp_path)
    quick = (TESTS / "progress.py").read_text().replace("SILENCE = 8", "SILENCE = 0.1")
    assert "SILENCE = 0.1" in quick
    (tmp_path / "progress.py").write_text(quick)
    (tmp_path / "test_some.py").write_text(SOME)
    output = tmp_path / "output"
    with open(output, "w") as out:
        process = subprocess.Popen([sys.executable, "-m", "pytest", "-q", "-n", "1", "-p", "no:cacheprovider", "."],
                                   cwd=tmp_path, stdout=out, stderr=out)
    try:
        wait_for(lambda: "0 of 2 tests, 0 failed; running: test_some.py::test_long (" in output.read_text() or
                 process.poll() is not None, "the running test")
        (tmp_path / "told").touch()
        assert process.wait() == 1
    finally:
        process.kill()
        process.wait()
    assert "  FAIL test_some.py::test_wrong\n" in output.read_text()
    assert "1 failed, 1 passed" in output.read_text()
