"""A small set of captions, made by the script, with the features that an untrained lenet gives; and a small decoder."""
import os
import pathlib
import subprocess
import sys

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
SCRIPT = pathlib.Path(__file__).resolve().parents[1] / "demo/make_captions.py"
IMAGES = {"train": 60, "val": 20}
MODEL = """\
classes 64
task next_word
labels 18
features 64
optimizer sgd
learning_rate 1
clip_norm 5
batch_size 16

image_features
image = dense image_embedding/weights outputs=24 initial=uniform(0.08)
words = embedding seq_embedding/map rows=64 width=24 initial=uniform(0.08) of=input
stack of=image with=words
dropout keep=0.7
lstm lstm/basic_lstm_cell units=24 initial=uniform(0.08) gives=later
dropout keep=0.7
dense logits/weights outputs=64 initial=uniform(0.08) each
bias logits/biases
cross_entropy
"""


def dataset(*arguments, status=0):
    """(what it prints, what it says on standard error)"""
    run = subprocess.run([BUILD / "bin/dataset", *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    return run.stdout, run.stderr


def make_captions(*arguments, status=0):
    """The same of the script that makes captions."""
    run = subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True)
    assert run.returncode == status, run.stderr
    return run.stdout, run.stderr


def make(directory, *options):
    """Captions in directory/made with features, and a decoder in directory/decoder.model."""
    made = directory / "made"
    make_captions(made, "--train", IMAGES["train"], "--val", IMAGES["val"], *options)
    dataset("vocabulary", made)
    subprocess.run([BUILD / "tests/programs/write_checkpoint", "--directory", directory / "lenet", "--model", "lenet",
                    "--first", "100", "--last", "100"], check=True, stdout=subprocess.DEVNULL)
    dataset("encode", made, "--model", "lenet", "--checkpoint", directory / "lenet/model.ckpt-100", "--tiles", 2)
    (directory / "decoder.model").write_text(MODEL)
    return made
