"""`make soak`, for half a minute: what must hold in the end. And what it takes for growth."""
import os
import pathlib
import random
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
sys.path.insert(0, str(TESTS / "soak"))
import soak  # noqa: E402
from waiting import wait_for  # noqa: E402


def test_half_a_minute(tmp_path):
    """Nothing is missing, twice or left behind; so short a run says nothing of growth, and is not failed for it."""
    run = subprocess.run([sys.executable, TESTS / "soak/soak.py", "--build", BUILD, "--seconds", "30", "--restart-every", "4",
                          "--seed", "5"], capture_output=True, text=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert run.returncode == 0, run.stdout + run.stderr
    for kind in soak.ENDED:
        assert f"{kind} restarted " in run.stdout and (kind == "export" or f"{kind} steady " in run.stdout)
    assert not list(tmp_path.iterdir())


SECONDS, FLAT = 600, {"RSS": 4000, "maps": 5, "descriptors": 7}


@pytest.mark.parametrize("name, a_minute", [("RSS", 400), ("maps", 4), ("descriptors", 2)])
def test_growth_is_seen(name, a_minute):
    """Also under noise; what grows in the first minute only is flat."""
    chance = random.Random(name)
    noise = lambda figures: {k: v + chance.randrange(5) for k, v in figures.items()}  # noqa: E731
    flat = [(t, noise({**FLAT, name: FLAT[name] + min(t, 60) * 20})) for t in range(SECONDS)]
    assert soak.grown(soak.growth(flat, SECONDS)) == []
    leak = [(t, noise({**FLAT, name: FLAT[name] + t * a_minute // 60})) for t in range(SECONDS)]
    assert soak.grown(soak.growth(leak, SECONDS)) == [name]


def test_losses_are_seen(tmp_path):
    """A line of the ledger without its point, a point without its line, a file and a process that are left."""
    tool = BUILD / "bin/eventlog"
    work = soak.Soak.__new__(soak.Soak)
    said = []
    work.say = said.append
    work.directory, work.log, work.tool, work.environment = tmp_path, tmp_path / "runs", tool, dict(os.environ)
    work.programs = {"evaluator one": type("", (), {"killed": 0})}
    ledger = tmp_path / "runs/one/eval/evaluations.jsonl"
    subprocess.run([tool, "write", "--dir", ledger.parent, "--step", "7", "precision=0.5", "loss=2"], check=True)
    line = ('{"step":%d,"checkpoint":"model.ckpt-%d","digest":"0","status":"done","metrics":{"precision":0.5,"loss":2},"run":0}'
            "\n")
    ledger.write_text(line % (7, 7))
    work.check_evaluations("one")
    assert said == ["one: 1 evaluations, 0 checkpoints deleted before theirs"]
    ledger.write_text(line % (7, 7) + line % (8, 8))
    with pytest.raises(soak.Broken, match="other points"):
        work.check_evaluations("one")
    ledger.write_text(line % (7, 7) * 2)
    with pytest.raises(soak.Broken, match="twice in the ledger"):
        work.check_evaluations("one")
    ledger.write_text(line % (7, 7))
    subprocess.run([tool, "write", "--dir", ledger.parent, "--step", "7", "loss=2"], check=True)
    with pytest.raises(soak.Broken, match="1 points twice"):
        work.check_evaluations("one")
    work.mark = f"EVALBOARD_SOAK_TEST={tmp_path}"
    work.check_left()
    left = subprocess.Popen(["sleep", "600"], env={**os.environ, "EVALBOARD_SOAK_TEST": str(tmp_path)})
    # The kernel closes what tells Popen() that the program runs before it has put the environment in place.
    wait_for(lambda: b"EVALBOARD_SOAK_TEST" in pathlib.Path(f"/proc/{left.pid}/environ").read_bytes(), "its environment")
    with pytest.raises(soak.Broken, match=f"process {left.pid}"):
        work.check_left()
    left.kill()
    left.wait()
    (tmp_path / "runs/one/eval/.tmp").touch()
    with pytest.raises(soak.Broken, match=r"1 files are left behind, \['runs/one/eval/.tmp'\]"):
        work.check_left()
