"""The evaluator seen from outside and as a service: status and replay from the ledger, locks of the dead and of other
hosts, what it writes for others.
"""
import json
import os
import signal
import socket
import subprocess
import time

import pytest

from evaluators import BUILD, EVALUATOR, Evaluator, Exec, ledger, points, steps, write
from waiting import DEADLINE, wait_for


def run(*arguments, status=0, **keywords):
    done = subprocess.run([EVALUATOR, *map(str, arguments)], capture_output=True, text=True, timeout=DEADLINE, **keywords)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
    return done


def state(*arguments, status=0):
    report = json.loads(run("status", "--json", *arguments, status=status).stdout)
    assert (report["type"], report["version"]) == ("evaluator-status", 1)
    total = report["total"]
    assert total["runs"] == len(report["runs"])
    for key in ("done", "queued", "failed", "gone"):
        assert total[key] == sum(one[key] or 0 for one in report["runs"])
    return report["runs"]


def test_status_of_living_and_dead(tmp_path):
    write(tmp_path, "--last", 500)
    with Evaluator(tmp_path, "--forever", "--min-interval", 0.2) as evaluator:
        wait_for(lambda: len(ledger(tmp_path)) >= 3, "three evaluations")
        report, = state(tmp_path / "eval")
        assert report["state"] == "running" and report["alive"] and report["pid"] == evaluator.process.pid
        assert report["host"] == socket.gethostname() and report["checkpoint_dir"] == str(tmp_path / "ckpt")
        assert 3 <= report["done"] <= 5, report
        wait_for(lambda: len(ledger(tmp_path)) == 5 and not state(tmp_path / "eval")[0]["queued"], "all evaluations")
        report, = state(tmp_path / "eval")
        assert (report["done"], report["queued"], report["failed"], report["gone"]) == (5, 0, 0, 0)
        assert 0 <= report["last"]["age"] < DEADLINE and 0 < report["evaluations_per_hour"] < 3600 / 0.2 * 1.5, report
        best = max(ledger(tmp_path), key=lambda r: (r["metrics"]["precision"], -r["step"]))
        assert report["best"] == {"metric": "precision", "value": best["metrics"]["precision"], "step": best["step"],
                                  "checkpoint": best["checkpoint"]}
        os.kill(evaluator.process.pid, signal.SIGKILL)
        evaluator.process.wait()
    report, = state(tmp_path / "eval", status=1)
    assert report["state"] == "died" and report["alive"] is False and report["done"] == 5
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
        assert f"taking over from process {report['pid']} on host" in evaluator.said()
    report, = state(tmp_path)  # a tree
    assert report["state"] == "ended" and report["eval_dir"] == str(tmp_path / "eval") and report["why"], report
    before = sorted((p, p.read_bytes()) for p in (tmp_path / "eval").iterdir())
    page = run("status", tmp_path).stdout.splitlines()
    assert page[0] == f"{tmp_path / 'eval'}: ended" and "  outcomes   5 done, 0 failed, 0 gone" in page
    assert before == sorted((p, p.read_bytes()) for p in (tmp_path / "eval").iterdir()), "status changes nothing"
    assert "no eval directory" in run("status", tmp_path / "ckpt", status=2).stderr
    assert "No such file" in run("status", tmp_path / "nothing", status=2).stderr


def training(directory, **members):
    (directory / "ckpt/training.json").write_text(json.dumps({
        "state": "running", "host": "node7", "pid": 1, "global_step": 700, "max_steps": 1000, "world_size": 1,
        "run_option": "single", "started": time.time() - 70, "updated": time.time(), **members}))


def test_status_of_work_in_hand(tmp_path):
    """Which checkpoint is evaluated and since when, how far it is behind, how fast, and when it will be done."""
    write(tmp_path, "--last", 300)
    (tmp_path / "gate.sh").write_text(f"while [ $1 -gt 300 -a ! -e '{tmp_path}/go' ]; do sleep 0.02; done; echo precision 1\n")
    with Evaluator(tmp_path, "--forever", how=["--exec", f"sh '{tmp_path}/gate.sh' {{step}}"]) as evaluator:
        evaluator.says("step: 300,")
        wait_for(lambda: not state(tmp_path)[0]["in_hand"], "idleness")
        page = run("status", tmp_path).stdout
        assert "in hand    nothing" in page and "to go      not known: no --until-step, and no training.json" in page
        begin = time.time()
        write(tmp_path, "--first", 400, "--last", 700, "--interval", 0.1)
        training(tmp_path)
        wait_for(lambda: state(tmp_path)[0]["queued"] == 3, "three that wait")
        report, = state(tmp_path)
        one, = report["in_hand"]
        assert (one["checkpoint"], one["step"]) == ("model.ckpt-400", 400) and begin <= one["since"] <= time.time()
        assert 0 <= one["seconds"] <= time.time() - one["since"]
        assert (report["newest_step"], report["steps_behind"], report["last"]["step"]) == (700, 400, 300)
        assert report["until_step"] == 1000 and report["seconds_left"] > 0 and report["updated_age"] < 600
        assert report["training"]["state"] == "running" and report["training"]["global_step"] == 700
        for columns in (60, 80, 200):
            page = run("status", tmp_path, env={**os.environ, "COLUMNS": str(columns)}).stdout
            assert all(len(line) <= columns for line in page.splitlines())
            for words in ("in hand    model.ckpt-400, for ", "behind     400 steps, 3 queued", "rate       ",
                          "evaluations/h, ", "to go      about ", "training   running, step 700 of 1000, "):
                assert words in page, page
        os.kill(evaluator.process.pid, signal.SIGKILL)
        evaluator.process.wait()
    report, = state(tmp_path, status=1)  # what it was at counts no more
    assert report["state"] == "died" and not report["in_hand"] and report["queued"] == 4 and report["newest_step"] == 700
    assert report["seconds_left"] is None
    (tmp_path / "go").touch()
    training(tmp_path, state="finished")
    with Evaluator(tmp_path, "--until-step", 700, how=["--exec", "echo precision 1"]) as evaluator:
        evaluator.ends(0)
    report, = state(tmp_path)
    assert (report["steps_behind"], report["queued"], report["done"]) == (0, 0, 7)


def test_status_of_several(tmp_path):
    """A table that fits; what everybody asks is never left out."""
    name = "a-training-with-a-name-that-is-longer-than-any-terminal-is-wide-" * 2
    for one in ("a", name):
        write(tmp_path / one, "--last", 200)
        with Evaluator(tmp_path / one, "--once") as evaluator:
            evaluator.ends(0)
    for columns in (60, 80, 200):
        table = run("status", tmp_path, env={**os.environ, "COLUMNS": str(columns)}).stdout.splitlines()
        assert len(table) == 3 and all(len(line) <= columns for line in table), table
        titles = table[0]
        for title in ("state", "step", "behind", "failed", "eval directory"):
            assert title in titles, titles
        assert all(line.startswith("ended") for line in table[1:])
    wide = run("status", tmp_path, env={k: v for k, v in os.environ.items() if k != "COLUMNS"}).stdout
    assert "in hand" in wide and str(tmp_path / name / "eval") in wide
    pages = run("status", "--details", tmp_path).stdout.split("\n\n")
    assert len(pages) == 2 and all("outcomes   2 done" in page for page in pages)


def test_status_of_failures_and_odd_ledgers(tmp_path):
    write(tmp_path, "--last", 200)
    (tmp_path / "ckpt/model.ckpt-200.index").write_bytes(b"")
    with Evaluator(tmp_path, "--once", "--quiet-time", 0.2) as evaluator:
        evaluator.ends(1)
    with open(tmp_path / "eval/evaluations.jsonl", "a") as file:
        file.write('{"odd": 1}\n{"step": 300, "checkpoint": "cut')
    report, = state(tmp_path / "eval", status=1)
    assert (report["done"], report["failed"], report["odd_lines"]) == (1, 1, 1) and "index" in report["last_reason"]
    text = (tmp_path / "eval/evaluator.lock").read_text()
    (tmp_path / "eval/evaluator.lock").write_text("not of an evaluator")
    assert state(tmp_path / "eval", status=1)[0]["state"] == "unknown"
    (tmp_path / "eval/evaluator.lock").unlink()
    os.mkfifo(tmp_path / "eval/evaluator.lock")
    assert state(tmp_path / "eval", status=1)[0]["state"] == "unknown"
    assert '"ended"' in text


def samples(text):
    """{line without its value: value} of a text for Prometheus' collector; each metric's lines stand together."""
    found, metric, seen = {}, None, set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            metric = line.split()[2]
            assert metric not in seen
            seen.add(metric)
        elif line.startswith("# TYPE "):
            assert line.split()[2] == metric and line.split()[3] in ("gauge", "counter")
        else:
            name, value = line.rsplit(" ", 1)
            assert name.split("{")[0] == metric
            found[name] = float(value)
    return found


def test_prometheus_file_after_each_score(tmp_path):
    (tmp_path / "metrics").mkdir()
    prom = tmp_path / "metrics/training.prom"
    with Evaluator(tmp_path, "--forever", "--prom", prom) as evaluator:
        wait_for(prom.exists, "the file")
        assert samples(prom.read_text())['tb_eval_done_total{run="eval"}'] == 0
        for step in (100, 200, 300):
            write(tmp_path, "--first", step, "--last", step)
            wait_for(lambda: samples(prom.read_text()).get('tb_eval_last_checkpoint_step{run="eval"}') == step, "it")
        prom.parent.rename(tmp_path / "away")
        write(tmp_path, "--first", 400, "--last", 400)
        evaluator.says("trying again after each evaluation")
        wait_for(lambda: len(ledger(tmp_path)) == 4, "the evaluation, without the file")
        (tmp_path / "away").rename(prom.parent)
        write(tmp_path, "--first", 500, "--last", 500)
        wait_for(lambda: samples(prom.read_text())['tb_eval_last_checkpoint_step{run="eval"}'] == 500, "the file again")
    with Evaluator(tmp_path, "--once", "--prom", prom) as evaluator:  # counts are those of the ledger, not of a process
        evaluator.ends(0)
    ours = samples(prom.read_text())
    subprocess.run([BUILD / "bin/eventlog", "export", tmp_path, "--format=prom", "-o", tmp_path / "all.prom"], check=True)
    theirs = samples((tmp_path / "all.prom").read_text())
    assert {name: value for name, value in ours.items() if name.startswith("tb_scalar")} == theirs
    assert len(theirs) == 12 and ours['tb_eval_pending{run="eval"}'] == 0
    assert (ours['tb_eval_done_total{run="eval"}'], ours['tb_eval_failed_total{run="eval"}']) == (5, 0)


def test_log_as_json(tmp_path):
    write(tmp_path, "--last", 200)
    (tmp_path / "ckpt/model.ckpt-200.index").write_bytes(b"")
    log = tmp_path / "service.log"
    with Evaluator(tmp_path, "--forever", "--quiet-time", 0.2, "--log-format", "json", "--log-file", log) as evaluator:
        wait_for(lambda: len(ledger(tmp_path)) == 2, "both")
        wait_for(lambda: "model.ckpt-200: failed" in log.read_text(), "the failure in the log")
        log.rename(tmp_path / "service.log.1")
        evaluator.process.send_signal(signal.SIGHUP)
        wait_for(lambda: log.exists() and "SIGHUP" in log.read_text(), "a log begun anew")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
        assert evaluator.said() == ""
    lines = [json.loads(line) for path in (tmp_path / "service.log.1", log) for line in path.read_text().splitlines()]
    assert all(list(line)[:4] == ["time", "level", "program", "message"] for line in lines), lines
    assert all(abs(line["time"] - time.time()) < DEADLINE and line["program"] == "evaluator" for line in lines)
    result, = [line for line in lines if "metrics" in line]
    assert result["step"] == 100 and result["checkpoint"] == "model.ckpt-100" and result["level"] == "info"
    done, = [record for record in ledger(tmp_path) if record["status"] == "done"]  # the failure may come before it
    assert result["metrics"] == done["metrics"] and "precision: " in result["message"]
    failure, = [line for line in lines if line["level"] == "error"]
    assert failure["step"] == 200 and failure["checkpoint"] == "model.ckpt-200"
    bad = subprocess.run([EVALUATOR, "--log-format=json"], capture_output=True, text=True)
    assert bad.returncode == 2 and json.loads(bad.stderr)["level"] == "error"


def scalars(run_directory):
    return dict(points(run_directory))


@pytest.mark.parametrize("arguments", [[], ["--tags", "resnet", "--wall-time", "checkpoint"]])
def test_replay_equals_what_was_written_live(tmp_path, arguments):
    logs = tmp_path / "logs"
    logs.mkdir()
    write(tmp_path, "--last", 400)
    for _ in range(2):  # the second writes lower steps anew: a second run
        with Evaluator(tmp_path, "--once", *arguments, evaluation="logs/eval") as evaluator:
            evaluator.ends(0)
        write(tmp_path, "--first", 200, "--last", 300, "--seed", 5)
    live = {name: scalars(logs / name) for name in ("eval", "eval_1")}
    assert len(live["eval"]) >= 2 and len(live["eval_1"]) >= 2
    run("replay", "-o", tmp_path / "again/eval", logs / "eval")
    assert {name: scalars(tmp_path / "again" / name) for name in live} == live
    assert "already has event files" in run("replay", "-o", tmp_path / "again/eval", logs / "eval", status=2).stderr
    old = sorted(p.name for name in live for p in (logs / name).glob("events*"))
    (logs / "eval/.replay").mkdir()  # as an interrupted one leaves it
    (logs / "eval/.replay/eval").mkdir()
    (logs / "eval/.replay/eval/events.out.tfevents.1.x.1").write_bytes(b"cut")
    run("replay", f"{logs}/eval/")
    assert {name: scalars(logs / name) for name in live} == live
    assert sorted(p.name.replace("before-replay", "events.out.tfevents") for name in live
                  for p in (logs / name).glob("before-replay.*")) == old
    assert sorted(p.name for p in logs.iterdir()) == ["eval", "eval_1"] and not (logs / "eval/.replay").exists()
    with Evaluator(tmp_path, "--once", *arguments, evaluation="logs/eval") as evaluator:  # and it goes on
        evaluator.ends(0)
    assert scalars(logs / "eval") == live["eval"]


def test_replay_where_somebody_works(tmp_path):
    write(tmp_path)
    with Evaluator(tmp_path, "--forever") as evaluator:
        wait_for(lambda: ledger(tmp_path), "an evaluation")
        assert str(evaluator.process.pid) in run("replay", tmp_path / "eval", status=2).stderr
        run("replay", "-o", tmp_path / "again", tmp_path / "eval")
    assert scalars(tmp_path / "again") == scalars(tmp_path / "eval")


def test_locks_of_the_dead_and_of_other_hosts(tmp_path):
    """Check 10 of the service; two living ones are in test_evaluator.py."""
    write(tmp_path)
    (tmp_path / "eval").mkdir()
    lock = tmp_path / "eval/evaluator.lock"
    line = {"state": "running", "host": "node7.far", "pid": 4711, "process_start": 5, "since": time.time()}
    lock.write_text(json.dumps(line) + "\n")
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(2)
        assert "process 4711 on host node7.far" in evaluator.said() and "--take-over" in evaluator.said()
    assert json.loads(lock.read_text()) == line and not ledger(tmp_path)
    assert state(tmp_path / "eval")[0]["state"] == "elsewhere"
    with Evaluator(tmp_path, "--once", "--take-over") as evaluator:
        evaluator.ends(0)
        assert "taking over from process 4711 on host node7.far" in evaluator.said()
    assert steps(ledger(tmp_path)) == [100]
    # The number of a dead evaluator given again, to a process that lives: started at another time.
    lock.write_text(json.dumps({**line, "host": socket.gethostname(), "pid": os.getpid()}) + "\n")
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    assert json.loads(lock.read_text())["state"] == "ended"


def test_a_log_file_that_is_a_link(tmp_path):
    """Nothing is written through a link at --log-file, which is named; those of the system are followed."""
    (tmp_path / "ckpt").mkdir()
    (tmp_path / "other").write_text("kept")
    (tmp_path / "link").symlink_to("other")
    with Exec(tmp_path, "true", "--once", "--log-file", tmp_path / "link") as evaluator:
        evaluator.ends(2)
        assert f"{tmp_path}/link: is a symbolic link" in evaluator.said()
    assert (tmp_path / "other").read_text() == "kept"
    with Exec(tmp_path, "true", "--once", "--log-file", "/dev/stderr") as evaluator:
        evaluator.ends(0)
        assert "ending" in evaluator.said()
