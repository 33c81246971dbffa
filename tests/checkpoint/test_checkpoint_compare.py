"""`checkpoint compare` without a framework: bookkeeping apart, norms, what is said of A and B."""
import math

import pytest

from checkpoint_files import as_json, checkpoint, tensor, text, write_bundle, write_safetensors


def training(step=7, run_option="mpi", weights=(1, 2, 3, 4), **more):
    return {"conv/weights": tensor("F32", weights, [2, 2]), "conv/weights/Momentum": tensor("F32", [0.5] * 4, [2, 2]),
            "evalboard/run_option": text(run_option), "evalboard/world_size": tensor("I64", len(run_option), []),
            "global_step": tensor("I64", step, []), **more}


def rows(out):
    return [" ".join(line.split()) for line in out.splitlines()]


@pytest.fixture
def pair(tmp_path):
    """Writes two checkpoints and gives their prefixes."""
    def write(a, b):
        return write_bundle(tmp_path / "a/model.ckpt-7", a), write_bundle(tmp_path / "b/model.ckpt-8", b)

    return write


def test_bookkeeping_never_decides(pair):
    a, b = pair(training(), training(8, "ps", **{"evalboard/seed": tensor("I64", 3, [])}))
    assert rows(checkpoint("compare", a, b)) == [
        f"A: {a} (step 7)", f"B: {b} (step 8)", "",
        "bookkeeping (does not count) A B", "evalboard/run_option mpi ps", "evalboard/seed - 3", "evalboard/world_size 3 2",
        "global_step 7 8", "",
        "equal: 2 tensors, 8 values, bit for bit"]
    report = as_json("compare", a, b)
    assert report["equal"] and report["bit_for_bit"] and report["a"] == {"path": str(a), "format": "bundle", "step": 7}
    assert [row["name"] for row in report["tensors"]] == ["conv/weights", "conv/weights/Momentum"]
    assert report["bookkeeping"] == [
        {"name": "evalboard/run_option", "result": "shape", "a": "mpi", "b": "ps"},
        {"name": "evalboard/seed", "result": "only_b", "b": "3"},
        {"name": "evalboard/world_size", "result": "different", "a": "3", "b": "2"},
        {"name": "global_step", "result": "different", "a": "7", "b": "8"}]
    assert report["total"]["tensors"] == 2 and report["roles"]["optimizer"]["equal"] == 1
    assert rows(checkpoint("compare", a, b, "--all"))[3:6] == [
        "tensor differs largest relative first at A B", "conv/weights no", "conv/weights/Momentum no"]


def test_bookkeeping_alone_decides(pair):
    """Asked for nothing else, 'equal' would be a wrong answer."""
    a, b = pair(training(), training(8, "ps"))
    out = checkpoint("compare", a, b, "--tensor", "evalboard/*", status=1)
    assert "bookkeeping  " in out and "does not count" not in out and "different: 2 of 2 tensors\n" in out
    assert not as_json("compare", a, b, "--tensor", "evalboard/*", status=1)["equal"]
    assert "equal: 1 tensor, 1 value, bit" in checkpoint("compare", a, a, "--tensor", "global_step")


def test_as_many_weights_as_bookkeeping(pair):
    a, b = pair({"w": tensor("F32", [1]), "global_step": tensor("I64", 1, [])},
                {"w": tensor("F32", [1]), "global_step": tensor("I64", 2, [])})
    assert "does not count" in checkpoint("compare", a, b)


def test_norms(pair):
    a, b = pair(training(), training(weights=(1, 2, 3.5, 4),
                                     **{"conv/weights/Momentum": tensor("F32", [0.5, 0.5, 0.5, 2.5], [2, 2])}))
    report = as_json("compare", a, b, status=1)
    total, momentum = report["total"], report["roles"]["optimizer"]
    assert math.isclose(total["norm"], math.hypot(0.5, 2)) and momentum["norm"] == 2
    larger = math.sqrt(1 + 4 + 3.5 ** 2 + 16 + 3 * 0.25 + 2.5 ** 2)
    assert math.isclose(total["relative_norm"], total["norm"] / larger)
    assert (total["different"], total["values"], total["different_values"]) == (2, 8, 2)
    assert report["tensors"][0]["first"] == {"index": 2, "a": "3.0", "b": "3.5"} and report["tensors"][0]["norm"] == 0.5
    lines = rows(checkpoint("compare", a, b, status=1))
    assert "conv/weights 1 of 4 0.5 0.143 [1, 0] 3.0 3.5" in lines
    assert lines[-6:] == ["different tensors different values norm of A-B relative", "weights 1 of 1 1 of 4 0.5 0.0867",
                          "optimizer 1 of 1 1 of 4 2 0.756", "all 2 of 2 2 of 8 2.062 0.325", "", "different: 2 of 2 tensors"]
    near = rows(checkpoint("compare", a, b, "--absolute", 0.5, "--tensor", "conv/weights"))
    assert "conv/weights 1 of 4 within 0.5 0.143 [1, 0] 3.0 3.5" in near
    assert near[-1] == "equal within tolerance: 1 tensor, 4 values (1 not identical)"


def test_no_norm_without_common_values(pair):
    a, b = pair({"a": tensor("F32", [1]), "x": tensor("F32", [1, 2])}, {"b": tensor("F32", [1]), "x": tensor("F64", [1, 2])})
    lines = rows(checkpoint("compare", a, b, status=1))
    assert lines[4:7] == ["a only in A float32 [1] -", "b only in B - float32 [1]", "x dtype float32 float64"]
    assert lines[-3:] == ["all 3 of 3 0 of 0 - -", "", "different: 3 of 3 tensors"]


def test_bit_for_bit_is_said_where_it_is_true(pair):
    a, b = pair({"w": tensor("F32", [0.0, math.nan, 1])}, {"w": tensor("F32", [-0.0, math.nan, 1])})
    assert rows(checkpoint("compare", a, b))[-1] == "equal: 1 tensor, 3 values (1 as other bits: 0 and -0, NaN)"
    report = as_json("compare", a, b)
    assert report["equal"] and not report["bit_for_bit"]
    a, b = pair({"w": tensor("F32", [math.nan, 1])}, {"w": tensor("F32", [0, 1])})
    report = as_json("compare", a, b, status=1)
    assert report["total"]["norm"] == "Infinity" and report["tensors"][0]["absolute"] == "Infinity"
    assert " inf " in checkpoint("compare", a, b, status=1)


def test_names_and_values_are_safe(pair):
    a, b = pair(training(run_option="a\x1b[31m"), training(**{"w\x1b[2J": tensor("F32", [1])}))
    out = checkpoint("compare", a, b, status=1)
    assert "\x1b" not in out and "a\\x1b[31m" in out and "w\\x1b[2J" in out


def test_formats_and_empty_ones(tmp_path):
    a = write_bundle(tmp_path / "model.ckpt-7", training())
    b = write_safetensors(tmp_path / "model-7.safetensors", training())
    assert as_json("compare", a, b)["b"] == {"path": str(b), "format": "safetensors", "step": 7}
    assert rows(checkpoint("compare", a, b))[-1] == "equal: 2 tensors, 8 values, bit for bit"
    empty = write_bundle(tmp_path / "empty-1", {})
    assert rows(checkpoint("compare", empty, empty))[-1] == "equal: no tensors"
    assert "nothing was compared" in checkpoint("compare", a, b, "--tensor", "nosuch", status=1)
