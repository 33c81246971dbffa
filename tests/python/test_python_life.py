"""Python's SummaryWriter through a process's life: killed, forked, in threads, ended without close, with a full disk; nothing
hangs, and what was flushed is there."""
import errno
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import pytest

import python_package
from waiting import wait_for

pytest.importorskip("numpy")

import evalboard  # noqa: E402


def values(logdir, tag="loss"):
    return sorted(v for (_, t), series in evalboard.read(logdir).items() if t == tag for v in series.values.tolist())


def run(code, *arguments, check=True, **options):
    """Runs this code in a Python of its own, to its end; it must come."""
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=python_package.environment(), timeout=120,
                          capture_output=True, text=True, check=check, **options)


WRITE = """
import sys, evalboard
w = evalboard.SummaryWriter(sys.argv[1])
for i in range(int(sys.argv[2])):
    w.add_scalar("loss", float(i), i)
"""


@pytest.mark.parametrize("end", ["", "sys.exit(3)", "1 / 0", "del w", "import gc; w.me = w; del w; gc.collect()",
                                 "import threading; threading.Thread(target=lambda: w.add_text('t', 'x')).start()"])
def test_end_without_close(tmp_path, end):
    """Whatever ends the interpreter: everything is written."""
    run(WRITE + end, tmp_path, 2000, check=False)
    assert values(tmp_path) == list(range(2000))


def test_killed(tmp_path):
    """What was flushed is there; what a second has passed over is, too, without a flush."""
    code = WRITE + "w.flush()\nfor i in range(3): w.add_scalar('later', 1.0, i)\nprint('ready', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), "700"], env=python_package.environment(),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    assert values(tmp_path) == list(range(700))
    wait_for(lambda: len(values(tmp_path, "later")) == 3, "points that nobody flushed")
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert values(tmp_path) == list(range(700))
    subprocess.run([python_package.BUILD / "bin/eventlog", "verify", tmp_path], check=True, capture_output=True)


FORK = WRITE + """
import os
children = []
for child in range(3):
    pid = os.fork()
    if pid == 0:
        for i in range(100):
            w.add_scalar("loss", 1e6 * (child + 1) + i, i)
        w.add_text("child", str(child))
        w.close()
        os._exit(0)
    children.append(pid)
for i in range(500, 600):
    w.add_scalar("loss", float(i), i)
for pid in children:
    assert os.waitpid(pid, 0)[1] == 0
"""


def test_fork(tmp_path):
    """Each process writes its own points, once, into a file of its own."""
    run(FORK, tmp_path, 500)
    assert values(tmp_path) == [float(i) for i in range(600)] + [1e6 * c + i for c in (1, 2, 3) for i in range(100)]
    assert len(list(tmp_path.glob("events*"))) == 4


MULTIPROCESSING = WRITE + """
import multiprocessing
def child(number, writer):
    for i in range(100):
        writer.add_scalar("loss", 1e6 * number + i, i)
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[3])
    children = [context.Process(target=child, args=(n, w)) for n in (1, 2)]
    for c in children: c.start()
    for c in children: c.join(); assert c.exitcode == 0
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(tmp_path, method):
    """Without a close in the children."""
    script = tmp_path / "script.py"
    script.write_text(MULTIPROCESSING.replace("w = evalboard", "if __name__ == '__main__': w = evalboard")
                      .replace("for i in range(int", "if __name__ == '__main__':\n  for i in range(int"))
    subprocess.run([sys.executable, script, tmp_path / "log", "300", method], env=python_package.environment(), check=True,
                   timeout=120)
    assert values(tmp_path / "log") == [float(i) for i in range(300)] + [1e6 * c + i for c in (1, 2) for i in range(100)]


def test_threads(tmp_path):
    """Eight threads, with many tags: each point is written once."""
    with evalboard.SummaryWriter(tmp_path) as w:
        def write(thread):
            for i in range(2000):
                w.add_scalar(f"tag {i % 7}", float(thread * 2000 + i), i)
                if i % 500 == 0:
                    w.add_histogram(f"h {thread}", [1.0, 2.0], i)
                    w.flush()

        threads = [threading.Thread(target=write, args=(t,)) for t in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    found = sorted(v for series in evalboard.read(tmp_path).values() for v in series.values.tolist())
    assert found == list(range(16000))
    assert sum(map(len, evalboard.read_histograms(tmp_path).values())) == 32


def test_errors(tmp_path):
    """They are exceptions of their sort, with the library's sentence."""
    (tmp_path / "file").write_text("")
    with pytest.raises(evalboard.EventLogOSError, match="file.*not a directory"):
        evalboard.SummaryWriter(tmp_path / "file")
    with pytest.raises(OSError) as caught:
        evalboard.read(tmp_path / "absent")
    assert caught.value.errno == errno.ENOENT and "absent" in str(caught.value)
    with evalboard.SummaryWriter(tmp_path / "log") as w:
        with pytest.raises(TypeError, match="a tag is a str"):
            w.add_scalar(3, 1.0)
        with pytest.raises(ValueError, match="NUL"):
            w.add_scalar("a\0b", 1.0)
        with pytest.raises(AssertionError, match="one element"):
            w.add_scalar("loss", [1.0, 2.0])
        with pytest.raises(evalboard.EventLogArgumentError, match="finite"):
            w.add_text("t", "x", walltime=float("nan"))
        with pytest.raises(UnicodeEncodeError):
            w.add_scalar("\ud800", 1.0)
        w.add_scalar("loss", 1.0, 1, float("inf"))
        w.add_scalar("loss", 2.0, 2)
        with pytest.raises(evalboard.EventLogArgumentError, match="loss.* at step 1.*finite"):
            w.flush()
        w.flush()
    assert values(tmp_path / "log") == [2]


def test_full_disk(tmp_path):
    """Points that cannot be written wait, and are written once there is room."""
    code = """
import resource, signal, sys, evalboard, warnings
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
w = evalboard.SummaryWriter(sys.argv[1])
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
refused = 0
for i in range(1000):
    try:
        w.add_scalar("loss", float(i), i)
        if i % 100 == 0: w.flush()
    except evalboard.EventLogOSError as error:
        refused += 1
        assert "large" in str(error) or "too big" in str(error).lower(), error
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
w.close()
print(refused)
"""
    assert int(run(code, tmp_path).stdout) >= 1
    assert values(tmp_path) == list(range(1000))


def test_closed_and_used_again(tmp_path):
    """As PyTorch's: a value after close() makes another file."""
    w = evalboard.SummaryWriter(tmp_path, filename_suffix=".x")
    w.add_scalar("loss", 1.0)
    w.close()
    w.close()
    w.add_scalar("loss", 2.0, 1)
    assert pickle.loads(pickle.dumps(w)).log_dir == str(tmp_path)
    w.close()
    assert values(tmp_path) == [1, 2] and all(p.name.endswith(".x") for p in tmp_path.glob("events*"))


def test_purge_step(tmp_path):
    for first, purge in ((0, None), (5, 5)):
        with evalboard.SummaryWriter(tmp_path, purge_step=purge) as w:
            for step in range(first, 8):
                w.add_scalar("loss", float(step + first), step)
    assert evalboard.read(tmp_path, view="session")["loss"].values.tolist() == [0, 1, 2, 3, 4, 10, 11, 12]


def test_default_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with evalboard.SummaryWriter(comment="-mine") as w:
        w.add_scalar("loss", 1.0)
    [run_directory] = pathlib.Path("runs").iterdir()
    assert run_directory.name.endswith(os.uname().nodename + "-mine")


GLOBAL = """
import multiprocessing, sys
from evalboard.tensorboardX import GlobalSummaryWriter
def child(writer, number):
    for i in range(20):
        writer.add_scalar("loss", 100.0 * number + i)
    writer.add_text("note", str(number))
if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    writer = GlobalSummaryWriter(sys.argv[1])
    children = [context.Process(target=child, args=(writer, n)) for n in range(3)]
    for c in children: c.start()
    for c in children: c.join(); assert c.exitcode == 0
    writer.add_scalar("loss", -1.0)
    print(len(writer.file_writer.get_logdir()))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_global_writer(tmp_path, method):
    """Steps are counted over all processes."""
    script = tmp_path / "script.py"
    script.write_text(GLOBAL)
    subprocess.run([sys.executable, script, tmp_path / "log", method], env=python_package.environment(), check=True, timeout=120)
    points = [p for series in evalboard.read(tmp_path / "log").values() for p in series.points.tolist()]
    assert sorted(int(p[0]) for p in points) == list(range(61))
    assert sorted(p[2] for p in points) == [-1.0] + [100.0 * n + i for n in range(3) for i in range(20)]
    texts = [t for values in evalboard.read_texts(tmp_path / "log").values() for t in values]
    assert sorted(t.step for t in texts) == [0, 1, 2]


BUSY = """
import os, sys, threading, evalboard
w = evalboard.SummaryWriter(sys.argv[1])
stop = threading.Event()
def write(tag):
    i = 0
    while not stop.is_set():
        w.add_scalar(tag, 0.5, i)
        if i % 50 == 0: w.add_text("t", "x", i); w.flush()
        i += 1
threads = [threading.Thread(target=write, args=(f"busy {n}",)) for n in range(3)]
for t in threads: t.start()
for child in range(20):
    pid = os.fork()
    if pid == 0:
        for i in range(5): w.add_scalar("loss", float(5 * child + i), i)
        w.close()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.set()
for t in threads: t.join()
"""


def test_fork_beside_writing_threads(tmp_path):
    """A lock that another thread held in the moment of the fork does not stop the child."""
    run(BUSY, tmp_path)
    assert values(tmp_path) == list(range(100))
