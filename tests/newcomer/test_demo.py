"""`make demo`, ended before it is done; tests/peers/test_tensorboard_page.py looks at a whole one."""
import importlib.util
import pathlib
import subprocess
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def demo():
    specification = importlib.util.spec_from_file_location("demo_run", ROOT / "demo/run.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_interrupted_between_two_starts(demo, tmp_path, monkeypatch):
    """Ctrl-C when the evaluator runs and the trainer does not yet: the evaluator ends."""
    started, popen = [], subprocess.Popen

    def start(command, **keywords):
        if started:
            raise KeyboardInterrupt
        started.append(popen(["sleep", "1000"], **keywords))
        return started[0]

    monkeypatch.setattr(subprocess, "Popen", start)
    options = types.SimpleNamespace(out=tmp_path, build=pathlib.Path("build"), steps=20)
    with pytest.raises(KeyboardInterrupt):
        demo.train_and_evaluate(options, *demo.RUNS[0])
    try:
        assert started[0].wait(60) < 0
    finally:
        started[0].kill()
