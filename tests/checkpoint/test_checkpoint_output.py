"""Where the data of `checkpoint` goes: -o FILE by its ending, - as standard output, --json."""
import json
import os
import subprocess

import pytest

from checkpoint_files import BUILD, checkpoint, run, tensor, write_bundle

COMMANDS = ["inspect A", "inspect --all D", "verify A", "verify D", "compare A B", "compare A A"]


@pytest.fixture(scope="module")
def words_of(tmp_path_factory):
    """The words of a command line, with A and B as two checkpoints of D."""
    top = tmp_path_factory.mktemp("output")
    a = write_bundle(top / "m-1", {"w": tensor("F32", [1, 2, 3]), "step": tensor("I64", 1, [])})
    b = write_bundle(top / "m-2", {"w": tensor("F32", [1, 2, 4]), "step": tensor("I64", 2, [])})
    return lambda line: [str({"A": a, "B": b, "D": top}.get(word, word)) for word in line.split()]


@pytest.mark.parametrize("line", COMMANDS)
def test_file_by_its_ending(words_of, tmp_path, line):
    words = words_of(line)
    status = run(*words).returncode
    assert status == (1 if line == "compare A B" else 0)
    for name, is_json in (("x.txt", False), ("x.TXT", False), ("plain", False), (".hidden", False), ("x.json", True),
                          ("y.JSON", True)):
        path = tmp_path / name
        assert checkpoint(*words, "-o", path, status=status) == ""
        content = path.read_text()
        assert content == checkpoint(*words, *(["--json"] if is_json else []), status=status) or "age" in content
        assert not is_json or json.loads(content)["version"] == 1
    assert checkpoint(*words, "-o", tmp_path / "none", "--json", status=status) == ""
    assert json.loads((tmp_path / "none").read_text())
    assert checkpoint(*words, "-o", "-", status=status).split() != []
    assert json.loads(checkpoint(*words, "-o", "-", "--json", status=status))
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["x.txt", "x.TXT", "plain", ".hidden", "x.json", "y.JSON",
                                                                 "none"])


@pytest.mark.parametrize("line", COMMANDS)
def test_refusals(words_of, tmp_path, line):
    words = words_of(line)
    told = checkpoint(*words, "-o", tmp_path / "x.csv", status=2)
    assert "unknown extension '.csv'; use .json or .txt" in told
    assert "but --json was given; omit one of them" in checkpoint(*words, "--json", "-o", tmp_path / "x.txt", status=2)
    (tmp_path / "there.json").write_text("mine")
    assert "there.json: already exists; use -f to overwrite it" in checkpoint(*words, "-o", tmp_path / "there.json", status=2)
    assert (tmp_path / "there.json").read_text() == "mine"
    assert "cannot create" in checkpoint(*words, "-o", tmp_path / "no/x.json", status=2)
    run(*words, "-f", "-o", tmp_path / "there.json")
    assert json.loads((tmp_path / "there.json").read_text())
    assert [p.name for p in tmp_path.iterdir()] == ["there.json"]


def test_no_file_of_a_command_that_failed(words_of, tmp_path):
    checkpoint(*words_of("compare A"), tmp_path / "none", "-o", tmp_path / "x.json", status=2)
    checkpoint(*words_of("inspect"), tmp_path / "none", "-o", tmp_path / "x.json", status=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("line", COMMANDS)
def test_output_that_cannot_be_written(words_of, line):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BUILD / "bin/checkpoint", *words_of(line)], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "standard output: cannot write: No space left" in done.stderr
    done = run(*words_of(line), "-o", "/dev/full")
    assert done.returncode == 2 and "/dev/full: cannot write: No space left" in done.stderr


def test_a_pipe_of_a_name(words_of, tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with subprocess.Popen(["cat", tmp_path / "pipe.json"], stdout=subprocess.PIPE, text=True) as reader:
        checkpoint(*words_of("inspect A"), "-o", tmp_path / "pipe.json")
        assert json.loads(reader.communicate()[0])["type"] == "inspect"


VERBS = {"Abbreviate", "Accept", "Check", "Compare", "Convert", "Group", "Inspect,", "List", "Overwrite", "Print", "Read", "Select", "Show", "Write"}


def described():
    """(command, its description), of the program and of each command."""
    top = json.loads(checkpoint("--describe"))
    return [([], top), *(([c["name"]], c["command"]) for c in top["commands"])]


@pytest.mark.parametrize("words, what", described(), ids=lambda x: " ".join(x) or "all" if isinstance(x, list) else "")
def test_help(words, what):
    """Sentences begin with a verb, lines fit, and the page is the same by all ways to ask for it."""
    sentences = [what["summary"], *(row["help"] for row in what["options"] + what["commands"])]
    for sentence in sentences:
        verb = sentence.split(", ")[1].capitalize() if sentence.startswith("With --") else sentence
        assert verb.split()[0] in VERBS, sentence
    for columns in (60, 80, 200):
        page = run(*words, "--help", columns=columns)
        assert page.returncode == 0 and page.stderr == "" and max(map(len, page.stdout.splitlines())) <= columns
        assert page.stdout == run("help", *words, columns=columns).stdout == run(*words, "-h", columns=columns).stdout
    name = " ".join(["checkpoint", *words])
    assert run(*words, "-V").stdout == run(*words, "--version").stdout and run(*words, "-V").stdout.startswith(f"{name} (evalboard) ")


@pytest.mark.parametrize("line, told", [
    ("inspct D", "unknown command 'inspct' (did you mean inspect?); 'checkpoint --help' lists them"),
    ("help compar", "unknown command 'compar' (did you mean compare?); 'checkpoint --help' lists them"),
    ("", "no command; 'checkpoint --help' lists them"),
    ("inspect D --tenser w", "unknown option --tenser (did you mean --tensor?); 'checkpoint inspect --help' lists them"),
    ("convert A D --to numpy", "--to: 'numpy' is not one of bundle|safetensors|npy (did you mean npy?)"),
    ("verify", "name one or more checkpoints; run 'checkpoint verify --help' for help"),
    ("compare A", "name two checkpoints; run 'checkpoint compare --help' for help")])
def test_usage_errors(words_of, line, told):
    words = words_of(line)
    command = f" {words[0]}" if words and words[0] in ("inspect", "verify", "compare", "convert") else ""
    assert checkpoint(*words, status=2) == f"checkpoint{command}: {told}\n"
