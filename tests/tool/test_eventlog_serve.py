"""eventlog serve over a program that stands for TensorBoard: what it is started with, and that nothing outlives the other."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess

import pytest

from eventlog_command import TOOL, run
from tensorboard_server import data_server_or_skip, localhost_or_skip
from waiting import DEADLINE, wait_for

# Tells its process and its arguments, then says where it listens, as TensorBoard does.
LISTENS = """#!/bin/sh
printf '%s\\n' $$ "$@" >"$0.part" && mv "$0.part" "$0.started"
echo note >&2
echo 'TensorBoard 9 at http://localhost:1/ (Press CTRL+C to quit)' >&2
"""


class Served:
    """A process `eventlog serve`, killed at the end of `with`."""

    def __init__(self, directory, script, *arguments, **environ):
        localhost_or_skip()
        data_server_or_skip()
        self.page = directory / "bin/tensorboard"
        self.page.parent.mkdir(exist_ok=True)
        self.page.write_text(script)
        self.page.chmod(0o755)
        (directory / "log").mkdir(exist_ok=True)
        self.output = directory / "output.txt"
        with open(self.output, "w") as output:
            self.process = subprocess.Popen(
                [TOOL, "serve", *(arguments or [directory / "log"])], stdout=output, stderr=output, cwd=directory,
                env=dict(os.environ, PATH=f"{directory}/bin:{os.environ['PATH']}", **environ))

    def said(self):
        return self.output.read_text()

    def started(self):
        """The two processes, once TensorBoard's address is printed."""
        wait_for(lambda: "TensorBoard: http://localhost:1/ (Ctrl-C ends it)\n" in self.said(), self.said)
        page = int(self.arguments()[0])
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        server, = (int(line.split()[0]) for line in listed.stdout.splitlines() if "eventlog-server" in line)
        return page, server

    def arguments(self):
        return pathlib.Path(f"{self.page}.started").read_text().splitlines()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def gone(*processes):
    def living(process):
        try:
            return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False
    wait_for(lambda: not any(map(living, processes)), f"{processes} to end")
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_both(tmp_path, number):
    with Served(tmp_path, LISTENS + "exec sleep 1000000\n") as served:
        processes = served.started()
        served.process.send_signal(number)
        assert served.process.wait(DEADLINE) == 0 and gone(*processes)
        assert served.said() == "note\nTensorBoard: http://localhost:1/ (Ctrl-C ends it)\n"


def test_a_program_that_does_not_end_is_killed(tmp_path):
    """At the second Ctrl-C; with what it started, too."""
    script = LISTENS + "trap '' TERM INT\nsleep 1000000 &\necho $! >\"$0.child\"\nwhile :; do wait; done\n"
    with Served(tmp_path, script) as served:
        processes = served.started()
        child = wait_for(lambda: os.path.exists(f"{served.page}.child") and pathlib.Path(f"{served.page}.child").read_text(),
                         "the child")
        served.process.send_signal(signal.SIGINT)
        gone(processes[1])  # the first was heard
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(DEADLINE) == 0 and gone(*processes, int(child))


def test_when_one_dies_the_other_ends(tmp_path):
    for victim, words in ((0, "tensorboard was ended by signal 9 (Killed)"), (1, "eventlog-server was ended by signal 9 (Killed)")):
        with Served(tmp_path, LISTENS + "exec sleep 1000000\n") as served:
            processes = served.started()
            os.kill(processes[victim], signal.SIGKILL)
            assert served.process.wait(DEADLINE) == 1 and gone(*processes)
            assert f"eventlog serve: {words}\n" in served.said()


def test_killed_it_leaves_nothing(tmp_path):
    with Served(tmp_path, LISTENS + "exec sleep 1000000\n") as served:
        processes = served.started()
        served.process.kill()
        assert gone(*processes)


def test_tensorboard_that_does_not_start(tmp_path):
    with Served(tmp_path, "#!/bin/sh\necho first >&2\nprintf 'port 6006 is taken' >&2\nexit 7\n") as served:
        assert served.process.wait(DEADLINE) == 1
        assert served.said() == ("first\nport 6006 is taken\n"
                                 "eventlog serve: tensorboard ended with status 7 before it listened\n")
    with Served(tmp_path, "#!/no/such/interpreter\n") as served:
        assert served.process.wait(DEADLINE) == 1
        assert "No such file or directory\neventlog serve: tensorboard ended with status 127" in served.said()


def test_arguments(tmp_path):
    """A word with '=' names a directory, unless that is the name of one."""
    (tmp_path / "lr=0.1/curve").mkdir(parents=True)
    with Served(tmp_path, LISTENS + "exec sleep 1000000\n", "lr=0.1", "other=later", "--samples", "7", "--port=0", "--host", "::1") as served:
        server = served.started()[1]
        words = served.arguments()[1:]
        assert words[0].startswith("--grpc_data_provider=localhost:")
        assert words[1:4] == ["--port=0", "--host=::1", "--samples_per_plugin=scalars=7"]
        assert words[4].startswith("--logdir=") and len(words) == 5
        links = pathlib.Path(words[4].partition("=")[2])
        assert [path.name for path in links.iterdir()] == ["curve"] and (links / "curve").samefile(tmp_path / "lr=0.1/curve")
        command = pathlib.Path(f"/proc/{server}/cmdline").read_text().split("\0")
        assert {"--logdir=lr=0.1", "--also=other=later", "--port=0", "--die-after-stdin"} <= set(command)
        assert "eventlog serve: later: No such file or directory; its runs are shown once it is there\n" in served.said()
        served.process.terminate()
        assert served.process.wait(DEADLINE) == 0 and not links.exists()
    with Served(tmp_path, LISTENS + "exec sleep 1000000\n") as served:
        server = served.started()[1]
        assert served.arguments()[2:] == ["--samples_per_plugin=scalars=1073741824", f"--logdir={tmp_path / 'log'}"]
        assert {"--extremes", "--chart-points=200000"} <= set(pathlib.Path(f"/proc/{server}/cmdline").read_text().split("\0"))


def test_server_only(tmp_path):
    with Served(tmp_path, "", tmp_path / "log", "--server-only", "--port=0", "--host=127.0.0.1") as served:
        wait_for(lambda: "eventlog-server: listening on 127.0.0.1:" in served.said(), served.said)
        served.process.terminate()
        assert served.process.wait(DEADLINE) == -signal.SIGTERM


def test_a_taken_port_is_named_before_anything_starts(tmp_path):
    localhost_or_skip()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        for arguments, host in ((["--server-only"], "localhost"), ([], "localhost"), (["--host=127.0.0.1"], "127.0.0.1")):
            with Served(tmp_path, LISTENS, tmp_path / "log", f"--port={port}", *arguments) as served:
                assert served.process.wait(DEADLINE) == 1
                assert served.said() == (f"eventlog serve: port {port} of {host} is taken; give another one with --port, or any free "
                                         "one with --port 0\n")
                assert not os.path.exists(f"{served.page}.started")


def alone(directory):
    """The program with its server in a directory of their own."""
    (directory / "tree/bin").mkdir(parents=True)
    for program in (TOOL, data_server_or_skip()):
        shutil.copy(program, directory / "tree/bin")
    return directory / "tree/bin" / TOOL.name


def test_the_tensorboard_of_the_demo(tmp_path):
    """`make demo` installs it beside the programs that it builds; it is taken if there is none on PATH."""
    program, installed = alone(tmp_path), tmp_path / "tree/venv/bin/tensorboard"
    installed.parent.mkdir(parents=True)
    installed.write_text(LISTENS)
    installed.chmod(0o755)
    done = subprocess.run([program, "serve", tmp_path], capture_output=True, text=True, timeout=DEADLINE,
                          env={"PATH": "/usr/bin:/bin"})
    assert done.stdout == "TensorBoard: http://localhost:1/ (Ctrl-C ends it)\n", done.stderr
    assert (installed.parent / "tensorboard.started").exists()


def test_mistakes(tmp_path, monkeypatch):
    data_server_or_skip()
    file, log = tmp_path / "file", tmp_path / "log"
    file.write_text("")
    log.mkdir()
    for arguments, words in (([], "which log directory?"), ([file], "file: not a directory; give the directory of the log"),
                             ([log, log], f"a second log directory needs a name: NAME={log}"),
                             ([f"a={log}", f"a={log}"], f"a={log}: has the name of a={log}; give each its own"),
                             ([f"x={file}"], "file: not a directory"), ([file / "x"], "Not a directory"),
                             (["x" * 300], "File name too long"),
                             ([log, "--server-only", "--samples=7"], "--samples and --tensorboard are for TensorBoard")):
        assert words in run("serve", *arguments, status=2).stderr
    monkeypatch.setenv("PATH", str(tmp_path))
    said = subprocess.run([alone(tmp_path), "serve", log], capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith("eventlog serve: tensorboard: no such program on PATH; install it with 'pip install tensorboard'")
    assert "no/tensorboard: no such program; " in run("serve", log, "--tensorboard=no/tensorboard", status=2).stderr
