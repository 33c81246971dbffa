"""The page that eventlog writes of a table, in a real browser."""
import json
import os
import pathlib
import subprocess

from browser import chromium

EVENTLOG = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "bin" / "eventlog"


def test_page_sorts_by_a_click(tmp_path):
    finals = ("r10", 0.91), ("r2", 0.95), ("r1", 0.7), ("r3", "NaN"), ("a|b_*c*", 0.93)
    lines = "".join(json.dumps({"run": run, "tag": "accuracy", "step": step, "value": value}) + "\n"
                    for run, final in finals for step, value in enumerate((0, 0.97, final)))
    subprocess.run([EVENTLOG, "write", "--dir", tmp_path / "log", "-"], input=lines, text=True, check=True)
    subprocess.run([EVENTLOG, "stats", tmp_path / "log", "-o", tmp_path / "stats.html"], check=True)
    with chromium() as browser:
        browser.get((tmp_path / "stats.html").as_uri())

        def click(title):
            browser.execute_script("[...document.querySelectorAll('th')].find(th => th.textContent == arguments[0]).click()",
                                   title)
            return browser.execute_script("return [...document.querySelectorAll('tbody tr')].map(r => r.cells[0].textContent)")

        assert click("last") == ["r1", "r10", "a|b_*c*", "r2", "r3"]
        assert click("last") == ["r2", "a|b_*c*", "r10", "r1", "r3"]  # what has no value stays last
        assert click("run") == ["a|b_*c*", "r1", "r2", "r3", "r10"]
