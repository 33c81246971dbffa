"""The tables of `checkpoint` for people: they fit the terminal, say what matters in it, and never blow up."""
import math

import pytest

from checkpoint_files import checkpoint, run, tensor, text, write_bundle, write_safetensors



def shown(*words, columns=None, locale="C.UTF-8", status=0):
    done = run(*words, columns=columns, LC_ALL=locale)
    assert done.returncode == status, done
    return done.stdout


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    top = tmp_path_factory.mktemp("tables")
    scope = "tower_0/unit_3_2/shared_activation/residual_only_activation"
    weights = {f"{scope}/conv{i}/{name}": tensor("F32", [0.5 * i, -1e-5, 300.25, 7.0], [2, 2, 1])
               for i in range(5) for name in ("weights", "weights/ExponentialMovingAverage")}
    write_bundle(top / "model.ckpt-7", {**weights, "evalboard/run_option": text("mpi"), "global_step": tensor("I64", 7, [])})
    write_bundle(top / "model.ckpt-800", {**weights, f"{scope}/bad": tensor("F32", [math.nan, 1.0, math.inf])})
    write_bundle(top / "a-very-long-name-for-the-checkpoints-of-a-model.ckpt-900", weights)
    (top / "a-very-long-name-for-the-checkpoints-of-a-model.ckpt-900.data-00000-of-00001").unlink()
    return top


@pytest.mark.parametrize("columns", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("words", ["inspect model.ckpt-800", "inspect --no-statistics model.ckpt-7", "inspect --all ."])
def test_no_line_is_wider_than_the_terminal(checkpoints, monkeypatch, words, columns):
    monkeypatch.chdir(checkpoints)
    lines = shown(*words.split(), columns=columns).splitlines()
    table = lines[:-1] if "--all" in words else lines[1:-1]
    assert len(table) >= 4
    if columns > 40:
        assert max(map(len, table)) <= columns
    if columns <= 80:
        assert any("…" in line for line in table)
    assert not any("…" in line for line in shown(*words.split(), columns=columns, locale="C").splitlines())


def test_what_is_left_out(checkpoints):
    """NaN is shown wherever there is one, and first to go where there is none."""
    narrow = shown("inspect", checkpoints / "model.ckpt-800", columns=80).splitlines()
    assert narrow[1].split()[-2:] == ["nan", "inf"]
    assert [line.split()[-2:] for line in narrow if "bad" in line] == [["1", "1"]]
    assert "nan" not in shown("inspect", checkpoints / "model.ckpt-7", columns=80).splitlines()[1]
    assert "size" in shown("inspect", checkpoints / "model.ckpt-7", columns=60).splitlines()[1]


def test_a_pipe_has_whole_names_and_all_columns(checkpoints):
    lines = shown("inspect", checkpoints / "model.ckpt-7").splitlines()
    assert lines[1].split() == ["tensor", "dtype", "shape", "size", "mean", "std", "min", "max", "nan", "inf"]
    row = next(line for line in lines if "conv4/weights " in line)
    assert row.split() == ["tower_0/unit_3_2/shared_activation/residual_only_activation/conv4/weights", "float32",
                           "[2,", "2,", "1]", "16", "B", "77.31", "128.7", "-1e-05", "300.2", "0", "0"]
    listed = shown("inspect", "--all", checkpoints).splitlines()
    assert listed[0].split() == ["checkpoint", "step", "size", "age", "state"]
    assert listed[1].split()[:4] == ["model.ckpt-7", "7", "855", "B"] and listed[1].endswith(" s  complete")
    assert listed[3].endswith(" s  a-very-long-name-for-the-checkpoints-of-a-model.ckpt-900.data-00000-of-00001: cannot open: "
                              "No such file or directory")


def test_one_endless_name(tmp_path):
    """Among 6,000 others it was 1.8 GB of blanks; it is cut in a pipe as well, and whole in JSON."""
    name = "n" * 300_000
    tensors = {f"t/{i}": tensor("F32", [1.0]) for i in range(6000)}
    path = write_safetensors(tmp_path / "long.safetensors", {**tensors, name: tensor("F32", [1.0])})
    out = shown("inspect", path)
    assert len(out) < 6100 * 300 and max(map(len, out.splitlines())) < 1300
    assert "n" * 499 + "…" + "n" * 499 in out or "n" * 499 + ".." + "n" * 499 in out
    assert max(map(len, shown("inspect", path, columns=80).splitlines()[1:-1])) <= 80
    assert name in checkpoint("inspect", "--json", path)
