"""SummaryWriter with an output: into memory, into what a function opens, with streams that fail, in forked children."""
import errno
import io
import os
import pathlib
import pickle

import pytest

import python_package  # noqa: F401

numpy = pytest.importorskip("numpy")

import evalboard  # noqa: E402


def save(memory, folder):
    """What a bucket would do with them."""
    for path, data in memory.items():
        place = pathlib.Path(folder) / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


def write_all(writer):
    """Values of several kinds and in runs below."""
    for step in range(3000):
        writer.add_scalar("loss", step / 2, step)
    writer.add_histogram("h", numpy.arange(100.0), 1)
    writer.add_text("note", "hello", 1)
    writer.add_scalars("group", {"a": 1.0, "b": 2.0}, 1)
    writer.add_hparams({"rate": 0.5}, {"accuracy": 1.0}, run_name="trial")
    writer.add_embedding(numpy.eye(3), ["x", "y", "z"])


def test_memory_is_the_files(tmp_path):
    """The bytes in memory are read as those of a directory are, by TensorBoard's own reader, too."""
    memory = evalboard.MemoryOutput()
    with evalboard.SummaryWriter("runs/mine", output=memory) as writer:
        write_all(writer)
    assert not os.path.exists("runs/mine") and all(path.startswith("runs/mine/") for path in memory)
    assert memory["runs/mine/projector_config.pbtxt"].startswith(b"embeddings {")
    save(memory, tmp_path)
    with evalboard.SummaryWriter(str(tmp_path / "files")) as writer:
        write_all(writer)
    ours, files = evalboard.read(tmp_path / "runs/mine"), evalboard.read(tmp_path / "files")
    assert ours.runs == files.runs and list(ours) == list(files) and len(ours) == 4
    for key in ours:
        assert numpy.array_equal(ours[key].values, files[key].values) and numpy.array_equal(ours[key].steps, files[key].steps)
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(tmp_path / "runs/mine"), {"scalars": 0, "histograms": 0, "tensors": 0}).Reload()
    assert [(e.step, e.value) for e in read.Scalars("loss")] == [(step, step / 2) for step in range(3000)]
    assert read.Histograms("h")[0].histogram_value.num == 100
    assert read.Tensors("note/text_summary")[0].tensor_proto.string_val == [b"hello"]


def test_taken_in_pieces(tmp_path):
    """What take() gives, one after the other, is the file; each piece ends with a whole record."""
    memory = evalboard.MemoryOutput()
    with evalboard.SummaryWriter("run", output=memory) as writer:
        file = tmp_path / "events.out.tfevents.1.a"
        for step in range(5):
            writer.add_scalar("loss", float(step), step)
            writer.flush()
            for data in memory.take().values():
                with open(file, "ab") as out:
                    out.write(data)
            assert evalboard.read(file)[".", "loss"].values.tolist() == list(range(step + 1))
        assert memory.take() == {}
    assert set(memory.values()) == {b""}


def test_opened_files_and_rotation(tmp_path):
    """A function like open(); with rotation each file is complete and closed before the next, and they are one curve."""
    opened = []

    def opener(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        opened.append(open(path, "wb"))
        return opened[-1]

    with evalboard.SummaryWriter(tmp_path / "run", output=opener, rotate_bytes=20000) as writer:
        for step in range(2000):
            writer.add_scalar("loss", step / 4, step)
        writer.flush()
        assert len(opened) > 3 and all(file.closed for file in opened[:-1]) and not opened[-1].closed
        assert len(evalboard.read(tmp_path)["run", "loss"]) == 2000  # a stream is flushed after each write
    assert opened[-1].closed
    assert evalboard.read(tmp_path)["run", "loss"].values.tolist() == [step / 4 for step in range(2000)]


def test_rotation_of_files(tmp_path):
    """Without an output, too."""
    with evalboard.SummaryWriter(tmp_path, rotate_bytes=20000) as writer:
        for step in range(2000):
            writer.add_scalar("loss", 0.0, step)
    assert len(list(tmp_path.iterdir())) > 3 and len(evalboard.read(tmp_path)["loss"]) == 2000


class Stubborn(io.RawIOBase):
    """Takes at most 1000 bytes a time, and refuses every third time."""

    def __init__(self, kept, path):
        super().__init__()
        self.kept, self.path, self.calls = kept, path, 0

    def write(self, data):
        self.calls += 1
        if self.calls % 3 == 0:
            raise OSError(errno.ENOSPC, "the bucket is full")
        if self.calls % 5 == 0:
            return None
        self.kept.setdefault(self.path, bytearray()).extend(data[:1000])
        return min(len(data), 1000)


def test_errors_come_through_and_are_tried_again(tmp_path):
    """The exception of the stream is the cause; what was taken is not written twice."""
    kept = {}
    writer = evalboard.SummaryWriter("run", output=lambda path: Stubborn(kept, path))
    for step in range(3000):
        writer.add_scalar("loss", float(step), step)
    for attempt in range(1000):
        try:
            writer.flush()
            break
        except evalboard.EventLogOSError as error:
            assert isinstance(error.__cause__, OSError) and error.errno == error.__cause__.errno
    else:
        pytest.fail("the stream never took everything")
    writer.close()
    assert attempt > 1
    save(kept, tmp_path)
    assert evalboard.read(tmp_path)["run", "loss"].values.tolist() == list(range(3000))
    assert evalboard.read(tmp_path).damaged == 0


def test_writers_one_after_the_other(tmp_path):
    """Within a second, in one process and directory: none replaces what another has written, and later ones sort later."""
    memory = evalboard.MemoryOutput()
    for value in range(5):
        with evalboard.SummaryWriter("run", output=memory, rotate_bytes=200) as writer:
            for step in range(10):
                writer.add_scalar("loss", float(value), 10 * value + step)
            writer.flush()
            assert writer.file_writer.file.path == list(memory)[-1]
    assert len(memory) > 10 and list(memory) == sorted(memory)
    save(memory, tmp_path)
    assert evalboard.read(tmp_path)["run", "loss"].steps.tolist() == list(range(50))


def test_what_cannot_be_opened():
    def refuse(path):
        raise PermissionError(errno.EACCES, "no key", path)

    with pytest.raises(evalboard.EventLogOSError, match="Permission denied") as caught:
        evalboard.SummaryWriter("run", output=refuse)
    assert isinstance(caught.value.__cause__, PermissionError) and caught.value.errno == errno.EACCES

    def interrupt(path):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evalboard.SummaryWriter("run", output=interrupt)


def test_a_forked_child_has_objects_of_its_own(tmp_path):
    """And writes nothing of the parent's again, at its end either."""
    def opener(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return open(path, "wb")

    with evalboard.SummaryWriter(tmp_path / "run", output=opener) as writer:
        for step in range(100):
            writer.add_scalar("loss", float(step), step)
        writer.flush()
        for step in range(100, 200):
            writer.add_scalar("loss", float(step), step)
        child = os.fork()
        if child == 0:
            writer.add_scalar("loss", 1e6, 200)
            writer.close()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    assert sorted(evalboard.read(tmp_path)["run", "loss"].values.tolist()) == [*range(200), 1e6]
    assert len(list((tmp_path / "run").iterdir())) == 2


def store(path):
    return open(path, "wb")


def test_pickled_with_its_output(tmp_path):
    """As for a process that is spawned: it writes to the same place, not into files."""
    (tmp_path / "run").mkdir()
    with evalboard.SummaryWriter(tmp_path / "run", output=store, rotate_seconds=60) as writer:
        with pickle.loads(pickle.dumps(writer)) as again:
            assert again._where == {"output": store, "rotate_bytes": 0, "rotate_seconds": 60}
    memory = pickle.loads(pickle.dumps(evalboard.MemoryOutput()))
    with evalboard.SummaryWriter("run", output=memory):
        pass
    assert len(memory) == 1
    from evalboard.tensorboardX import SummaryWriter
    with SummaryWriter("run", output=memory) as writer:
        writer.add_scalars("g", {"a": 1.0}, 1)
    assert len(memory) == 3


def test_urls(tmp_path, monkeypatch):
    """A log_dir that is a URL goes through fsspec, with runs below; without fsspec nothing is written anywhere."""
    fsspec = pytest.importorskip("fsspec")
    with evalboard.SummaryWriter("memory://bucket/run") as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_scalars("g", {"a": 1.0}, 1)
    store = fsspec.filesystem("memory")
    files = store.find("/bucket")
    assert len(files) == 2 and files[0].startswith("/bucket/run/events.out.tfevents.")
    save({path.lstrip("/"): store.cat(path) for path in files}, tmp_path)
    assert evalboard.read(tmp_path)["bucket/run", "loss"].values.tolist() == [0.5]
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(evalboard.EventLogOSError) as caught:
        evalboard.SummaryWriter("s3://bucket/run")
    assert "install fsspec" in str(caught.value.__cause__) and not (tmp_path / "s3:").exists()
