"""The eventlog program: exact output, options, statuses, files. The sample log and its texts are those of the manual."""
import csv
import gzip
import io
import json
import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest

from checksum import masked_crc32c

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"

CSV = """run,tag,step,value,wall_time
.,loss,0,0.699999988079071,1700000000.0
.,loss,10,0.10000000149011612,1700000010.25
.,loss,20,NaN,1700000020.5
.,lr,0,9.999999747378752e-06,1700000000.0
eval,"acc, ""top"" 1",10,0.9,1700000012.000001
eval,größe,9007199254740992,16777216.0,1700000030.0
eval,loss,10,3.0,1700000012.0
eval,loss,20,inf,1700000022.123456
eval,loss,20,0.25,1700000023.0
"""
WIDE = """run,step,"acc, ""top"" 1",größe,loss,lr
.,0,,,0.699999988079071,9.999999747378752e-06
.,10,,,0.10000000149011612,
.,20,,,NaN,
eval,10,0.9,,3.0,
eval,20,,,0.25,
eval,9007199254740992,,16777216.0,,
"""
JSONL = r"""{"run":".","tag":"loss","step":0,"wall_time":1700000000.0,"value":0.699999988079071}
{"run":".","tag":"loss","step":10,"wall_time":1700000010.25,"value":0.10000000149011612}
{"run":".","tag":"loss","step":20,"wall_time":1700000020.5,"value":"NaN"}
{"run":".","tag":"lr","step":0,"wall_time":1700000000.0,"value":9.999999747378752e-06}
{"run":"eval","tag":"acc, \"top\" 1","step":10,"wall_time":1700000012.000001,"value":0.9}
{"run":"eval","tag":"größe","step":9007199254740992,"wall_time":1700000030.0,"value":16777216.0}
{"run":"eval","tag":"loss","step":10,"wall_time":1700000012.0,"value":3.0}
{"run":"eval","tag":"loss","step":20,"wall_time":1700000022.123456,"value":"Infinity"}
{"run":"eval","tag":"loss","step":20,"wall_time":1700000023.0,"value":0.25}
"""
JSON = "[\n" + JSONL.rstrip().replace("\n", ",\n") + "\n]\n"


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "sample", tmp_path / "log"], check=True)
    return tmp_path / "log"


def run(*arguments, status=0, **environment):
    done = subprocess.run([TOOL, *arguments], capture_output=True, env={**os.environ, **environment})
    assert done.returncode == status, done.stderr.decode()
    return done.stdout.decode()


def text(*arguments, status=1):
    done = subprocess.run([TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == status
    return done.stderr


@pytest.mark.parametrize("name, want", [("csv", CSV), ("wide", WIDE), ("json", JSON), ("jsonl", JSONL)])
def test_exact_output(log, tmp_path, name, want):
    assert run("export", log, f"--format={name}") == want
    assert run("export", log, f"--format={name}", LC_ALL="de_DE.UTF-8") == want
    run("export", log, f"--format={name}", "-o", tmp_path / "x")
    assert (tmp_path / "x").read_text() == want
    run("export", log, f"--format={name}", "-o", tmp_path / "x.gz")
    run("export", log, f"--format={name}", "-o", tmp_path / "y.gz")
    packed = (tmp_path / "x.gz").read_bytes()
    assert gzip.decompress(packed).decode() == want and packed == (tmp_path / "y.gz").read_bytes()
    assert packed[3:8] == bytes(5)  # no name, time 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "x", "x.gz", "y.gz"]
    assert text("export", log, "-o", tmp_path / "x", status=2).count("\n") == 1
    run("export", log, "-f", "-o", tmp_path / "x")
    assert (tmp_path / "x").read_text() == CSV


def test_csv_options(log):
    assert run("export", log, "--crlf") == CSV.replace("\n", "\r\n")
    assert run("export", log, "--tsv").splitlines()[5] == 'eval\tacc, "top" 1\t10\t0.9\t1700000012.000001'
    assert run("export", log, "--float32=short", "--tag=l*", "--run=.") == (
        "run,tag,step,value,wall_time\n.,loss,0,0.7,1700000000.0\n.,loss,10,0.1,1700000010.25\n"
        ".,loss,20,NaN,1700000020.5\n.,lr,0,1e-05,1700000000.0\n")
    assert run("export", log, "--nonfinite=drop") == "".join(
        line for line in CSV.splitlines(True) if ",NaN," not in line and ",inf," not in line)
    in_order = run("export", log, "--order=file").splitlines()
    assert sorted(in_order) == sorted(CSV.splitlines())
    assert [x.split(",")[1] for x in in_order[1:5]] == ["loss", "lr", "loss", "loss"]
    assert run("export", log, "--view=tensorboard", "--run=eval", "--order=file").splitlines()[1:] == [
        "eval,loss,10,3.0,1700000012.0", "eval,größe,9007199254740992,16777216.0,1700000030.0"]
    assert list(csv.reader(io.StringIO(run("export", log))))[5][1] == 'acc, "top" 1'


def test_wide_options(log):
    assert run("export", log, "--format=wide", "--columns=first").splitlines()[0] == (
        'run,step,loss,lr,"acc, ""top"" 1",größe')
    assert run("export", log, "--format=wide", "--dup=first", "--run=eval", "--tag=loss", "--no-run") == (
        "step,loss\n10,3.0\n20,inf\n")
    assert run("export", log, "--format=wide", "--dup=mean", "--run=eval", "--tag=loss").splitlines()[2] == (
        "eval,20,inf")
    assert "--dup" in text("export", log, "--format=wide", "--dup=error", status=2)
    assert "--no-run" in text("export", log, "--format=wide", "--no-run", status=2)
    assert run("export", log, "--format=wide", "--wall-time", "--tag=loss").splitlines()[-1] == (
        "eval,20,1700000023.0,0.25")


def test_json_options(log):
    null = run("export", log, "--format=jsonl", "--nonfinite=null", "--step=string").splitlines()
    assert null[2].endswith('"value":null}') and json.loads(null[5])["step"] == "9007199254740992"
    assert all(json.loads(line).keys() == {"run", "tag", "step", "wall_time", "value"} for line in null)
    assert json.loads(run("export", log, "--format=json"))[2]["value"] == "NaN"


def test_nothing_matched(log):
    assert run("export", log, "--tag=x", status=1) == CSV.splitlines(True)[0]
    assert run("export", log, "--tag=x", "--format=json", status=1) == "[]\n"
    assert run("export", log, "--tag=x", "--format=jsonl", status=1) == ""
    assert run("export", log, "--tag=x", "--format=wide", status=1) == "run,step\n"


def test_usage(log, tmp_path):
    for arguments, words in [
        (["export"], "no PATH given"), (["exprot", log], "did you mean export"), ([], "no command"),
        (["ls", log], "did you mean inspect"), (["diff", log, log], "did you mean compare"),
        (["export", tmp_path / "none"], "No such file"), (["export", log, "--format=cvs"], "'cvs'"),
        (["export", log, "--columns=first"], "--columns"), (["export", log, "--taag=x"], "did you mean --tag"),
        (["export", log, "--dup=first"], "--dup"), (["export", log, "--format=csv", "--nonfinite=null"], "null"),
        (["export", log, "-o", tmp_path / "no" / "x"], "cannot create"),
    ]:
        told = text(*arguments, status=2)
        assert words in told and told.count("\n") == 1
    for arguments in ["--help"], ["export", "--help"], ["inspect", "--help"], ["compare", "--help"]:
        assert "examples:" in run(*arguments)


def test_a_single_file_and_several_paths(log):
    name = next(str(p) for p in (log / "eval").iterdir())
    assert run("export", name) == "".join(x.replace("eval,", ".,") for x in CSV.splitlines(True)
                                          if x.startswith(("run,", "eval,")))
    two = run("export", log / "eval", log, "--tag=loss").splitlines()
    assert len(two) == 7 and two[1].startswith(".,") and two[-1].startswith("eval,")


def test_full_disk(log):
    with open("/dev/full", "w") as full:
        done = subprocess.run([TOOL, "export", log], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "No space left" in done.stderr


def test_closed_pipe_is_silent(tmp_path):
    subprocess.run([SAMPLE, "many", tmp_path / "log"], check=True)
    process = subprocess.Popen([TOOL, "export", tmp_path / "log"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(10)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait()


def test_restart_views(tmp_path):
    subprocess.run([SAMPLE, "restart", tmp_path], check=True)
    steps = {view: [line.split(",")[2] for line in run("export", tmp_path, "--tag=loss", f"--view={view}").splitlines()]
             for view in ("all", "tensorboard", "session")}
    assert steps["all"][1:] == ["0", "5", "10", "20", "20", "30", "30"]
    assert steps["tensorboard"][1:] == ["0", "10", "20"]
    assert steps["session"][1:] == ["0", "5", "10", "20", "30"]
    assert "4 points left out" in text("export", tmp_path, "--tag=loss", "--view=tensorboard", status=0)


def test_split_log_gives_the_same(tmp_path, log):
    source = next((log / "eval").iterdir())
    data = source.read_bytes()
    at = 0
    for i in range(7):
        if at == len(data):
            break
        end = at + 16 + int.from_bytes(data[at:at + 8], "little")
        (tmp_path / "split" / "eval").mkdir(parents=True, exist_ok=True)
        (tmp_path / "split" / "eval" / f"events.out.tfevents.{i}").write_bytes(data[at:end])
        at = end
    assert at == len(data)
    assert run("export", tmp_path / "split" / "eval") == run("export", log / "eval")


def test_inspect_json(log):
    runs = json.loads(run("inspect", "--json", log))["runs"]
    assert [r["run"] for r in runs] == [".", "eval"]
    assert list(runs[1]["series"][2]) == ["tag", "plugin", "stored", "points", "first_step", "last_step", "min_step",
                                          "max_step", "num_steps", "outoforder_steps", "shown", "skipped"]
    loss = next(s for s in runs[1]["series"] if s["tag"] == "loss")
    assert (loss["points"], loss["first_step"], loss["last_step"], loss["num_steps"]) == (3, 20, 10, 2)
    assert loss["outoforder_steps"] == [[20, 10]] and loss["shown"] == 1
    file = runs[0]["files"][0]
    assert (file["records"], file["end"], file["damage"], file["end_offset"]) == (5, "clean", [], file["bytes"])
    assert "größe" in run("inspect", log) and "tensor DT_DOUBLE" in run("inspect", log)


def test_compare(log, tmp_path):
    rows = {(s["run"], s["tag"]): s for s in json.loads(run("compare", "--json", log))["series"]}
    assert set(rows) == {(".", "loss"), ("eval", "loss")}  # the tag that both have
    assert rows[".", "loss"]["best_step"] == 10 and rows[".", "loss"]["better"] == "min"
    assert rows["eval", "loss"]["wall_seconds"] == 11.0
    table = run("compare", log, log / "eval", "--tag", "l*")
    assert "lr" in table and "best (min)" in table
    for x in "step", "wall", "relative":
        run("compare", log, "-o", tmp_path / f"{x}.svg", "--x", x, "--smoothing", "0.5")
        root = xml.etree.ElementTree.parse(tmp_path / f"{x}.svg").getroot()
        texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
        assert {"loss", "eval", "."} <= set(texts)
        assert len(root.findall(".//*[@class='f last c1']")) == 1
    run("compare", log, "-o", tmp_path / "both.svg", "--x", "step,relative", "--tag", "l*")
    root = xml.etree.ElementTree.parse(tmp_path / "both.svg").getroot()
    titles = [(float(t.get("x")), float(t.get("y")), t.text) for t in root.findall(".//{*}text[@class='title']")]
    assert [t for *_, t in titles] == ["loss", "loss", "lr", "lr"]
    assert titles[0][1] == titles[1][1] < titles[2][1] == titles[3][1] and titles[0][0] == titles[2][0] < titles[1][0]
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("step") == texts.count("time since the run's first point") == 2
    run("compare", log, "-o", tmp_path / "title.svg", "--title", "mpi & <ps>")
    titled, plain = (xml.etree.ElementTree.parse(tmp_path / f"{x}.svg").getroot() for x in ("title", "step"))
    assert [t.text for t in titled.findall(".//{*}text[@class='heading']")] == ["mpi & <ps>"]
    assert int(titled.get("height")) > int(plain.get("height"))
    labels = "--label", ".=the root", "--label", "eval=a=b & <c> (812 images/s)"
    run("compare", log, "-o", tmp_path / "labels.svg", *labels)
    root = xml.etree.ElementTree.parse(tmp_path / "labels.svg").getroot()
    texts = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "." not in texts and texts.count("the root") == texts.count("a=b & <c> (812 images/s)") == 1
    assert "  a=b & <c> (812 images/s)  " in run("compare", log, *labels)
    assert {s["run"] for s in json.loads(run("compare", "--json", log, *labels))["series"]} == {".", "eval"}
    assert "no run is called 'evl'; did you mean 'eval'?" in text("compare", log, "--label", "evl=x", status=2)
    assert "'eval' is not RUN=TEXT" in text("compare", log, "--label", "eval", status=2)
    subprocess.run([SAMPLE, "many", tmp_path / "many"], check=True)  # steps to 2^63, NaN, infinities
    run("compare", tmp_path / "many", "-o", tmp_path / "many.svg", "--tag=l*/1?", "--tag=*π*")
    drawn = (tmp_path / "many.svg").read_text()
    xml.etree.ElementTree.fromstring(drawn)
    assert not re.search(r'="[^"]*\b(nan|inf)\b(?! c)', drawn)  # in no coordinate
    run("compare", log, "--tag=nothing", "-o", tmp_path / "n.svg", status=1)
    assert not (tmp_path / "n.svg").exists()


def test_text_that_is_not_utf8(tmp_path, log):
    """The point is written with U+FFFD and one warning; inspect calls it damage."""
    name = next((log / "eval").iterdir())
    data = bytearray(name.read_bytes())
    at = 0
    while b"gr\xc3\xb6" not in data[at:at + 16 + data[at]]:
        at += 16 + data[at]
    data[data.index(b"gr\xc3", at) + 2] = 0xff  # the CRC no longer fits either: sealed again below
    size = data[at]
    data[at + 12 + size:at + 16 + size] = masked_crc32c(data[at + 12:at + 12 + size])
    name.write_bytes(data)
    assert "eval,gr\ufffd\ufffd\u00dfe,".replace("\u00df", "ß") in run("export", log)
    assert text("export", log, status=0).count("not UTF-8") == 1
    assert json.loads(run("inspect", "--json", log, status=1))["runs"][1]["files"][0]["damage"][0]["kind"] == "utf8"
