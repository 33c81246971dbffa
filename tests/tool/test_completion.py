"""Values that completions offer: choices, and what is in the files on the line (tags, runs, tensors)."""
import json
import shutil
import subprocess

import pytest

from checkpoint_files import BUILD, tensor, write_bundle
from shell_completion import Bash


@pytest.fixture(scope="module")
def place(documents, tmp_path_factory):
    """A directory with a log `logs` and the same as `lo g`, and checkpoints in `ckpt`."""
    top = tmp_path_factory.mktemp("completion")
    points = [{"run": run, "tag": tag, "step": 1, "value": 0.5} for run in ("mpi/train", "ps/train")
              for tag in ("loss", "train:acc", "train:loss", "precision @ 1", "$(touch pwned)", 'a "quote"')]
    subprocess.run([BUILD / "bin/eventlog", "write", "--dir", top / "logs", "-"], check=True, text=True, capture_output=True,
                   input="".join(json.dumps(point) + "\n" for point in points))
    shutil.copytree(top / "logs", top / "lo g")
    for step in (5, 7):
        write_bundle(top / f"ckpt/m-{step}", {f"conv{step}/w": tensor("F32", [1]), "global_step": tensor("I64", step, [])})
    (top / "broken").mkdir()
    (top / "broken/events.out.tfevents.1.host").write_bytes(b"\xff" * 100)
    return top


@pytest.fixture(scope="module")
def bash(place, tmp_path_factory):
    with Bash(place, tmp_path_factory.mktemp("bash")) as shell:
        yield shell


TAGS = {"loss", "train:acc", "train:loss", "precision @ 1", "$(touch pwned)"}
RUNS = {"mpi/train", "ps/train"}


@pytest.mark.parametrize("line, wanted", [
    ("eventlog plot logs --tag ", TAGS), ("eventlog plot logs --tag=", TAGS), ("eventlog plot logs --tag l", {"loss"}),
    ("eventlog plot logs --tag=l", {"loss"}), ("eventlog plot --json logs --tag tr", {"train:acc", "train:loss"}),
    ("eventlog plot logs --tag train:", {"train:acc", "train:loss"}), ("eventlog plot logs --tag=train:a", {"train:acc"}),
    ("eventlog plot logs --tag loss --tag p", {"precision @ 1"}), ("eventlog stats ./logs logs --tag prec", {"precision @ 1"}),
    ("eventlog export lo\\ g --tag l", {"loss"}), ("eventlog export 'lo g' --tag l", {"loss"}),
    ("eventlog hparams logs --metric l", {"loss"}), ("eventlog compare logs --higher l", {"loss"}),
    ("eventlog tail logs --run ", RUNS), ("eventlog tail logs --run=p", {"ps/train"}), ("eventlog merge -o logs --run ", set()),
    ("eventlog plot logs --tag nosuch", set()), ("eventlog plot --tag ", set()), ("eventlog plot nothing --tag ", set()),
    ("eventlog plot broken --tag ", set()), ("eventlog plot broken logs --tag l", {"loss"}),
    ("checkpoint inspect ckpt --tensor ", {"conv7/w", "global_step"}), ("checkpoint compare ckpt/m-5 ckpt --tensor c", {"conv5/w"}),
    ("checkpoint convert ckpt/m-5.index out --tensor=g", {"global_step"}), ("checkpoint verify logs --tensor ", set()),
    ("trainer --model ", {"lenet", "cifar10_cnn", "resnet32", "next_word", "mnist_cnn", "mnist_lstm", "mnist_lstm_128", "language_model",
        "resnet50", "resnet50b", "resnet50_torchvision", "show_and_tell", "inception_v3"}), ("trainer --model=r", {"resnet32", "resnet50", "resnet50b", "resnet50_torchvision"}),
    ("trainer --data f", {"fashion-mnist", "folder"}),
    ("trainer --run-option ", {"single", "mirrored", "mpi", "ring", "ps", "hybrid"}),
    ("trainer plan --strategies mpi,ri", {"mpi,ring"}), ("trainer plan --format ", {"text", "csv", "json"}),
    ("trainer describe --format ", {"table", "model"}),
    ("trainer compare --evaluate b", {"beside"}),
    ("evaluator --model l", {"lenet", "language_model"}), ("evaluator --data ", {"mnist", "fashion-mnist", "cifar10", "text", "folder", "tfrecord", "idx", "csv", "records", "cifar100", "cifar100-coarse", "captions", "synthetic"}),
    ("evaluator --metrics classes,c", {"classes,captions", "classes,classes", "classes,confusion", "classes,curves"}),
    ("evaluator --metrics=to", {"top5"}), ("eventlog plot lo", {"logs", "lo g"}),
])
def test_bash_offers(bash, place, line, wanted):
    assert bash.offers(line) == wanted
    assert bash.shown.count("\n") == 1, "something was said"
    assert not (place / "pwned").exists()


def test_bash_completes(bash):
    """TAB alone, with quotes, before and behind the cursor."""
    assert bash.completes("eventlog plot logs --tag pr") == ["eventlog", "plot", "logs", "--tag", "precision @ 1"]
    assert bash.completes("eventlog plot logs --tag 'pr") == ["eventlog", "plot", "logs", "--tag", "precision @ 1"]
    assert bash.completes('eventlog plot logs --tag "train:a') == ["eventlog", "plot", "logs", "--tag", "train:acc"]
    assert bash.completes("eventlog plot logs --tag $") == ["eventlog", "plot", "logs", "--tag", "$(touch pwned)"]
    assert bash.completes("eventlog plot --tag los logs\x1bb\x02") == ["eventlog", "plot", "--tag", "loss", "logs"]
    assert bash.completes("eventlog plot logs --tag precision\\ ") == ["eventlog", "plot", "logs", "--tag", "precision @ 1"]
    assert bash.completes("eventlog plot lo\\ ") == ["eventlog", "plot", "lo g/"]


def test_a_program_that_does_not_end(place, tmp_path):
    """What it said in two seconds is offered."""
    (tmp_path / "eventlog").write_text("#!/bin/sh\necho '{\"run\":\"r\",\"tag\":\"early\"}'\nexec sleep 1000000\n")
    (tmp_path / "eventlog").chmod(0o755)
    with Bash(place, tmp_path) as shell:
        shell.completes("PATH=$HOME:$PATH; :")
        assert shell.offers(f"{tmp_path}/eventlog plot logs --tag ") == {"early"} and shell.shown.count("\n") == 1


def test_fish_offers(place):
    for line, wanted in (("eventlog plot logs --tag ", TAGS), ("eventlog tail logs --run=p", {"--run=ps/train"}),
                         ("eventlog plot nothing --tag ", set()), ("checkpoint inspect ckpt --tensor c", {"conv7/w"}),
                         ("trainer --model r", {"resnet32", "resnet50", "resnet50b", "resnet50_torchvision"})):
        source = f"source {BUILD}/completion/fish/{line.split()[0]}.fish; set PATH {BUILD}/bin $PATH; complete -C '{line}'"
        done = subprocess.run(["fish", "-N", "-c", source], cwd=place, capture_output=True, text=True)
        assert done.stderr == "" and {row.split("\t")[0] for row in done.stdout.splitlines()} == wanted
