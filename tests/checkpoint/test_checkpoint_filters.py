"""--tensor that matches nothing is told with the nearest names, by every command, and is never a success."""
import pytest

from checkpoint_files import as_json, run, tensor, write_bundle


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    top = tmp_path_factory.mktemp("filters")
    tensors = {"conv1/weights": tensor("F32", [1, 2]), "conv1/biases": tensor("F32", [3]), "global_step": tensor("I64", 4, [])}
    return [write_bundle(top / name, tensors) for name in ("a-4", "b-4")]


@pytest.mark.parametrize("line", ["inspect A", "inspect A --json", "inspect A --no-statistics", "compare A B",
                                  "compare A B --json", "verify A", "verify A B --json", "convert A OUT", "convert A OUT.safetensors", "convert A OUT/"])
def test_no_success(two, tmp_path, line):
    def words(out):
        places = {"A": two[0], "B": two[1]}
        return [places.get(word, word.replace("OUT", str(tmp_path / out))) for word in line.split()]

    result = run(*words("none"), "--tensor", "conv1/wieghts")
    assert result.returncode == 1 and '"equal":true' not in result.stdout
    command = f"checkpoint {line.split()[0]}"
    assert result.stderr == (f"{command}: --tensor 'conv1/wieghts': no tensor matches; did you mean 'conv1/weights', "
                             "'conv1/biases' or 'global_step'?\n")
    assert list(tmp_path.iterdir()) == []
    # One pattern of two: what the other matches is there, and it is no success all the same.
    result = run(*words("some"), "--tensor", "*/biases", "--tensor", "nosuch")
    assert result.returncode == 1 and result.stderr.startswith(f"{command}: --tensor 'nosuch': no tensor matches; ")
    assert "biases'" not in result.stderr.split("did you mean")[0] and result.stdout
    assert bool(list(tmp_path.iterdir())) == line.startswith("convert")
    assert run(*words("all"), "--tensor", "*/[bw]*").returncode == 0


def test_a_checkpoint_without_tensors(two, tmp_path):
    empty = write_bundle(tmp_path / "empty-1", {})
    result = run("inspect", empty, "--tensor", "w")
    assert result.returncode == 1 and "no tensor matches; there is none" in result.stderr
    assert run("inspect", empty).returncode == 0


def test_verify_reads_what_is_asked_for(two, tmp_path):
    prefix = write_bundle(tmp_path / "m-1", {"a": tensor("F32", [1]), "b": tensor("F32", [2])})
    data = tmp_path / "m-1.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:4] + bytes(4))
    assert run("verify", prefix, "--tensor", "a").stdout == f"{prefix}: ok, 1 tensor, 4 B\n"
    result = run("verify", prefix, "--tensor", "b")
    assert result.returncode == 1 and "tensor b, 4 bytes at byte 4: CRC mismatch" in result.stdout and result.stderr == ""
    # One of several checkpoints has it: that is a match.
    assert run("verify", prefix, two[0], "--tensor", "conv1/*").returncode == 0
    (tmp_path / "m-1.index").write_bytes(b"cut")
    result = run("verify", prefix, "--tensor", "a")
    assert result.returncode == 1 and "too short: 3 bytes" in result.stdout and result.stderr == ""


def test_all_lists_checkpoints(two):
    result = run("inspect", "--all", two[0].parent, "--tensor", "conv1/*")
    assert result.returncode == 2 and "--all lists checkpoints, not tensors" in result.stderr
    assert len(as_json("inspect", "--all", two[0].parent)["checkpoints"]) == 2
