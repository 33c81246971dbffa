"""For all tests: signals as a shell would leave them, what runs, told every few seconds, and what tests of several folders
read: a log with values of every kind, and the documents."""
import os
import pathlib
import signal

import pytest

import kinds_log
import making
import progress

# Under nohup SIGHUP is ignored, behind the & of a script SIGINT and SIGQUIT, and every child inherits that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
# Python's readline, which pytest loads, exports COLUMNS behind os.environ's back; tables would go by it.
try:
    import readline  # noqa: F401
except ImportError:
    pass
os.environ.pop("COLUMNS", None)
os.unsetenv("COLUMNS")
# Else hwloc, in mpirun, looks for X servers on "localhost": twenty requests to a name server where /etc/hosts lacks it.
os.environ.setdefault("HWLOC_COMPONENTS", "-gl")


class Told:
    """In place of pytest's dots: how many tests are done, and which run. Failures are named as they come."""

    def __init__(self, terminal):
        self.terminal, self.done, self.failed, self.of = terminal, 0, 0, 0
        self.progress = progress.Progress(self.say, self.note)
        self.progress.begin("collecting tests")

    def say(self, line):
        self.terminal.ensure_newline()
        self.terminal.write_line(line, flush=True)

    def note(self):
        return f"{self.done} of {self.of} tests, {self.failed} failed; " if self.of else ""

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node, ids):
        self.of = len(ids)

    def pytest_runtest_logstart(self, nodeid):
        self.progress.end("collecting tests")
        self.progress.begin(nodeid)

    def pytest_runtest_logfinish(self, nodeid):
        self.progress.end(nodeid)
        self.done += 1

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed += 1
            self.say(f"  FAIL {report.nodeid}")
            self.progress.said()

    def pytest_report_teststatus(self, report):
        """As pytest counts them, without its letters."""
        if report.passed:
            return "passed" if report.when == "call" else "", "", "PASSED"
        if report.skipped:
            return "skipped", "", "SKIPPED"
        return "failed" if report.when == "call" else "error", "", "FAILED"

    def pytest_unconfigure(self):
        self.progress.close()


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    # The process that hands out tests to others: where tests run, what is printed belongs to them.
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Told(config.pluginmanager.get_plugin("terminalreporter")))


@pytest.fixture(scope="session")
def kinds(tmp_path_factory):
    """A log with a value of every kind, one for all tests: they only read it."""
    return kinds_log.write(tmp_path_factory.mktemp("kinds") / "log")


@pytest.fixture(scope="session")
def documents():
    """The build directory, with man pages and completions as they are now."""
    making.make("documents")
    return pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
