"""One evaluator for several directories: named, listed in a file, or those of a tree, as trainings appear and go."""
import json
import os
import pathlib
import re
import resource
import signal

from evaluators import Several, write_into
from interposed import held_data
from waiting import wait_for


def test_while_the_data_is_read(tmp_path):
    """Trainings of a tree that appear, save and delete while the data set is read: pinned all the same."""
    tree = tmp_path / "tree"
    tree.mkdir()
    environment, hold = held_data(tmp_path)
    with Several(tmp_path, "--watch-tree", tree, "--pin", "--poll-interval", 0.1, env=environment) as several:
        for name in "ab":
            write_into(tree / name, "--last", 300)
            wait_for(lambda: len(list((several.root / name / "eval").glob("pinned/*"))) == 3, f"pins of {name}")
            for path in (tree / name).glob("model.ckpt-*"):
                path.unlink()
        assert not several.ledger("a") and several.process.poll() is None
        hold.unlink()
        for name in "ab":
            several.waits_for(name, [100, 200, 300])
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)


def test_named_ones_are_served_in_turn(tmp_path):
    for name in "abc":
        write_into(tmp_path / name, "--last", 1000)
    with Several(tmp_path, *[x for name in "abc" for x in ("--watch", f"{name}={tmp_path / name}")], "--once",
                 "--json") as several:
        several.ends(0)
    lines = [json.loads(line) for line in several.output.splitlines()]
    assert len(lines) == 30 and list(lines[0])[:2] == ["watch", "step"]
    for name in "abc":
        assert several.steps(name) == list(range(100, 1001, 100))
        mine = [{k: v for k, v in line.items() if k != "watch"} for line in lines if line["watch"] == name]
        assert mine == several.ledger(name)
        assert list((tmp_path / "runs" / name / "eval").glob("events*"))
    order = [line["watch"] for line in lines]
    assert all(len(set(order[i:i + 3])) == 3 for i in range(0, 30, 3)), order


def test_each_is_heard_of_at_once(tmp_path):
    """The next look is an hour away: it is the notifier that all share."""
    for name in "ab":
        (tmp_path / name).mkdir()
    with Several(tmp_path, *[x for name in "ab" for x in ("--watch", f"{name}={tmp_path / name}")], "--forever",
                 "--poll-interval", 3600) as several:
        several.says(f"watching {tmp_path / 'b'}")
        for step in range(100, 501, 100):
            for name in "ab":
                write_into(tmp_path / name, "--first", step, "--last", step)
                several.waits_for(name, list(range(100, step + 1, 100)))
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)


def make_many(directory, count):
    """So many directories with a checkpoint each, and the lines of a --watch-file for them."""
    for i in range(count):
        (directory / f"many/{i}").mkdir(parents=True, exist_ok=True)
        (directory / f"many/{i}/m-1.pt").write_text("a checkpoint")
    return "".join(f"{i}={directory}/many/{i}\n" for i in range(count))


def many_done(several):
    return sum(path.stat().st_size > 0 for path in several.root.glob("*/eval/evaluations.jsonl"))


COMMAND = ["--exec", "echo precision 1", "--pattern", "m-{step}.pt", "--ready", "rename", "--forever"]


def test_what_a_directory_takes(tmp_path):
    """One descriptor and at most 100 kB, however many there are; and no checkpoint fails for want of more."""
    file = tmp_path / "list"
    file.write_text(make_many(tmp_path, 40))
    taken = {}
    with Several(tmp_path, "--watch-file", file, how=COMMAND,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))) as several:
        for count in (40, 120):
            if count > 40:
                file.write_text(make_many(tmp_path, count))
                several.process.send_signal(signal.SIGHUP)
            wait_for(lambda: many_done(several) == count or several.process.poll() is not None, f"all {count}")
            status = pathlib.Path(f"/proc/{several.process.pid}/status").read_text()
            taken[count] = (len(os.listdir(f"/proc/{several.process.pid}/fd")),
                            int(re.search(r"VmSize:\s*(\d+) kB", status)[1]))
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    assert "failed:" not in several.said()
    assert taken[120][0] - taken[40][0] <= 80 + 8, taken  # those of a command that was running are passing
    assert taken[120][1] - taken[40][1] <= 80 * 100, taken


def test_more_directories_than_descriptors(tmp_path):
    """Those that cannot be opened wait, and the others are served; none fails."""
    (tmp_path / "list").write_text(make_many(tmp_path, 60))
    with Several(tmp_path, "--watch-file", tmp_path / "list", how=COMMAND,
                 preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (80, 80))) as several:
        several.says("/many/59 waits: the limit on open files (ulimit -n) is too low for so many directories")
        served = several.said().count(": watching ")
        assert served > 20
        wait_for(lambda: many_done(several) == served or several.process.poll() is not None, "those that are served")
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    assert "failed:" not in several.said()


def test_directories_that_come_and_move(tmp_path):
    """One directory comes later, one is moved and made anew."""
    (tmp_path / "a").mkdir()
    (tmp_path / "c").mkdir()
    with Several(tmp_path, *[x for name in "abc" for x in ("--watch", f"{name}={tmp_path / name}")], "--forever",
                 "--poll-interval", 2) as several:
        several.says(f"watching {tmp_path / 'a'}")
        several.says(f"b: {tmp_path / 'b'} does not exist yet")
        write_into(tmp_path / "c")
        several.waits_for("c", [100])
        write_into(tmp_path / "b", "--last", 200)
        several.waits_for("b", [100, 200])
        (tmp_path / "c").rename(tmp_path / "c.moved")
        several.says("c: " + str(tmp_path / "c") + " is gone; waiting for it to come back")
        write_into(tmp_path / "c", "--first", 300, "--last", 300)
        several.waits_for("c", [100, 300])
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    assert several.process.returncode == 0


def test_file_read_again_at_sighup(tmp_path):
    for name in "abc":
        write_into(tmp_path / name)
    listed = tmp_path / "list"
    listed.write_text(f"# trainings\n\n a={tmp_path / 'a'}\nb={tmp_path / 'b'}\r\n")
    with Several(tmp_path, "--watch-file", listed, "--forever") as several:
        several.waits_for("a", [100])
        several.waits_for("b", [100])
        listed.write_text(f"deep/c={tmp_path / 'c'}\nb={tmp_path / 'b'}\n")
        several.process.send_signal(signal.SIGHUP)
        several.waits_for("deep/c", [100])
        several.says("a: not in the file any more")
        assert json.loads((tmp_path / "runs/a/eval/evaluator.lock").read_text())["state"] == "ended"
        write_into(tmp_path / "a", "--first", 200, "--last", 200)
        listed.write_text("nonsense\n")
        several.process.send_signal(signal.SIGHUP)
        several.says(f"{listed}:1: 'nonsense': not NAME=DIR; watching the same directories as before")
        write_into(tmp_path / "b", "--first", 200, "--last", 200)
        several.waits_for("b", [100, 200])
        listed.write_text(f"a={tmp_path / 'a'}\nb={tmp_path / 'b'}\n")
        several.process.send_signal(signal.SIGHUP)
        several.waits_for("a", [100, 200])
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    for text, wanted in (("../x=/tmp\n", "not a name"), ("a=x\na=y\n", "used twice"), ("=x\n", "NAME=DIR")):
        listed.write_text(text)
        with Several(tmp_path, "--watch-file", listed) as several:
            several.ends(2)
            assert wanted in several.said().splitlines()[-1]


def test_a_tree_in_which_trainings_appear_and_go(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "loop").symlink_to(tree)
    (tree / "empty/deep").mkdir(parents=True)
    with Several(tmp_path, "--watch-tree", tree, "--poll-interval", 0.1) as several:
        several.waits_for("nothing", [])
        write_into(tree / "one", "--last", 300)
        several.waits_for("one", [100, 200, 300])
        write_into(tree / "group/two", "--last", 200, "--finish")
        several.waits_for("group/two", [100, 200])
        lock = tmp_path / "runs/group/two/eval/evaluator.lock"
        wait_for(lambda: json.loads(lock.read_text())["state"] == "ended", "the finished one to be let go")
        assert "finished" in json.loads(lock.read_text())["why"]
        write_into(tree / "group/two", "--first", 300, "--last", 300)  # it goes on
        several.waits_for("group/two", [100, 200, 300])
        for path in (tree / "one").iterdir():
            path.unlink()
        (tree / "one").rmdir()
        wait_for(lambda: json.loads((tmp_path / "runs/one/eval/evaluator.lock").read_text())["state"] == "ended",
                 "the one that is gone to be let go")
        write_into(tree / "one", "--first", 400, "--last", 400)
        several.waits_for("one", [100, 200, 300, 400])
        descriptors = len(os.listdir(f"/proc/{several.process.pid}/fd"))
        for k in range(20):
            write_into(tree / f"short{k}", "--finish")
        for k in range(20):
            several.waits_for(f"short{k}", [100])
        wait_for(lambda: len(os.listdir(f"/proc/{several.process.pid}/fd")) <= descriptors, "closed descriptors")
        several.process.send_signal(signal.SIGTERM)
        several.ends(0)
    assert "loop" not in str(sorted((tmp_path / "runs").iterdir()))
    with Several(tmp_path, "--watch-tree", tree, "--once") as several:
        several.ends(0)
    assert several.steps("one") == [100, 200, 300, 400]


def test_results_inside_the_tree_are_no_trainings(tmp_path):
    """The eval root lies in the tree, and the best checkpoints are kept there."""
    write_into(tmp_path / "tree/one/ckpt", "--last", 200)
    for step in (300, 400):
        with Several(tmp_path, "--watch-tree", tmp_path / "tree", "--keep-best", "--once",
                     root="tree/runs") as several:
            several.ends(0)
        assert list((tmp_path / "tree/runs/one/ckpt/eval/best").glob("*.index")), "the best is kept"
        write_into(tmp_path / "tree/one/ckpt", "--first", step, "--last", step)
    assert several.steps("one/ckpt") == [100, 200, 300]
    assert [p.name for p in (tmp_path / "tree/runs").iterdir()] == ["one"]


def test_one_that_somebody_else_serves(tmp_path):
    write_into(tmp_path / "tree/a")
    write_into(tmp_path / "tree/b")
    with Several(tmp_path, "--watch", f"a={tmp_path / 'tree/a'}", "--forever") as first:
        first.waits_for("a", [100])
        with Several(tmp_path, "--watch-tree", tmp_path / "tree") as several:
            several.waits_for("b", [100])
            several.says(f"an evaluator is already working here: process {first.process.pid}")
        with Several(tmp_path, "--watch", f"b={tmp_path / 'tree/b'}", "--watch", f"a={tmp_path / 'tree/a'}") as second:
            second.ends(2)
            assert str(first.process.pid) in second.said().splitlines()[-1]


def test_usage(tmp_path):
    for arguments, wanted in ((["--watch", "x"], "NAME=DIR"), (["--watch", "/a=x"], "not a name"),
                              (["--watch", "a/../b=x"], "not a name"),
                              (["--watch", "a=x", "--watch", "a=y"], "two directories are named a"),
                              (["--watch", "a=x", "--checkpoint-dir", "y"], "one or the other")):
        with Several(tmp_path, *arguments) as several:
            several.ends(2)
            assert wanted in several.said().splitlines()[-1], several.said()
