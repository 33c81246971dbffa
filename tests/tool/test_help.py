"""What --help of the programs that watch and train says: in the imperative, within the terminal, and true."""
import json
import os
import pathlib
import subprocess

import pytest

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
COMMANDS = (("evaluator",), ("evaluator", "status"), ("evaluator", "replay"), ("trainer",), ("trainer", "status"),
            ("trainer", "compare"), ("trainer", "plan"), ("trainer", "models"), ("trainer", "describe"),
            ("eventlog-server",), ("dataset",), ("dataset", "vocabulary"), ("dataset", "encode"))


def output(*command, columns=80):
    run = subprocess.run(["env", f"COLUMNS={columns}", BUILD / "bin" / command[0], *command[1:]], check=True,
                         capture_output=True, text=True)
    return run.stdout


def described(*command):
    return json.loads(output(*command, "--describe"))


@pytest.mark.parametrize("columns", [60, 80, 200])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_fits(command, columns):
    lines = output(*command, "--help", columns=columns).splitlines()
    assert len(lines) > 10 and max(map(len, lines)) <= columns


@pytest.mark.parametrize("program", ["checkpoint", "dataset", "evaluator", "eventlog", "trainer"])
def test_help_as_a_command(program):
    assert output(program, "help") == output(program, "--help")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_is_sentences(command):
    o = described(*command)
    texts = {x["name"]: x["help"] for x in o["options"] if x["kind"] != "heading"} | {"summary": o["summary"]}
    texts |= {c["name"]: c["help"] for c in o["commands"]}
    for name, text in texts.items():
        assert text[0].isupper(), f"{name}: {text}"
        assert text.endswith(".") == (name not in {c["name"] for c in o["commands"]}), f"{name}: {text}"
        assert ("Required" in text) == (command in (("trainer",), ("trainer", "compare")) and name in ("model", "data")), name


def test_options_that_end_the_evaluator_stand_in_their_order():
    """ending.c checks them in this order, as test_ending.c sees."""
    names, found = [], False
    for option in described("evaluator")["options"]:
        if option["kind"] == "heading":
            found = option["help"].startswith("When to end, in the order in which it is checked")
        elif found:
            names.append(option["name"])
    assert names == ["max-evaluations", "once", "until-step", "done-file", "pid", "idle-timeout", "forever",
                     "wait-for-restart", "strict"]


def test_model_and_data_of_a_training(tmp_path):
    """Without --model or --data the evaluator uses those that the trainer wrote down, where there are such, and says so."""
    command = [BUILD / "bin/evaluator", "--checkpoint-dir", tmp_path, "--eval-dir", tmp_path / "eval", "--once"]
    for model, data, more, status, said in (
            ("lenet", "synthetic", [], 0, "using --model lenet --data synthetic, as"),
            ("lenet", "synthetic", ["--model", "lenet"], 0, "using --data synthetic, as"),
            ("resnet32", "synthetic", ["--model", "lenet", "--data", "synthetic"], 0, "watching"),
            ("lenet", "mnist|cifar10", [], 2, "--data is missing; use one of"),
            ("lenet|cifar10_cnn", "synthetic", [], 2, "--model is missing; use one of"),
            ("len", "synthetic", [], 2, "--model is missing"), ("", "", [], 2, "--model is missing")):
        state = {"state": "finished", "host": "h", "pid": 1, "global_step": 1, "model": model, "data": data}
        (tmp_path / "training.json").write_text(json.dumps(state))
        run = subprocess.run([*command, *more], capture_output=True, text=True)
        assert run.returncode == status and run.stderr.startswith(f"evaluator: {said}"), run.stderr


def test_data_options_of_a_training(tmp_path):
    """With its data the evaluator takes where they are and how they are read, but what is given."""
    data = tmp_path / "it's data"
    data.mkdir()
    (data / "test.csv").write_text("a;1\n")
    options = "--test-files 'te st.csv' --csv-format label=1,separator=semicolon --classes 3 --of-later-versions 1"
    state = {"state": "finished", "host": "h", "pid": 1, "global_step": 1, "model": "lenet", "data": "csv",
             "data_dir": str(data), "data_options": options}
    (tmp_path / "training.json").write_text(json.dumps(state))
    command = [BUILD / "bin/evaluator", "--checkpoint-dir", tmp_path, "--eval-dir", tmp_path / "eval", "--once"]
    reading = "--csv-format label=1,separator=semicolon"
    for more, said in (([], f"--model lenet --data csv --data-dir {data} --test-files te st.csv {reading} --classes 3"),
                       (["--classes", "4", "--test-files", "test.csv", "--data-dir", data], f"--model lenet --data csv {reading}"),
                       (["--data", "csv"], "--model lenet")):
        run = subprocess.run([*command, *more], capture_output=True, text=True)
        assert run.stderr.startswith(f"evaluator: using {said}, as {tmp_path}/training.json says\n"), run.stderr


def test_a_missing_directory_is_named_before_a_missing_model(tmp_path):
    for more in ([], ["--once"], ["--model", "lenet"]):
        run = subprocess.run([BUILD / "bin/evaluator", "--checkpoint-dir", tmp_path / "non", "--eval-dir", tmp_path / "eval", *more],
                             capture_output=True, text=True)
        assert run.returncode == 2 and run.stderr.startswith(f"evaluator: {tmp_path}/non: ") and run.stderr.count("\n") == 1


def test_one_directory_or_several_a_model_or_a_command(tmp_path):
    (tmp_path / "a").mkdir()
    ways = [["--checkpoint-dir", tmp_path / "a", "--eval-dir", tmp_path / "eval"],
            ["--watch", f"a={tmp_path}/a", "--eval-root", tmp_path / "root"]]
    for way in ways:
        subprocess.run([BUILD / "bin/evaluator", *way, "--exec", "true", "--once"], check=True, capture_output=True)
        run = subprocess.run([BUILD / "bin/evaluator", *way, "--once"], capture_output=True, text=True)
        assert run.returncode == 2 and run.stderr == ("evaluator: --model is missing; use one of "
                                                      "lenet|cifar10_cnn|resnet32|next_word|mnist_cnn|mnist_lstm|mnist_lstm_128|language_model|resnet50|resnet50b|resnet50_torchvision|show_and_tell|inception_v3, or a model file, or --exec\n")
