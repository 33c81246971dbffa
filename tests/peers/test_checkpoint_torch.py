"""What `checkpoint` says of files that PyTorch writes."""
import pytest

from checkpoint_files import checkpoint


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_real_torch_files(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"w": torch.zeros(3)}, tmp_path / "new.pt")
    torch.save({"w": torch.zeros(3)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "script.pt")
    for name, what in (("new.pt", "a PyTorch file"), ("old.pt", "a Python pickle"), ("script.pt", "a PyTorch file")):
        assert f"{name}: not a checkpoint, but {what}" in checkpoint("inspect", tmp_path / name, status=2)
