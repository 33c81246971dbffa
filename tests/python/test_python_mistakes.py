"""What a user reads who hands in the wrong thing: what is expected, and what was got."""
import errno

import pytest

import python_package  # noqa: F401

numpy = pytest.importorskip("numpy")

import evalboard  # noqa: E402

ones = numpy.ones


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda w: w.add_scalar("x", 1.0, "a"), ValueError, "global_step is an integer, not 'a'"),
    (lambda w: w.add_scalar("x", 1.0, [1]), TypeError, "global_step is an integer, not [1]"),
    (lambda w: w.add_scalar("x", 1.0, 1 << 70), OverflowError, "which 64 bits do not hold"),
    (lambda w: w.add_scalar("x", 1.0, 1, "a"), ValueError, "walltime is a number of seconds since 1970, not 'a'"),
    (lambda w: w.add_text("x", 3), TypeError, "text_string is a str, not a int"),
    (lambda w: w.add_scalars("x", [1, 2]), TypeError, "tag_scalar_dict is a dict of numbers by tag, not a list"),
    (lambda w: w.add_image("x", ones((3, 4, 4)), dataformats="XYZ"), AssertionError, "the dimensions 'XYZ' are not those of"),
    (lambda w: w.add_mesh("x", ones(3)), ValueError, "vertices has shape (3,); (batch, number, 3) is expected"),
    (lambda w: w.add_mesh("x", ones((1, 4, 3)), faces=ones((2, 3))), ValueError, "faces has shape (2, 3)"),
    (lambda w: w.add_pr_curve("x", ones(3), ones(4)), ValueError, "labels has shape (3,), predictions (4,)"),
])
def test_writer(tmp_path, call, kind, sentence):
    with evalboard.SummaryWriter(tmp_path) as writer:
        with pytest.raises(kind) as raised:
            call(writer)
        assert sentence in str(raised.value)
        writer.add_scalar("x", numpy.float32(1), numpy.int64(7), numpy.float64(9))  # goes on
    series = evalboard.read(tmp_path)[".", "x"]
    assert (series.steps.tolist(), series.values.tolist(), series.wall_times.tolist()) == ([7], [1], [9])


def test_figure(tmp_path):
    with evalboard.SummaryWriter(tmp_path) as writer, pytest.raises(TypeError, match="got a int; a figure of matplotlib"):
        writer.add_figure("x", 3)


@pytest.mark.parametrize("call, kind, sentence", [
    (lambda d: evalboard.SummaryWriter(d, flush_secs="a"), TypeError, "flush_secs is a number of seconds, not 'a'"),
    (lambda d: evalboard.read(d, tags=3), TypeError, "runs and tags are a pattern or a list of patterns, of str; got 3"),
    (lambda d: evalboard.read(d, runs=["a", 3]), TypeError, "of str; got 3"),
    (lambda d: evalboard.read(d, steps=3), TypeError, "steps is a pair, (first, last), of which either may be None; got 3"),
    (lambda d: evalboard.downsample([1, 2], "a"), TypeError, "'str' object cannot be interpreted as an integer"),
    (lambda d: evalboard.checkpoint.load_variable(d / "w.safetensors", "b"), KeyError, "w.safetensors has no tensor 'b'"),
])
def test_others(tmp_path, call, kind, sentence):
    evalboard.checkpoint.save(tmp_path / "w.safetensors", {"a": 1.0})
    with pytest.raises(kind) as raised:
        call(tmp_path)
    assert sentence in str(raised.value)


def test_missing_checkpoint(tmp_path):
    with pytest.raises(evalboard.EventLogOSError, match="none.safetensors: cannot be opened: No such file") as raised:
        evalboard.checkpoint.load(tmp_path / "none.safetensors")
    assert raised.value.errno == errno.ENOENT
