"""Man pages and completions: what make install puts in place says all that there is to say, and its readers take it."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest

from shell_completion import Bash

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
PROGRAMS = ("trainer", "evaluator", "eventlog-server", "eventlog", "checkpoint", "dataset")
HEADERS = (BUILD / "product/eventlog.h", ROOT / "eventlog_mpi/eventlog_mpi.h")


def program_of(name):
    """The program, and the command or "", of a name as in a man page."""
    return (name, "") if name in PROGRAMS else tuple(name.split("-", 1))


@pytest.fixture(scope="module")
def described(documents):
    """{name as in a man page: the description of a program or command}."""
    found = {}
    for program in PROGRAMS:
        o = json.loads(subprocess.run([BUILD / "bin" / program, "--describe"], check=True, capture_output=True).stdout)
        found[program] = o
        found.update({f"{program}-{c['name']}": c["command"] for c in o["commands"]})
    return found


def text_of(*pages, width=200):
    # Ragged: groff 1.23 warns of lines that it cannot stretch to the margin.
    run = subprocess.run(["groff", "-ww", "-man", "-dAD=l", "-Tutf8", "-P-cbou", f"-rLL={width}n", *pages], cwd=BUILD / "man",
                         capture_output=True, text=True)
    assert run.returncode == 0 and not run.stderr, f"{pages}: {run.stderr}"
    return re.sub(r"\x1b\[[0-9;]*m", "", run.stdout)


def squeezed(text):
    return "".join(text.split())


def test_pages_are_without_warnings(documents):
    pages = sorted(p.relative_to(BUILD / "man") for p in (BUILD / "man").rglob("*.[137]"))
    assert len(pages) > 40
    for width in (60, 80):
        text = text_of(*pages, width=width)
        assert text.count("\nNAME\n") >= len(pages)
    assert [line for line in text.split("\n") if len(line) > 80 and line.strip("─")] == []  # groff 1.23 rules pages off


def test_pages_for_mandoc(documents):
    """The man of Alpine, the BSDs and macOS, which reads the source more closely than groff."""
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed")
    pages = sorted((BUILD / "man").rglob("*.[13]"))
    run = subprocess.run(["mandoc", "-T", "lint", *pages], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_every_option_is_in_its_page(described):
    assert {f"{name}.1" for name in described} == {p.name for p in (BUILD / "man/man1").iterdir()}
    for name, o in described.items():
        text = text_of(f"man1/{name}.1")
        assert re.search(rf"^NAME\n\s+{name} - [a-z]", text, re.M), name
        for title in ("SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "SEE ALSO"):
            assert re.search(rf"^{title}$", text, re.M), f"{name}: no {title}"
        for option in o["options"]:
            if option["kind"] == "heading":
                continue
            value = "|".join(option["choices"]) or option["argument"] or ""
            value = f"[{value}]" if option["kind"] == "count" else value
            letter = f"-{option['letter']}, " if option["letter"] else ""
            assert f"{letter}--{option['name']}{' ' + value if value else ''}" in text, f"{name}: {option['name']}"
            assert squeezed(option["help"].replace("`", "").replace("*", "")) in squeezed(text.replace("*", "")), \
                f"{name}: {option['name']}"
        for command in o["commands"]:
            assert f"{o['program']} {command['name']}" in text
        assert "--version" in text and "--help" in text


def test_every_function_has_a_page(documents):
    texts = {}

    def page(function):
        """Its text; pages that stand for several functions are read once."""
        name = (BUILD / f"man/man3/{function}.3").resolve().stem
        if name not in texts:
            texts[name] = text_of(f"man3/{name}.3")
        return texts[name]

    for header in HEADERS:
        code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        functions = set(re.findall(r"\b(eventlog_\w+)\s*\((?!\*)", code))
        overview = text_of(f"man3/lib{header.stem}.3")
        assert functions
        for function in functions:
            text = page(function)
            assert re.search(rf"^NAME\n(?:.*\n)*?.*\b{function}\b.* - \w", text, re.M), function
            declared = re.search(rf"[^;{{}}]*\b{function}\s*\([^;]*\);", code).group(0).strip()
            assert squeezed(declared) in squeezed(text), function
            assert f"{function}(3)" in overview, function
            named = re.findall(r"eventlog_\w+", re.search(r"^NAME\n(.*?)^SYNOPSIS$", text, re.M | re.S).group(1))
            example = re.search(r"^EXAMPLE\n(.*?)^SEE ALSO$", text, re.M | re.S).group(1)
            assert any(f"{name}(" in example for name in named), function
            returns_code = re.search(rf"^\s*int\s+{function}\(", declared) and "struct eventlog_error *" in declared
            assert bool(re.search(r"^ERRORS\n.*EVENTLOG_ERROR_\w+ \(-\d\): ", text, re.M)) >= bool(returns_code), function
        for name, value in re.findall(r"(EVENTLOG_ERROR_\w+) = (-\d)", code):
            assert f"{name} ({value}): " in overview
        # Each comment before a function is in the page of that function.
        for comment, function in re.findall(r"/\*((?:(?!\*/).)*)\*/\n[a-z][^;{}]*?\b(eventlog_\w+)\s*\((?!\*)",
                                            header.read_text(), flags=re.S):
            words = squeezed(re.sub(r"^ \* ?", "", comment, flags=re.M).replace("`", ""))
            assert words[:200] in squeezed(page(function)), function


def test_examples_of_the_pages(documents, tmp_path):
    """They compile without a warning and do what they say: a sound log, and the same read back."""
    (tmp_path / "eventlog").mkdir()
    for header in HEADERS:
        (tmp_path / "eventlog" / header.name).symlink_to(header)
    compiler = ["cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{tmp_path}"]
    libraries = [f"-L{BUILD}/product", f"-Wl,-rpath,{BUILD}/product", "-leventlog", "-lm"]
    program, log = tmp_path / "examples", tmp_path / "log"
    subprocess.run([*compiler, "-o", program, ROOT / "docs/man/examples.c", *libraries], check=True)
    run = subprocess.run([program, log, tmp_path / "picture.png"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "last loss 0.333333" in run.stdout and "3 losses" in run.stdout and "4 values" in run.stdout
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
    found = subprocess.run([BUILD / "bin/eventlog", "verify", "--strict", log], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout
    mpi = subprocess.run(["pkg-config", "--cflags", "--libs", "ompi-c"], capture_output=True, text=True)
    if mpi.returncode or not (BUILD / "product/libeventlog_mpi.so").exists():
        pytest.skip("the examples of libeventlog are good; Open MPI is not installed")
    compiler[compiler.index("-Wpedantic")] = "-Wno-unused" # Open MPI's header is not pedantic
    subprocess.run([*compiler, "-o", program, ROOT / "docs/man/examples_mpi.c", *libraries, "-leventlog_mpi",
                    *mpi.stdout.split()], check=True)
    run = subprocess.run(["mpirun", "--oversubscribe", "-n", "2", program, tmp_path / "mpi"], capture_output=True, text=True,
                         env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert run.returncode == 0, run.stderr
    tags = subprocess.run([BUILD / "bin/eventlog", "tags", tmp_path / "mpi"], capture_output=True, text=True).stdout
    assert all(tag in tags for tag in ("loss", "seconds/slowest rank", "images", "notes"))


def test_limits_are_told(documents):
    for page in ("man1/eventlog.1", "man3/libeventlog.3"):
        text = squeezed(text_of(page))
        for words in ("32-bit floats", "double, half or integer type", "does not reload by itself", "is sampled"):
            assert squeezed(words) in text, f"{page}: {words}"


def test_every_finding_is_in_the_page_of_verify(documents):
    run = subprocess.run([BUILD / "bin/eventlog", "verify", "--kinds", "--json"], check=True, capture_output=True)
    kinds, text = json.loads(run.stdout)["kinds"], squeezed(text_of("man1/eventlog-verify.1"))
    assert len(kinds) > 30
    for row in kinds:
        for words in (f"{row['kind']} ({row['level']}): {row['what']}.", row["default_loader"], row["python_loader"]):
            assert squeezed(words) in text, row["kind"]
    lines = subprocess.run([BUILD / "bin/eventlog", "verify", "--kinds"], check=True, capture_output=True, text=True).stdout
    assert [line.split(", ")[1].split(":")[0] for line in lines.splitlines()] == [row["kind"] for row in kinds]
    for words in (["--kinds", "/"], []):
        assert subprocess.run([BUILD / "bin/eventlog", "verify", *words], capture_output=True).returncode == 2


def keys(value):
    """All keys of objects in a JSON value."""
    if isinstance(value, dict):
        return set(value) | set().union(*map(keys, value.values()))
    return set().union(*map(keys, value)) if isinstance(value, list) and value else set()


def test_keys_of_trainer_status_are_in_its_page(documents, tmp_path):
    (tmp_path / "training.json").write_text(json.dumps({
        "state": "stopped", "reason": "?", "signal": "SIGINT", "host": "h", "pid": 7, "model": "lenet", "data": "mnist",
        "optimizer": "sgd", "run_option": "mpi"}))
    run = subprocess.run([BUILD / "bin/trainer", "status", "--json", tmp_path], check=True, capture_output=True)
    text = text_of("man1/trainer-status.1")
    assert not {key for key in keys(json.loads(run.stdout)) - {"type", "version"} if not re.search(rf"\b{key}\b", text)}


VERBS = set("""Accept Add Also Begin Check Choose Compare Compress Compute Consider Copy Count Delete Draw Drop End Exit
Extract Give Inspect Keep Leave List Listen Look Make Mark Merge Only Order Overwrite Pack Print Put Read Rename Repair Replace Report
Same Select Separate Show Sort Split Start Take Tell Thin Use Write""".split())


def test_help_of_eventlog_begins_with_a_verb(described):
    """'Also', 'Only' and 'Same as' come before one. 'wide, reduce: ' names the formats, 'With -f, ' the case."""
    for name, o in described.items():
        if program_of(name)[0] != "eventlog":
            continue
        for words in [o["summary"], *(x["help"] for x in o["options"]), *(c["help"] for c in o["commands"])]:
            first = re.sub(r"^(?:With (?:-f, |[^:(]*: )|[a-z-]+(?:, [a-z-]+)*: )", "", words).split()[0].rstrip(",")
            assert first.capitalize() in VERBS, f"{name}: {words}"
        assert name == "eventlog" or "Exit status: 0 " in o["summary"], name


# What the texts say of other programs' options.
FOREIGN = {"mca", "cflags", "libs", "static", "variable", "logdir", "load_fast", "samples_per_plugin", "reload_interval",
           "open", "host", "map-by", "distribution", "mpi", "ntasks-per-node", "oversubscribe", "prtemca", "save-every", "inspect",
           "lax-steps", "handle-dup-steps", "summary", "only", "no-deps", "target", "grpc_data_provider",
           "compare", "max-epochs", "mnist-dir", "cifar10-dir", "network-megabits", "add-architecture", "train", "val"}


def options_in(text):
    return set(re.findall(r"(?<![\w-])--([a-z][\w-]*)", text))


def test_texts_name_options_that_are_there(described):
    known = {name: {x["name"] for x in o["options"] if x["kind"] != "heading"} | {"help", "version"} |
             {f"no-{x['name']}" for x in o["options"] if x["kind"] == "flag"} for name, o in described.items()}
    every = set().union(*known.values(), FOREIGN)
    texts = {p: p.read_text() for p in (ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "examples/README.md",
                                        *(ROOT / "docs").glob("*.md"), *(ROOT / "docs/man").iterdir())}
    assert len(texts) > 15
    for path, text in texts.items():
        assert not options_in(text) - every, path
    commands = re.findall(rf"^(?:mpirun .*?)?(?:build/bin/)?\b({'|'.join(PROGRAMS)})\b(?: +([a-z][\w-]*))?(.*)$",
                          texts[ROOT / "README.md"].replace("\\\n", " "), re.M)
    assert len(commands) >= 20
    for program, command, rest in commands:
        name = f"{program}-{command}" if f"{program}-{command}" in known else program
        assert name != program or program in ("trainer", "evaluator", "eventlog-server"), f"{program} has no command {command}"
        assert not options_in(rest.split("#")[0]) - known[name], (name, rest)


# ---- completion -------------------------------------------------------------------------------------------------------

def test_bash(described, tmp_path, tmp_path_factory):
    (tmp_path / "logs").mkdir()
    (tmp_path / "lo g").mkdir()
    (tmp_path / "line.txt").write_text("")
    commands = {c["name"] for c in described["eventlog"]["commands"]}
    cases = {
        "eventlog ": commands | {"help"}, "eventlog ex": {"export"}, "eventlog export --fo": {"--format", "--force"},
        "eventlog export --format=t": {"tb-csv", "tb-json"}, "eventlog export --format js": {"json", "jsonl", "jsonl-series"},
        "eventlog export --format=": set(described["eventlog-export"]["options"][0]["choices"]),
        "eventlog export -o l": {"logs", "lo g", "line.txt"}, "eventlog export --tag l": set(),
        "eventlog export --tag x l": {"logs", "lo g", "line.txt"}, "eventlog verify --st": {"--strict"},
        "checkpoint convert --to ": {"bundle", "safetensors", "npy"}, "checkpoint --v": {"--version"},
        "trainer --run-option ": {"single", "mirrored", "mpi", "ring", "ps", "hybrid"}, "trainer --checkpoint-dir l": {"logs", "lo g"},
        "trainer --max-steps ": set(), "trainer l": set(), "evaluator --checkpoint-dir=l": {"logs", "lo g"},
        "trainer --model r": {"resnet32", "resnet50", "resnet50b", "resnet50_torchvision"}, "trainer --data=f": {"fashion-mnist", "folder"},
        "evaluator --model ": {"lenet", "cifar10_cnn", "resnet32", "next_word", "mnist_cnn", "mnist_lstm", "mnist_lstm_128", "language_model",
        "resnet50", "resnet50b", "resnet50_torchvision", "show_and_tell", "inception_v3"}, "evaluator --data f": {"fashion-mnist", "folder"},
        "evaluator --metrics c": {"captions", "classes", "confusion", "curves"},
    }
    for name, o in described.items():
        program, command = program_of(name)
        cases[f"{program} {command} -" if command else f"{program} -"] = {"-h", "--help", "-V", "--version"} | {
            f for x in o["options"] if x["kind"] != "heading"
            for f in [f"--{x['name']}"] + ([f"-{x['letter']}"] if x["letter"] else [])}
    with Bash(tmp_path, tmp_path_factory.mktemp("bash")) as shell:
        for line, want in cases.items():
            assert shell.offers(line) == want, line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_option(described, shell):
    for program in PROGRAMS:
        path = BUILD / "completion" / shell / {"bash": program, "zsh": f"_{program}", "fish": f"{program}.fish"}[shell]
        text = path.read_text()
        assert shell != "zsh" or text.startswith(f"#compdef {program}\n")
        for name, o in described.items():
            if program_of(name)[0] != program:
                continue
            for option in o["options"]:
                if option["kind"] != "heading":
                    assert (f"-l {option['name']} " if shell == "fish" else f"--{option['name']}") in text, name
                    assert all(choice in text for choice in option["choices"])
        # Quotes and brackets that do not close would take the rest of the file with them.
        run = subprocess.run(["bash", "-n", path], capture_output=True, text=True) if shell == "bash" else None
        assert run is None or run.returncode == 0, run.stderr
        if shutil.which(shell):
            assert subprocess.run([shell, "-n", path]).returncode == 0
        bare = re.sub(r"\\.", "", text) if shell == "fish" else text.replace("'\\''", "")
        assert shell == "bash" or all(line.count("'") % 2 == 0 for line in bare.split("\n") if not line.startswith("#")), shell
