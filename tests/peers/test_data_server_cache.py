"""eventlog-server started again: the same answers from what it saved, and nothing of it where a file or a saved run is not
what it was.
"""
import os
import re
import shutil

import pytest

from data_server import DataServer, framed, golden_bytes, scalar, write_log
from waiting import wait_for

pytest.importorskip("grpc")
pytest.importorskip("tensorboard")
NAME = "events.out.tfevents.1"


class Place:
    """A log and its cache; starts servers one after the other."""

    def __init__(self, directory):
        self.directory, self.log, self.cache = directory, directory / "log", directory / "saved"

    def saved(self):
        return {path.name: (path.stat().st_ino, path.read_bytes()) for path in self.cache.glob("*")
                if path.suffix in (".run", ".pack")}

    def ask(self, what, *arguments, cache=None, until=lambda server: True, saves=False):
        """The result of what(server), what was brought back {run: points}, and the rest that it said. saves: much is new."""
        before = self.saved()
        with DataServer(self.log, self.directory, f"--cache={cache or self.cache}", "-v", "--reload=once", *arguments) as server:
            server.until(lambda: until(server) and len(server.runs()) == sum(1 for _, _, files in os.walk(self.log) if files))
            result = what(server)
            text = server.output.read_text()
            back = {run: int(points) for run, points in re.findall(r": (.*): (\d+) points brought back\n", text)}
            if cache is None:  # what was not brought back is saved
                wait_for(lambda: self.saved() and (back and not saves or self.saved() != before), lambda: str(self.saved()))
            text = server.output.read_text()
            assert server.close() == 0
        return result, back, [line for line in text.splitlines() if "brought back" not in line and "listening" not in line]


@pytest.fixture
def place(tmp_path):
    (tmp_path / "log").mkdir()
    return Place(tmp_path)


def curve(place, steps, run="r", name=NAME, **more):
    return write_log(place.log / run / name, *[scalar(step, step / 7, **more) for step in steps])


def steps(place, wanted, run="r", **more):
    """What is brought back once the curve has these steps."""
    return place.ask(lambda server: server.steps(run, "loss"), until=lambda server: server.steps(run, "loss") == list(wanted),
                     **more)[1]


def test_the_same_answers(place, kinds):
    """Values of every kind, damage, files at the same time, restarts and names that are not UTF-8."""
    shutil.copytree(kinds, place.log / "kinds")
    write_log(place.log / "train" / NAME, golden_bytes())
    data = bytearray(b"".join(scalar(step, step) for step in range(9)))
    data[100] ^= 1
    write_log(place.log / "damaged" / NAME, bytes(data))
    curve(place, range(0, 900, 2), "writers", NAME)
    curve(place, range(1, 900, 2), "writers", NAME + "1")
    write_log(place.log / "again" / NAME, *[scalar(step % 500, step, wall=1e9 + step) for step in range(900)])
    write_log(place.log / "bytes" / NAME, framed(scalar(1, 2, tag="aXb")[12:-4].replace(b"aXb", b"a\xffb")))
    write_log(place.log / "empty" / NAME)
    for more in ((), ("--no-merge",)):
        count = len(list(place.cache.glob("*.pack")))
        loaded = lambda server: len(server.runs()) >= 6 and len(server.plugins()) >= 8  # noqa: E731
        with DataServer(place.log, place.directory, "--cache=off", "--reload=once", *more) as server:
            server.until(lambda: loaded(server) and server.answers() == server.answers())
            wanted = settled(server)
        with DataServer(place.log, place.directory, f"--cache={place.cache}", "--reload=once", *more) as server:
            server.until(lambda: len(list(place.cache.glob("*.pack"))) > count)  # after the large runs
            assert server.answers() == wanted
        with DataServer(place.log, place.directory, f"--cache={place.cache}", "--reload=once", "-v", *more) as server:
            server.until(lambda: server.output.read_text().count("points brought back") >= 7)
            assert settled(server) == wanted
            assert server.output.read_text().count("has damage, in 1 places") == 1


def settled(server):
    """The answers once two in a row are the same."""
    last = []

    def same():
        last.append(server.answers())
        return len(last) > 1 and last[-1] == last[-2] and len(last[-1]) > 60

    server.until(same)
    return last[-1]


def test_growth_while_it_is_not_running(place):
    path = curve(place, range(1000))
    assert steps(place, range(1000)) == {}
    assert steps(place, range(1000)) == {"r": 1000}
    part = scalar(1000, 5)
    with open(path, "ab") as file:
        file.write(part[:20])
    assert steps(place, range(1000)) == {"r": 1000}
    with open(path, "ab") as file:
        file.write(part[20:] + b"".join(scalar(step, 1) for step in range(1001, 1900)))
    assert steps(place, range(1900)) == {"r": 1000}
    assert steps(place, range(1900)) == {"r": 1900}
    curve(place, range(1900, 2000), name=NAME + "1")  # a further file
    assert steps(place, range(2000)) == {"r": 1900}


def replace(path, data):
    path.with_suffix(".new").write_bytes(data)
    path.with_suffix(".new").rename(path)


def put_back_time(path, data):
    times = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def in_the_middle(path, _):
    """Another value in a record that is neither the first nor the last."""
    put_back_time(path, path.read_bytes().replace(scalar(500, 500 / 7), scalar(500, 1)))


CHANGES = {
    "replaced": (replace, range(5, 1005)),
    "replaced by the same": (lambda path, _: replace(path, path.read_bytes()), range(1000)),
    "touched": (lambda path, _: os.utime(path), range(1000)),
    "of the same length and time, but for the middle": (in_the_middle, range(1000)),
    "shorter": (lambda path, data: path.write_bytes(data), range(500)),
    "written anew and longer": (lambda path, data: path.write_bytes(data), range(5, 1500)),
    "of the same length": (lambda path, data: path.write_bytes(data), range(5, 1005)),
    "of the same length and time": (put_back_time, range(5, 1005)),
    "a file before it": (lambda path, data: path.with_name("a.tfevents").write_bytes(data), range(1000, 1500)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_is_read_again(place, change):
    path = curve(place, range(1000))
    steps(place, range(1000))
    do, wanted = CHANGES[change]
    do(path, b"".join(scalar(step, 3, wall=1e9 + step) for step in wanted))
    if change == "a file before it":
        wanted = range(1000)  # it is at a later step, and replaced from step 0 on
    before_listing = {"r": 1000} if change == "a file before it" else {}
    assert steps(place, wanted, saves=True) == before_listing
    assert steps(place, wanted) == {"r": len(wanted) + (500 if before_listing else 0)}


@pytest.mark.parametrize("count", [1000, 5000])  # in the file of small runs, and in one of its own
def test_a_damaged_saved_run_is_thrown_away(place, count):
    curve(place, range(count))
    steps(place, range(count))
    (name, (_, good)), = place.saved().items()
    assert name.endswith(".pack" if count == 1000 else ".run")
    for bad in (b"", good[:-1], good[:99] + bytes([good[99] ^ 1]) + good[100:], good[::-1]):
        (place.cache / name).write_bytes(bad)
        assert steps(place, range(count)) == {}
        assert place.saved()[name][1] != bad
    assert steps(place, range(count)) == {"r": count}


def test_many_small_runs_in_one_file(place):
    """Of them one grows, one is replaced, one gets a file before its own, one is moved, one goes, one comes, one leads out."""
    names = [f"r{i:02}" for i in range(40)]
    for name in names:
        curve(place, range(10), name)
    (place.directory / "outside").mkdir()

    def points(server):
        return {run: list(data.step) for (run, _), data in server.read("Scalars", "scalars").items()}

    wanted = {name: list(range(10)) for name in names}
    until = lambda server: points(server) == wanted  # noqa: E731
    assert place.ask(points, until=until)[0:2] == (wanted, {})
    assert [name[-5:] for name in place.saved()] == [".pack"]
    assert place.ask(points, until=until)[1] == dict.fromkeys(names, 10)
    with open(place.log / "r01" / NAME, "ab") as file:
        file.write(scalar(10, 1))
    replace(place.log / "r02" / NAME, b"".join(scalar(step, 1) for step in range(20, 24)))
    curve(place, range(3), "r03", "a.tfevents")
    (place.log / "r04").rename(place.log / "moved")
    shutil.rmtree(place.log / "r05")
    curve(place, range(2), "new")
    (place.log / "r06").rename(place.directory / "outside/r06")
    (place.log / "r06").symlink_to(place.directory / "outside/r06")
    wanted.update(r01=list(range(11)), r02=[20, 21, 22, 23], new=[0, 1], moved=list(range(10)))
    for name in ("r04", "r05", "r06"):
        del wanted[name]
    _, back, _ = place.ask(points, until=until, saves=True)
    assert back.keys() - {"r03", "r06"} == set(names) - {f"r{i:02}" for i in range(2, 7)}
    counts = {name: len(steps) for name, steps in wanted.items()}
    assert place.ask(points, until=until)[1] == {**counts, "r03": 13}  # it was read from two files


def test_servers_at_the_same_time(place):
    """They share the cache; whatever is killed, what is there is whole."""
    for i in range(30):
        curve(place, range(10), f"r{i}")
    arguments = (f"--cache={place.cache}", "--reload=0", "-v")
    for _ in range(3):
        servers = [DataServer(place.log, place.directory, *arguments) for _ in range(2)]
        for server in servers:
            server.until(lambda: len(server.runs()) == 30)
        servers[0].until(lambda: list(place.cache.glob("*.pack")))
        for server in servers:
            server.process.kill()
            server.process.wait()
        for i in range(30):
            with open(place.log / f"r{i}" / NAME, "ab") as file:
                file.write(b"".join(scalar(100 + step, 1) for step in range(10)))
    _, back, said = place.ask(lambda server: server.runs())
    assert len(back) == 30 and said == []


def test_a_directory_that_cannot_be_written_is_told_once(place):
    curve(place, range(10))
    curve(place, range(10), "s")
    with DataServer(place.log, place.directory, "--cache=/dev/null/x") as server:
        server.until(lambda: "runs cannot be saved" in server.output.read_text() or "/dev/null" in server.output.read_text())
        server.until_steps("s", "loss", range(10))
        curve(place, range(10), "t")
        server.until_steps("t", "loss", range(10))
        assert server.close() == 0
        assert server.output.read_text().count("/dev/null/x") == 1
