"""The same weights as TensorFlow's checkpoints and as safetensors files, in the evaluator."""
import signal
import struct

import pytest

from evaluators import Evaluator, ledger, points, write


def test_safetensors(tmp_path):
    """The same weights in both formats give the same numbers; not whole yet: waited for; the parts are passed over."""
    safetensors = pytest.importorskip("safetensors.numpy")
    tensorflow = pytest.importorskip("tensorflow")
    write(tmp_path, "--last", 300)
    with Evaluator(tmp_path, "--once") as evaluator:
        evaluator.ends(0)
    (tmp_path / "safe").mkdir()
    for step, dots, metadata in ((100, "/", None), (200, ".", None), (300, ".", {"global_step": "1300"})):
        reader = tensorflow.train.load_checkpoint(str(tmp_path / "ckpt" / f"model.ckpt-{step}"))
        tensors = {name.replace("/", dots): reader.get_tensor(name) for name in reader.get_variable_to_shape_map()
                   if not name.startswith(("global_step", "evalboard", "_"))
                   and reader.get_variable_to_dtype_map()[name] == tensorflow.float32}
        safetensors.save_file(tensors, str(tmp_path / "safe" / f"model-{step}.safetensors"), metadata)
    whole = (tmp_path / "safe" / "model-300.safetensors").read_bytes()
    (tmp_path / "safe" / "model-300.safetensors").write_bytes(whole[:-5])
    (tmp_path / "safe" / "model-00001-of-00002.safetensors").write_bytes(b"")
    (tmp_path / "safe" / "model.safetensors").write_bytes(b"")
    (tmp_path / "safe" / "model-250.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}")
    with Evaluator(tmp_path, "--quiet-time", 1, checkpoints="safe", evaluation="other") as evaluator:
        evaluator.says("step: 200,")
        (tmp_path / "safe" / "model-300.safetensors").write_bytes(whole)
        evaluator.says("step: 1300, model-300.safetensors")
        evaluator.says("model-250.safetensors: failed")
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(1)
    records = [r for r in ledger(tmp_path, "other") if r["status"] == "done"]
    assert [r["step"] for r in records] == [100, 200, 1300]
    assert [r["metrics"] for r in records] == [r["metrics"] for r in ledger(tmp_path)]
    assert len(points(tmp_path / "other")["loss"]) == 3
