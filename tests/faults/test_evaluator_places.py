"""The evaluator where files live: tmpfs, overlay, mounts that tell nothing, permissions that come and go, directories full
of other things, disks that fill up, clocks that are set back; and how soon it begins.
"""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

import pytest

from evaluators import EVALUATOR, Evaluator, ledger, points, steps, write
from interposed import CLOCK, READ_ONLY, interposed
from waiting import DEADLINE, wait_for

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting, or becoming another user, needs root")


def make_layers(directory, stack, *names):
    """Directories for an overlay, on a tmpfs of their own: where the tests run may itself be one."""
    layers = stack.enter_context(mounted("tmpfs", "size=256m", directory / "layers"))
    for name in names:
        (layers / name).mkdir(parents=True)
    return layers


@contextlib.contextmanager
def mounted(kind, options, where):
    where.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", kind, "-o", options, kind, where], check=True)
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def follows(directory, evaluator, checkpoints="ckpt", first=100, count=5):
    """Each of some checkpoints, written one after the other, is evaluated."""
    for step in range(first, first + 100 * count, 100):
        write(directory, "--first", step, "--last", step, checkpoints=checkpoints)
        wait_for(lambda: step in steps(ledger(directory)) or evaluator.process.poll() is not None, f"step {step}")
        assert step in steps(ledger(directory)), evaluator.said()


@needs_root
def test_tmpfs(tmp_path):
    with mounted("tmpfs", "size=64m", tmp_path / "ckpt"), mounted("tmpfs", "size=8m", tmp_path / "eval"):
        with Evaluator(tmp_path, "--poll-interval", 5) as evaluator:
            follows(tmp_path, evaluator)


@needs_root
def test_overlay(tmp_path):
    """Checkpoints and eval directory on an overlay, as in a container."""
    with contextlib.ExitStack() as stack:
        layers = make_layers(tmp_path, stack, "lower", "upper", "work")
        try:
            stack.enter_context(mounted("overlay", f"lowerdir={layers}/lower,upperdir={layers}/upper,"
                                        f"workdir={layers}/work", tmp_path / "merged"))
        except subprocess.CalledProcessError:
            pytest.skip("this kernel has no overlays")
        (tmp_path / "ckpt").symlink_to(tmp_path / "merged/ckpt")
        (tmp_path / "eval").symlink_to(tmp_path / "merged/eval")
        (tmp_path / "merged/eval").mkdir()
        with Evaluator(tmp_path) as evaluator:
            evaluator.says("does not exist yet")
            (tmp_path / "merged/ckpt").mkdir()
            follows(tmp_path, evaluator)


@needs_root
def test_a_mount_that_tells_nothing(tmp_path):
    """What is written beneath an overlay is seen through it, and inotify hears nothing of it: as on network file systems,
    when another host writes. The watch stands, so only the poll can find it."""
    with contextlib.ExitStack() as stack:
        layers = make_layers(tmp_path, stack, "lower/ckpt", "upper", "work")
        try:
            stack.enter_context(mounted("overlay", f"lowerdir={layers}/lower,upperdir={layers}/upper,"
                                        f"workdir={layers}/work", tmp_path / "merged"))
        except subprocess.CalledProcessError:
            pytest.skip("this kernel has no overlays")
        with Evaluator(tmp_path, "--poll-interval", 0.2, checkpoints="merged/ckpt") as evaluator:
            evaluator.says("watching")
            follows(tmp_path, evaluator, checkpoints="layers/lower/ckpt", count=4)
        assert all(r["lag"] < 2 for r in ledger(tmp_path))


@pytest.mark.parametrize("arguments", [[], ["--no-inotify"]])
def test_moved_deleted_and_made_again(tmp_path, arguments):
    with Evaluator(tmp_path, "--poll-interval", 0.1, "--forever", *arguments) as evaluator:
        follows(tmp_path, evaluator, count=2)
        (tmp_path / "ckpt").rename(tmp_path / "aside")
        evaluator.says("is gone; waiting for it to come back")
        (tmp_path / "aside").rename(tmp_path / "ckpt")
        wait_for(lambda: evaluator.said().count("watching ") == 2, "the directory again")
        follows(tmp_path, evaluator, first=300, count=1)
        shutil.rmtree(tmp_path / "ckpt")
        wait_for(lambda: evaluator.said().count("is gone; waiting") == 2, "the directory to be missed")
        follows(tmp_path, evaluator, first=400, count=2)
        assert steps(ledger(tmp_path)) == [100, 200, 300, 400, 500]


@pytest.fixture
def others_place():
    """A directory of another user, with programs of its own: what leads to ours may be closed to that user."""
    with tempfile.TemporaryDirectory(prefix="evaluator-") as name:
        place = pathlib.Path(name)
        place.chmod(0o755)
        shutil.copy(EVALUATOR, place / "evaluator")
        (place / "runs").mkdir()  # where a lower step may make eval_1, too
        os.chown(place / "runs", NOBODY, NOBODY)
        yield place
        (place / "ckpt").chmod(0o755)


@needs_root
@pytest.mark.parametrize("arguments", [[], ["--no-inotify"]])
def test_permissions_taken_away_and_given_back(others_place, arguments):
    place = others_place
    write(place)
    log = open(place / "log", "wb")
    process = subprocess.Popen(
        [place / "evaluator", "--checkpoint-dir", place / "ckpt", "--eval-dir", place / "runs/eval", "--model", "lenet", "--data",
         "fashion-mnist", "--num-examples", "100", "--forever", "--poll-interval", "0.1", *arguments], stderr=log,
        user=NOBODY, group=NOBODY, extra_groups=[])

    def says(text):
        wait_for(lambda: text in (place / "log").read_text() or process.poll() is not None, f"'{text}'")
        assert text in (place / "log").read_text(), (place / "log").read_text()

    try:
        says("step: 100,")
        (place / "ckpt").chmod(0)
        write(place, "--first", 200, "--last", 200)
        says("ckpt: cannot be listed: Permission denied")
        (place / "ckpt").chmod(0o755)
        says("step: 200,")
        write(place, "--first", 300, "--last", 300, checkpoints="made")
        (place / "made/model.ckpt-300.data-00000-of-00001").chmod(0)
        for path in sorted((place / "made").glob("model*"), key=lambda p: p.suffix == ".index"):
            path.rename(place / "ckpt" / path.name)
        write(place, "--first", 400, "--last", 400)
        says("step: 400,")
        (place / "ckpt/model.ckpt-300.data-00000-of-00001").chmod(0o644)
        says("step: 300,")
        assert (place / "log").read_text().count("cannot be listed") == 1, "said once"
        assert [r["status"] for r in ledger(place, "runs/eval")] == ["done"] * 4
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        log.close()


def test_a_directory_full_of_other_things(tmp_path):
    """FIFOs, sockets, devices' names, links in a circle, directories, and many names, under names of checkpoints."""
    ckpt = tmp_path / "ckpt"
    ckpt.mkdir()
    for i in range(50000):
        os.mknod(ckpt / f"some-other-name-of-no-interest-{i}.log")
    os.mkfifo(ckpt / "model.ckpt-1.index")
    os.mkfifo(ckpt / "checkpoint")
    os.mkfifo(ckpt / "training.json")
    (ckpt / "model.ckpt-2.index").symlink_to("model.ckpt-3.index")
    (ckpt / "model.ckpt-3.index").symlink_to("model.ckpt-2.index")
    (ckpt / "model.ckpt-4.index").symlink_to("/dev/zero")
    (ckpt / "model.ckpt-5.index").mkdir()
    (ckpt / "here").symlink_to(".")
    listener = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(ckpt)  # the path of a socket is short
    try:
        listener.bind("model.ckpt-6.index")
    finally:
        os.chdir(here)
    with Evaluator(tmp_path, "--quiet-time", 0.2, "--forever") as evaluator:
        evaluator.says("watching")
        write(tmp_path, "--first", 100, "--last", 300, "--stateless", checkpoints="made")
        write(tmp_path, "--first", 150, "--last", 150, "--stateless", checkpoints="made")
        os.mkfifo(ckpt / "model.ckpt-150.data-00000-of-00001")  # whose data nobody can read
        shutil.copy(tmp_path / "made/model.ckpt-150.index", ckpt)
        for path in sorted((tmp_path / "made").glob("model.ckpt-*00.*"), key=lambda p: (p.suffix == ".index", p.name)):
            path.rename(ckpt / path.name)
        wait_for(lambda: len(steps(ledger(tmp_path))) == 3, "three evaluations")
        wait_for(lambda: 150 in steps(ledger(tmp_path), "failed"), "one failure")
        with open(f"/proc/{evaluator.process.pid}/status") as status:
            resident = int(next(line for line in status if line.startswith("VmHWM")).split()[1])
        assert resident < 200 * 1024, f"{resident} KiB"
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
    listener.close()
    assert steps(ledger(tmp_path)) == [100, 200, 300]


@needs_root
def test_disk_full_from_the_start_and_in_between(tmp_path):
    """Service check 11: full while ledger or events are written; it says so, loses nothing, goes on when there is room."""
    with mounted("tmpfs", "size=64k", tmp_path / "eval") as small:
        write(tmp_path, "--last", 2000)

        def fill():
            with open(small / "ballast", "ab", buffering=0) as ballast, contextlib.suppress(OSError):
                while ballast.write(b"\0" * 4096):
                    pass

        with Evaluator(tmp_path, "--forever") as evaluator:
            wait_for(lambda: len(ledger(tmp_path)) >= 3, "some evaluations")
            for _ in range(3):
                fill()
                have = len(ledger(tmp_path))
                wait_for(lambda: "trying again every" in evaluator.said() or len(ledger(tmp_path)) == 20, "a full disk")
                os.truncate(small / "ballast", 4096)
                wait_for(lambda: len(ledger(tmp_path)) > have or len(ledger(tmp_path)) == 20, "it to go on")
            (small / "ballast").unlink()
            wait_for(lambda: len(ledger(tmp_path)) == 20, "all")
            evaluator.process.send_signal(signal.SIGTERM)
            evaluator.ends(0)
        assert "No space left on device" in evaluator.said()
        assert steps(ledger(tmp_path)) == list(range(100, 2001, 100))
        assert [p[0] for p in points(small)["precision"]] == list(range(100, 2001, 100))


def test_turns_read_only_while_it_works(tmp_path):
    """Service check 11: it says so, loses nothing, goes on when it may write again; or is ended, and a new one goes on."""
    turned = tmp_path / "turned"
    environment = interposed(tmp_path, "read_only", READ_ONLY, READ_ONLY_WHILE=turned, READ_ONLY_UNDER=tmp_path / "eval")
    written = 300
    with Evaluator(tmp_path, "--forever", "--keep-best", env=environment) as evaluator:
        follows(tmp_path, evaluator, count=3)
        for _ in range(3):
            told = evaluator.said().count("Read-only file system; trying again every")
            turned.touch()
            write(tmp_path, "--first", written + 100, "--last", written + 300)
            wait_for(lambda: evaluator.said().count("Read-only file system; trying again every") > told, "word of it")
            assert evaluator.process.poll() is None and len(ledger(tmp_path)) == written // 100
            turned.unlink()
            written += 300
            wait_for(lambda: len(ledger(tmp_path)) == written // 100, "it to go on")
        told = evaluator.said().count("Read-only file system; trying again every")
        turned.touch()
        write(tmp_path, "--first", written + 100, "--last", written + 300)
        wait_for(lambda: evaluator.said().count("Read-only file system; trying again every") > told, "word of it")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
    turned.unlink()
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    records = ledger(tmp_path)
    assert steps(records) == list(range(100, written + 400, 100)) and len(records) == len(steps(records))
    shown = points(tmp_path / "eval")
    assert sorted({p[0] for p in shown["precision"]}) == steps(records)


@needs_root
def test_read_only_from_the_start(tmp_path):
    with mounted("tmpfs", "size=1m", tmp_path / "eval") as where:
        with Evaluator(tmp_path, "--forever") as evaluator:
            follows(tmp_path, evaluator, count=2)
            evaluator.process.send_signal(signal.SIGTERM)
            evaluator.ends(0)
        subprocess.run(["mount", "-o", "remount,ro", where], check=True)
        with Evaluator(tmp_path, "--forever") as evaluator:
            evaluator.ends(2)
            said = evaluator.said()
            assert "Read-only file system" in said and str(where) in said and said.count("\n") == 1, said
        subprocess.run(["mount", "-o", "remount,rw", where], check=True)
        with Evaluator(tmp_path, "--once") as evaluator:
            evaluator.ends(0)
    assert not list((tmp_path / "eval").iterdir())


def test_clock_set_back(tmp_path):
    """Steps decide, not times: by an hour while it works, and again before the next start."""
    shift = tmp_path / "shift"
    shift.write_text("0\n")
    environment = interposed(tmp_path, "clock", CLOCK, CLOCK_SHIFT_FILE=shift)
    with Evaluator(tmp_path, "--forever", env=environment) as evaluator:
        follows(tmp_path, evaluator, count=3)
        shift.write_text("-3600\n")
        follows(tmp_path, evaluator, first=400, count=3)
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    shift.write_text("-86400\n")
    with Evaluator(tmp_path, "--forever", env=environment) as evaluator:
        follows(tmp_path, evaluator, first=700, count=3)
        report = json.loads(subprocess.run([EVALUATOR, "status", "--json", tmp_path / "eval"], capture_output=True,
                                           text=True).stdout)["runs"][0]
        assert report["state"] == "running" and report["done"] == 9
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    records = ledger(tmp_path)
    assert steps(records) == list(range(100, 1000, 100)) and {r["run"] for r in records} == {0}
    walls = [r["wall_time"] for r in records]
    assert walls[0] - walls[3] == pytest.approx(3600, abs=600) and walls[0] - walls[8] == pytest.approx(86400, abs=600)
    assert all(r["seconds"] < 600 for r in records), "durations are not measured with that clock"
    assert [p[0] for p in points(tmp_path / "eval")["precision"]] == steps(records)


@pytest.mark.parametrize("kind", ["file", "link", "fifo"])
@pytest.mark.parametrize("name", ["evaluator.lock", ".points", "work.json", ".work.json", "evaluations.jsonl"])
def test_names_that_are_taken(tmp_path, name, kind):
    """Nothing of somebody else's is overwritten under a name that the evaluator uses, nor what a link leads to."""
    thesis, taken = tmp_path / "thesis.txt", tmp_path / "eval" / name
    taken.parent.mkdir()
    write(tmp_path, "--last", 100)
    thesis.write_text("mine")
    if kind == "fifo":
        os.mkfifo(taken)
    else:
        taken.symlink_to(thesis) if kind == "link" else thesis.rename(taken)
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(2)
    said = "is a symbolic link" if kind == "link" else "is not"
    assert f"{taken}: {said}" in evaluator.said() and not list(taken.parent.glob("events.*"))
    assert kind == "fifo" or (taken if kind == "file" else thesis).read_text() == "mine"
    taken.unlink()
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    assert steps(ledger(tmp_path)) == [100]


@pytest.mark.parametrize("command", ["replay", "status"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_ledger_that_is_none_is_not_read(tmp_path, command, kind):
    """A FIFO read as an empty ledger, and replay put the event files aside for none."""
    write(tmp_path)
    with Evaluator(tmp_path, "--once", how=["--exec", "echo loss 1"]) as evaluator:
        evaluator.ends(0)
    place = tmp_path / "eval/evaluations.jsonl"
    place.rename(tmp_path / "elsewhere")
    os.mkfifo(place) if kind == "fifo" else place.symlink_to(tmp_path / "elsewhere")
    files = sorted((tmp_path / "eval").iterdir())
    done = subprocess.run([EVALUATOR, command, tmp_path / "eval"], capture_output=True, text=True)
    said = "is not a regular file" if kind == "fifo" else "is a symbolic link, which is not followed"
    assert done.returncode == 2 and f"{place}: {said}; move it elsewhere\n" in done.stderr
    assert sorted((tmp_path / "eval").iterdir()) == files


@pytest.mark.parametrize("place", [".replay/notes.txt", ".replay/eval/notes.txt", ".replay"])
def test_replay_deletes_nothing_else(tmp_path, place):
    """The directory in which replay works is emptied only of what replay makes."""
    write(tmp_path, "--last", 100)
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    mine = tmp_path / "eval" / place
    mine.parent.mkdir(parents=True, exist_ok=True)
    mine.write_text("mine")
    refused = subprocess.run([EVALUATOR, "replay", tmp_path / "eval"], capture_output=True, text=True)
    assert refused.returncode == 2 and str(mine) in refused.stderr and mine.read_text() == "mine"
    assert list((tmp_path / "eval").glob("events.out.tfevents.*")) and not list(tmp_path.glob("eval/before-replay.*"))
