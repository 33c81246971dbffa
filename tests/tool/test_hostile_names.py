"""Names come from files that anybody may have written: whatever is in them, no control character reaches a terminal, and
no text grows with the length of a name. Data formats keep names whole."""
import json
import os
import shutil
import subprocess

import pytest

from checkpoint_files import BUILD, run, tensor, write_safetensors
from terminal import EVENTLOG, on_terminal

RED, C1, BACK = "\x1b[31m", "\x9b31m", "a\rb"
CONTROL = (RED, "\x9b", "\rb", "\x7f")
LONG = 300_000


def write(directory, run, tags):
    points = [{"run": run, "tag": tag, "step": step, "value": step * 0.5, "wall_time": 1.7e9 + step}
              for tag in tags for step in range(3)]
    subprocess.run([EVENTLOG, "write", "-d", directory, "-"], input="\n".join(map(json.dumps, points)), text=True, check=True)


@pytest.fixture(scope="module")
def coloured(tmp_path_factory):
    """A log and a directory of checkpoints with control characters in every name."""
    top = tmp_path_factory.mktemp("coloured")
    log, checkpoints = top / f"log{RED}", top / f"ckpt{RED}"
    write(top / "plain", "run", [f"t{RED}", f"c{C1}", BACK, "d\x7f"])
    for name in "one", "two":
        shutil.copytree(top / "plain" / "run", log / f"r{RED}{name}")
    damaged = next((log / f"r{RED}two").iterdir())
    damaged.rename(damaged.with_name(damaged.name + RED)).open("ab").write(b"\0" * 40)
    subprocess.run(["tar", "-cf", top / f"packed{RED}", "-C", top, log.name], check=True)
    os.truncate(top / f"packed{RED}", 4000)  # so that the member that is cut is named
    names = [f"w{RED}", f"v{C1}", BACK, "t\x7f", f"d{RED}/x", f"d{RED}/y"]
    for step in 1, 2:
        write_safetensors(checkpoints / f"a{RED}-{step}.safetensors", {name: tensor("F32", [step, 2.5]) for name in names[step - 1:]},
                          {f"k{RED}": f"v{RED}"})
    return {"LOG": log, "ARCHIVE": top / f"packed{RED}", "DIR": checkpoints,
            "A": checkpoints / f"a{RED}-1.safetensors", "B": checkpoints / f"a{RED}-2.safetensors", "TAG": f"t{RED}",
            "NONE": f"none{RED}", "RED": RED}


@pytest.mark.parametrize("command", [
    "inspect LOG", "inspect --tree LOG", "inspect --json LOG", "stats LOG", "stats --json LOG", "stats --format csv LOG",
    "stats --format md LOG", "tags LOG", "tags --format jsonl LOG", "compare LOG", "plot --color never LOG", "plot --json LOG",
    "plot --color never --title RED LOG", "verify LOG", "verify --json LOG", "export LOG", "export --format wide LOG",
    "export --format json LOG", "export --format prom LOG", "tail LOG", "tail --json LOG", "prune --older-than 1d LOG",
    "drop-tag TAG LOG -o OUT", "merge LOG -o OUT",
    "inspect ARCHIVE", "verify ARCHIVE", "merge ARCHIVE -o OUT", "stats --tag NONE LOG", "stats --run NONE LOG",
    "stats --sort NONE LOG", "stats NONE", "NONE", "stats --NONE LOG", "inspect A", "checkpoint inspect A",
    "checkpoint inspect --values A", "checkpoint inspect --tree A", "checkpoint inspect --json A", "checkpoint inspect DIR",
    "checkpoint inspect --all DIR", "checkpoint verify A", "checkpoint verify DIR", "checkpoint compare A B",
    "checkpoint compare --json A B", "checkpoint convert A OUT.ckpt-1", "checkpoint inspect NONE",
    "checkpoint inspect --tensor NONE A", "checkpoint NONE"])
def test_no_control_character_reaches_a_terminal(coloured, tmp_path, command):
    words = command.split()
    program = BUILD / "bin" / (words.pop(0) if words[0] == "checkpoint" else "eventlog")
    words = [str(coloured.get(word, word)) for word in words]
    words = [word.replace("OUT", str(tmp_path / "out")).replace("--NONE", f"--none{RED}") for word in words]
    text = on_terminal(80, *words, status=None, program=program).replace("\r\n", "\n").replace("\r\x1b[K", "")
    assert text and not any(c in text for c in CONTROL), repr(text)


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    top = tmp_path_factory.mktemp("endless")
    write(top / "log", "r", ["x" * LONG, "y" * LONG + "\n", "lr"])
    for step in 1, 2:
        write_safetensors(top / f"m-{step}.safetensors", {name: tensor("F32", [step, 2.5]) for name in ("x" * LONG, "d/" * 200 + "y", "w")},
                          {"k" * LONG: "v" * LONG})
    return {"LOG": top / "log", "A": top / "m-1.safetensors", "B": top / "m-2.safetensors", "LONG": "z" * 100_000}


@pytest.mark.parametrize("columns", [None, 80])
@pytest.mark.parametrize("command", [
    "inspect LOG", "inspect --tree LOG", "compare LOG", "compare --tag lr LOG", "plot LOG", "verify LOG", "drop-tag x* LOG -o OUT",
    "stats --tag LONG LOG", "stats --run LONG LOG", "stats --sort LONG LOG", "stats --format LONG LOG", "stats LONG", "LONG",
    "stats --LONG LOG", "rename-tag lr=LONG LOG", "checkpoint inspect A", "checkpoint inspect --values A",
    "checkpoint inspect --tree A", "checkpoint compare A B", "checkpoint verify A", "checkpoint inspect --tensor LONG A",
    "checkpoint inspect LONG", "checkpoint convert A LONG"])
def test_no_text_grows_with_a_name(endless, tmp_path, command, columns):
    words = command.split()
    program = BUILD / "bin" / (words.pop(0) if words[0] == "checkpoint" else "eventlog")
    words = [str(endless.get(word, word)).replace("OUT", str(tmp_path / "out")).replace("LONG", "z" * 100_000) for word in words]
    if columns:
        text = on_terminal(columns, *words, status=None, program=program)
    else:
        done = subprocess.run([program, *words], capture_output=True, text=True, stdin=subprocess.DEVNULL)
        text = done.stdout + done.stderr
    assert text and len(text) < 12_000, len(text)


def test_data_formats_keep_names_whole(endless):
    listed = subprocess.run([EVENTLOG, "export", "--format", "csv", endless["LOG"]], capture_output=True, text=True, check=True)
    assert "x" * LONG in listed.stdout
    assert "x" * LONG in run("inspect", "--json", endless["A"]).stdout
