"""eventlog serve over the TensorBoard that is installed: what its page shows in a browser, and that nothing stays behind."""
import json
import os
import signal
import subprocess
import sys
import urllib.request

import pytest

from browser import Page, chromium
from eventlog_command import TOOL, write
from tensorboard_server import data_server_or_skip, localhost_or_skip
from waiting import DEADLINE, wait_for

pytest.importorskip("tensorboard")
pytest.importorskip("selenium")


def test_the_page(tmp_path):
    """Two directories, a curve that grows while it is shown; once it is ended, no process is left in its session."""
    data_server_or_skip()
    localhost_or_skip()
    for name, steps, fall in (("mine/train", range(3000), 500), ("theirs/train", range(0, 3000, 75), 1500)):
        write(tmp_path / name, "-", text="".join(json.dumps({"tag": "loss", "step": i, "value": 1 / (1 + i / fall)}) + "\n"
                                                 for i in steps))
    program = tmp_path / "tensorboard"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -m tensorboard.main \"$@\"\n")
    program.chmod(0o755)
    output = tmp_path / "output.txt"
    with open(output, "w") as said:
        process = subprocess.Popen(
            [TOOL, "serve", "mine", "other=theirs", "--port=0", "--samples=100000", "--tensorboard", program], cwd=tmp_path,
            stdout=subprocess.PIPE, stderr=said, text=True, start_new_session=True)
    try:
        words = process.stdout.readline().split()
        assert words[0] == "TensorBoard:" and words[2:] == ["(Ctrl-C", "ends", "it)"], output.read_text()
        address = words[1].rstrip("/")

        def points(run):
            with urllib.request.urlopen(f"{address}/data/plugin/scalars/scalars?tag=loss&run={run}", timeout=DEADLINE) as answer:
                return json.load(answer)

        wait_for(lambda: "other/train" in urllib.request.urlopen(f"{address}/data/runs", timeout=DEADLINE).read().decode(),
                 "both directories")
        assert [p[1] for p in points("train")] == list(range(3000)) and len(points("other/train")) == 40
        write(tmp_path / "mine/train", "--step", "3000", "loss=0")
        wait_for(lambda: points("train")[-1][1] == 3000, "the new point")
        with chromium() as browser:
            page = Page(browser, address)
            page.open("timeseries")
            page.wait_words("train", "other/train", "loss")
            page.lines_drawn("card-view", "loss")
            page.keep("eventlog_serve")
    finally:
        process.send_signal(signal.SIGINT)
        status = process.wait(DEADLINE)
    assert status == 0, output.read_text()
    assert subprocess.run(["pgrep", "-s", str(process.pid)]).returncode == 1, os.system("ps aux")
