"""Checkpoints as the trainers of other people write them: which files, in which order, in place or renamed. Small
imitations, each slow enough to be caught in the middle, with the options that docs/trainers.md has for it. Every checkpoint must be scored once,
whole, under its step. tests/peers/test_evaluator_trainers.py has the trainers themselves, where they are installed.

Orders were read in the sources: transformers trainer.py _save_checkpoint(), lightning cloud_io.py _atomic_save() with
fsspec's local transactions, torch.distributed.checkpoint filesystem.py finish(), orbax atomicity.py, stable_baselines3
save_util.py save_to_zip_file(), keras saving_lib.py.
"""
import json
import os
import pathlib
import signal
import time
import zipfile

import pytest

from evaluators import Exec, ledger, script, steps
from trainers_page import COMMANDS, options as options_for
from waiting import wait_for

PAUSE = 0.15  # between two writes of one checkpoint: the pace of the writer is what is tested


def content(size):
    """Random, but a pickle's first bytes: what begins with a brace is a JSON marker, and would have to be whole."""
    return b"\x80\x02" + os.urandom(size - 2)


def slowly(path, data, pieces=3):
    """In place, in pieces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb", buffering=0) as file:
        for i in range(pieces):
            file.write(data[i * len(data) // pieces:(i + 1) * len(data) // pieces])
            time.sleep(PAUSE)


def torch_save(ckpt, step):
    slowly(ckpt / f"model_{step}.pt", content(3000))


def keras_h5(ckpt, epoch):
    """HDF5: room first, data in any order, the head of the file last."""
    with open(ckpt / f"{epoch:02d}.weights.h5", "wb", buffering=0) as file:
        file.truncate(3000)
        time.sleep(PAUSE)
        file.seek(2000)
        file.write(content(1000))
        time.sleep(PAUSE)
        file.seek(0)
        file.write(content(2000))


def keras_zip(ckpt, epoch):
    with zipfile.ZipFile(ckpt / f"model.{epoch:02d}-0.{epoch}.keras", "w") as archive:
        for name in ("metadata.json", "config.json", "model.weights.h5"):
            archive.writestr(name, content(1000))
            archive.fp.flush()
            time.sleep(PAUSE)


def stable_baselines(ckpt, step):
    """A zip in place, and beside it a file of another kind with the same number."""
    (ckpt / f"rl_model_vecnormalize_{step}_steps.pkl").write_bytes(b"x")
    with zipfile.ZipFile(ckpt / f"rl_model_{step}_steps.zip", "w") as archive:
        for name in ("data", "policy.pth", "system_info.txt"):
            archive.writestr(name, content(1000))
            archive.fp.flush()
            time.sleep(PAUSE)


def lightning(ckpt, step):
    """Written where temporary files go, which is another file system here, and moved: the name appears first, the bytes
    are copied, and the times of the temporary file are set in the end."""
    data = content(3000)
    path = ckpt / f"epoch={step // 100}-step={step}.ckpt"
    before = time.time() - 3600
    slowly(path, data)
    os.utime(path, (before, before))


def hugging_face(ckpt, step):
    """A directory filled in place; trainer_state.json last but for what other ranks add."""
    directory = ckpt / f"checkpoint-{step}"
    for name in ("config.json", "model.safetensors", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth"):
        slowly(directory / name, content(400), 1)
    state = json.dumps({"global_step": step, "log_history": [{"loss": float("nan")}] * 5})
    with open(directory / "trainer_state.json", "w") as file:
        file.write(state[:30])
        file.flush()
        time.sleep(PAUSE)
        file.write(state[30:])
    slowly(directory / "rng_state_1.pth", content(600), 2)


def distributed(ckpt, step):
    """Shards of two ranks in place, .metadata by rename when all are there."""
    directory = ckpt / f"step-{step}"
    for rank in range(2):
        slowly(directory / f"__{rank}_0.distcp", content(1400))
    slowly(directory / ".metadata.tmp", content(200), 2)
    (directory / ".metadata.tmp").rename(directory / ".metadata")


def orbax(ckpt, step):
    """A directory under a temporary name, renamed when it is whole."""
    directory = ckpt / f"{step}.orbax-checkpoint-tmp-{step * 17}"
    slowly(directory / "_CHECKPOINT_METADATA", content(100), 1)
    slowly(directory / "default/d/0f1e", content(2800))
    slowly(directory / "default/_METADATA", content(100), 1)
    directory.rename(ckpt / str(step))


def orbax_commit(ckpt, step):
    """The same where a rename is not atomic: in place, commit_success.txt last."""
    directory = ckpt / str(step)
    slowly(directory / "default/d/0f1e", content(2900))
    slowly(directory / "default/_METADATA", content(100), 1)
    (directory / "commit_success.txt").write_text(f"Checkpoint commit was successful to {directory}")


def last_beside_it(ckpt, step):
    """Lightning's last.ckpt: a link to the newest, or written like it. The number is in what it leads to."""
    lightning(ckpt, step)
    link = ckpt / "tmp-link"
    link.symlink_to(f"epoch={step // 100}-step={step}.ckpt")
    link.rename(ckpt / "last.ckpt")


# heading in docs/trainers.md: (writer, what is given to it, steps)
LAYOUTS = {
    "PyTorch: torch.save": (torch_save, [100, 200], None),
    "Keras: .h5": (keras_h5, [1, 2], [391, 782]),
    "Keras: .keras": (keras_zip, [1, 2], [391, 782]),
    "Stable-Baselines": (stable_baselines, [1000, 2000], None),
    "Lightning": (lightning, [100, 200], None),
    "Lightning: last.ckpt": (last_beside_it, [100, 200], [1, 2]),
    "Hugging Face Trainer": (hugging_face, [500, 1000], None),
    "PyTorch: torch.distributed.checkpoint": (distributed, [500, 1000], None),
    "Orbax": (orbax, [0, 500], None),
    "Orbax, where a rename is not atomic": (orbax_commit, [0, 500], None),
}


def test_every_command_of_the_page_is_run():
    tests = pathlib.Path(__file__).read_text() + (pathlib.Path(__file__).parents[1] /
                                                  "peers/test_evaluator_trainers.py").read_text()
    assert len(COMMANDS) > 12
    assert [title for title in COMMANDS if f'"{title}"' not in tests] == []


# What is overwritten in place is followed only: of what was there before, only the last is left.
@pytest.mark.parametrize("layout, before", [
    pytest.param(layout, before, id=f"{layout}-{'back-fill' if before else 'followed'}")
    for layout in LAYOUTS for before in (False, True) if not (before and layout == "Lightning: last.ckpt")])
def test_layout(tmp_path, layout, before):
    """Written while the evaluator watches, and before it was started; each is scored once and whole, a restart scores
    nothing again."""
    writer, numbers, wanted = LAYOUTS[layout]
    options, ckpt = options_for(layout), tmp_path / "ckpt"
    ckpt.mkdir()
    if "--ready" not in options:  # the default waits for 5 seconds
        options += ["--ready", "quiet:1"]
    command = script(tmp_path, f"echo $2 >> '{tmp_path}/runs'\n"
                               'echo "bytes $(find -L "$1" -type f | xargs -d "\\n" cat | wc -c)"\n') + " {checkpoint} {step}"
    sizes = []

    def write():
        for number in numbers:
            writer(ckpt, number)
            newest = max((p for p in ckpt.iterdir() if "vecnormalize" not in p.name), key=lambda p: p.stat().st_ctime)
            files = [newest] if newest.is_file() else [p for p in newest.rglob("*") if p.is_file()]
            sizes.append(sum(p.stat().st_size for p in files))
            if layout == "Lightning: last.ckpt":  # what is overwritten before it is seen was never there
                wait_for(lambda: len(ledger(tmp_path)) == len(sizes), "its evaluation")

    if before:
        write()
    with Exec(tmp_path, command, "--poll-interval", 0.05, *options) as evaluator:
        evaluator.says("watching")
        if not before:
            write()
        wait_for(lambda: len(ledger(tmp_path)) >= len(numbers), "all outcomes")
        time.sleep(1.3)  # time for what must not happen
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    records = ledger(tmp_path)
    assert steps(records) == (wanted or numbers) and len(records) == len(numbers), evaluator.said()
    assert [r["metrics"]["bytes"] for r in records] == sizes
    assert (tmp_path / "runs").read_text().split() == [str(step) for step in wanted or numbers]
    with Exec(tmp_path, command, "--once", *options) as evaluator:
        evaluator.ends(0)
    assert ledger(tmp_path) == records


@pytest.mark.parametrize("layout", ["PyTorch: torch.save", "Lightning", "Hugging Face Trainer"])
def test_default_rule(tmp_path, layout):
    """With --pattern alone: nobody has to know how a trainer writes."""
    writer, numbers, _ = LAYOUTS[layout]
    (tmp_path / "ckpt").mkdir()
    command = script(tmp_path, 'echo "bytes $(find "$1" -type f | xargs cat | wc -c)"\n') + " {checkpoint}"
    with Exec(tmp_path, command, *options_for(layout)[:2]) as evaluator:
        evaluator.says("watching")
        writer(tmp_path / "ckpt", numbers[0])
        wait_for(lambda: ledger(tmp_path), "the outcome")
        time.sleep(1)  # time for what must not happen
        evaluator.process.send_signal(signal.SIGTERM)
        evaluator.ends(0)
    record, = ledger(tmp_path)
    whole = sum(p.stat().st_size for p in (tmp_path / "ckpt").rglob("*") if p.is_file())
    assert (record["step"], record["metrics"]["bytes"]) == (numbers[0], whole)
