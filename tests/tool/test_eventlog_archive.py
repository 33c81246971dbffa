"""eventlog archive and cat: exact bytes come back, Python reads the format as it is documented, nothing leaves DIR."""
import json
import os
import pathlib
import resource
import signal
import stat
import struct
import subprocess
import zlib

import pytest

from checksum import crc32c

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
TOOL, SAMPLE = BUILD / "bin/eventlog", BUILD / "tests/programs/eventlog_sample"


def tool(*arguments, status=0, **more):
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, **more)
    assert done.returncode == status, done.stderr + done.stdout
    return done


def error(*arguments, status=2):
    return tool(*arguments, status=status).stderr.decode()


def members(archive):
    """The format as its documentation says, without the tool."""
    data = archive.read_bytes()
    assert data[:16] == b"\x89TFZ\r\n\x1a\n\1\0\0\0\0\0\0\0" and data[-8:] == b"TFZ end\n"
    offset, length, count, crc, footer = struct.unpack("<QQQII", data[-40:-8])
    directory = data[offset:offset + length]
    assert (crc32c(directory), crc32c(data[-40:-12])) == (crc, footer)
    found, at = {}, 0
    for _ in range(count):
        n, mode, offset, packed, size, mtime, crc, _ = struct.unpack_from("<IIQQQqII", directory, at)
        name, at = directory[at + 48:at + 48 + n].decode(), at + 48 + n
        contents = zlib.decompress(data[offset:offset + packed])
        assert len(contents) == size and (size > 5000 or crc32c(contents) == crc)
        found[name] = contents, mode, mtime
    return found


def tree(directory):
    return {str(p.relative_to(directory)): (p.read_bytes(), stat.S_IMODE(p.stat().st_mode), p.stat().st_mtime_ns)
            for p in directory.rglob("*") if p.is_file()}


@pytest.fixture
def log(tmp_path):
    subprocess.run([SAMPLE, "many", tmp_path / "log/train"], check=True)
    subprocess.run([SAMPLE, "sample", tmp_path / "log/eval"], check=True)
    (tmp_path / "log/empty").write_bytes(b"")
    (tmp_path / "log/projector_config.pbtxt").write_text("embeddings {}\n")
    os.chmod(tmp_path / "log/projector_config.pbtxt", 0o600)
    (tmp_path / "log/link").symlink_to("empty")
    return tmp_path / "log"


def test_round_trip(log, tmp_path):
    archive = tmp_path / "log.tfz"
    done = tool("archive", log, "-o", archive, "--json")
    report, want = json.loads(done.stdout)["total"], tree(log)
    del want["link"]
    assert "link: not a regular file; left out" in done.stderr.decode()
    assert (report["files"], report["bytes"]) == (len(want), sum(len(v[0]) for v in want.values()))
    assert report["packed"] == archive.stat().st_size
    assert members(archive) == {f"log/{name}": v for name, v in want.items()}
    tool("cat", archive, "-o", tmp_path / "new")
    assert tree(tmp_path / "new/log") == want
    listed = json.loads(tool("cat", archive, "--list", "--json").stdout)["members"]
    assert [m["name"] for m in listed] == sorted(f"log/{name}" for name in want)
    one = next(m["name"] for m in listed if "train" in m["name"])
    assert tool("cat", archive, one).stdout == want[one[4:]][0]
    assert tool("cat", archive, "log/e*").stdout == b"".join(want[n][0] for n in sorted(want) if n[0] == "e")
    assert b"all sound" in tool("cat", archive, "--check").stdout
    tool("cat", archive, "none", status=1)
    # Equal input, equal bytes.
    tool("archive", log, "-o", tmp_path / "again.tfz")
    assert (tmp_path / "again.tfz").read_bytes() == archive.read_bytes()


def test_damage_costs_one_member(log, tmp_path):
    archive = tmp_path / "log.tfz"
    tool("archive", log, "-o", archive)
    data = bytearray(archive.read_bytes())
    data[20000] ^= 1
    archive.write_bytes(bytes(data))
    told = error("cat", archive, "-o", tmp_path / "new", status=1)
    assert "is damaged" in told
    want, got = tree(log), tree(tmp_path / "new/log")
    assert len(got) == len(want) - 2 and all(got[n] == want[n] for n in got)  # the link, the damaged one
    error("cat", archive, "--check", status=1)
    for bad in (bytes(data[:-1]), b"x" * 100, b"", bytes(data[:10])):
        archive.write_bytes(bad)
        assert str(archive) in error("cat", archive, "--list")


def test_delete_only_what_is_safe(log, tmp_path):
    archive = tmp_path / "log.tfz"
    want = tree(log)
    event_file = next(p for p in log.rglob("*tfevents*"))
    with open(event_file, "ab"):
        assert "is being written" in error("archive", log, "-o", archive, "--delete")
        assert not archive.exists() and tree(log) == want
        tool("archive", log, "-o", archive, "-f")
    archive.unlink()
    error("archive", log, "-o", archive, "--delete", "-f")
    (log / "link").unlink()
    tool("archive", log, "-o", archive, "--delete")
    assert not log.exists()
    tool("cat", archive, "-o", tmp_path)
    del want["link"]
    assert tree(log) == want
    assert "already exists" in error("archive", log, "-o", archive) and "already exists" in error("cat", archive, "-o", tmp_path)
    tool("cat", archive, "-o", tmp_path, "-f")
    assert [p for p in tmp_path.rglob("*.tmp")] == []


def forged(name, contents=b"evil", size=4):
    """An archive whose only member has that name, with every CRC right, as long as its contents are b"evil"."""
    packed, name = zlib.compress(contents), name.encode()
    head = b"\x89TFZ\r\n\x1a\n" + struct.pack("<II", 1, 0)
    directory = struct.pack("<IIQQQqII", len(name), 0o644, 16, len(packed), size, 0, crc32c(b"evil"), crc32c(packed)) + name
    footer = struct.pack("<QQQI", 16 + len(packed), len(directory), 1, crc32c(directory))
    return head + packed + directory + footer + struct.pack("<I", crc32c(footer)) + b"TFZ end\n"


def test_nothing_outside_the_directory(tmp_path):
    archive, out = tmp_path / "a.tfz", tmp_path / "out"
    for name in ("../x", "/tmp/x", "a/../../x", "a//x", "./x", "", "x/"):
        archive.write_bytes(forged(name))
        error("cat", archive, "-o", out)
    archive.write_bytes(forged("a/x"))
    out.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (out / "a").symlink_to(tmp_path / "elsewhere")
    assert "cannot enter directory" in error("cat", archive, "-o", out)
    assert not any((tmp_path / "elsewhere").iterdir())
    (out / "a").unlink()
    (out / "a").mkdir()
    (tmp_path / "victim").write_text("mine")
    (out / "a/x").symlink_to(tmp_path / "victim")
    error("cat", archive, "-o", out)
    tool("cat", archive, "-o", out, "-f")  # the link is replaced, not followed
    assert (tmp_path / "victim").read_text() == "mine" and (out / "a/x").read_text() == "evil"


def test_a_disk_that_is_full(tmp_path):
    """The sentence names the member, and nothing of it is left."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/large").write_bytes(bytes(range(256)) * 200)
    tool("archive", tmp_path / "logs", "-o", tmp_path / "x.tfz")

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = tool("cat", tmp_path / "x.tfz", "-o", tmp_path / "out", status=2, preexec_fn=limit)
    assert done.stderr.decode() == "eventlog cat: logs/large: cannot write: File too large\n"
    assert list((tmp_path / "out/logs").iterdir()) == []


def test_contents_that_are_not_what_the_directory_says(tmp_path):
    archive = tmp_path / "a.tfz"
    for contents, size in ((b"live", 4), (b"evil!", 4), (b"evil!", 5), (b"evi", 4), (b"", 4), (b"evil", 5), (b"\0" * 100000, 4)):
        archive.write_bytes(forged("x", contents, size))
        assert "member 'x' is damaged" in error("cat", archive, "-o", tmp_path / "out", status=1)
        assert len(tool("cat", archive, status=1).stdout) <= size and not any((tmp_path / "out").iterdir())


def test_wrong_use(log, tmp_path):
    for arguments in (["archive", log], ["archive", "-o", tmp_path / "x"], ["archive", tmp_path / "none", "-o", tmp_path / "x"],
                      ["archive", log / "train", log / "train/", "-o", tmp_path / "x"], ["cat"], ["cat", log],
                      ["cat", log / "empty"], ["cat", "--list", "--check", log / "empty"]):
        error(*arguments)
    (tmp_path / "nothing").mkdir()
    error("archive", tmp_path / "nothing", "-o", tmp_path / "x", status=1)
    assert not (tmp_path / "x").exists()
