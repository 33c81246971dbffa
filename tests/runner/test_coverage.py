"""tests/coverage.py: what it counts, and that it fails below its limit."""
import importlib.util
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COVERAGE = ROOT / "tests/coverage.py"
# Each condition has two branches: of those of `both` one is never taken, of `never` both.
SOURCE = """int both(int a) { return a ? 1 : 2; }
int never(int a)
{
    if (a)
        return 1;
    return 0;
}
int main(void)
{
    return both(1) - 1;
}
"""


def test_counts_and_fails(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("branch_coverage", COVERAGE)  # PyPI has a module `coverage`
    coverage = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(coverage)
    monkeypatch.setattr(coverage, "ROOT", tmp_path)
    monkeypatch.setattr(coverage, "FOLDERS", ("checkpoint",))
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/program.c").write_text(SOURCE)
    build = tmp_path / "build/checkpoint"
    build.mkdir(parents=True)
    subprocess.run(["gcc", "--coverage", "-O0", "-c", "-o", build / "program.o", "checkpoint/program.c"], cwd=tmp_path, check=True)
    subprocess.run(["gcc", "--coverage", "-o", build / "program", build / "program.o"], check=True)
    subprocess.run([build / "program"], check=True)
    monkeypatch.setattr(sys, "argv", ["coverage.py", "--build", str(tmp_path / "build"), "--uncovered", "program"])
    try:
        coverage.main()
        raise AssertionError("it did not fail")
    except SystemExit as end:
        assert end.code == "coverage.py: less than 95 % of the branches are taken in checkpoint"
    said = capsys.readouterr().out
    assert "checkpoint/program.c:1: 1 not taken: " in said and "checkpoint/program.c:4: 2 not taken: if (a)" in said
    assert said.splitlines()[2].split() == ["checkpoint", "42.9", "%", "25.0", "%"]


def test_nothing_is_built(tmp_path):
    done = subprocess.run([sys.executable, COVERAGE, "--build", tmp_path], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == f"coverage.py: nothing is built in {tmp_path}\n"
