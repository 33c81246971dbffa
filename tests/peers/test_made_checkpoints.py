"""Made checkpoints (tests/fuzz/made_checkpoint.h) read by TensorFlow and by us: what is sound both read alike, and what
TensorFlow refuses we refuse. Where we are stricter, STRICTER says in what, and why.

MADE_CHECKPOINTS=N takes so many seeds instead of 300, MADE_CHECKPOINTS_SEED=S begins with another one than 1.
"""
import collections
import faulthandler
import json
import os
import pathlib
import re
import resource
import select
import signal
import struct
import subprocess

import pytest

from waiting import DEADLINE

numpy = pytest.importorskip("numpy")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
tf = pytest.importorskip("tensorflow")

TOOL = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve() / "tests/peers/write_made_checkpoints"
STRING, VARIANT = 7, 21
LOW_BITS = {29: 15, 30: 15, 31: 3, 32: 3, 33: 15}  # types of less than a byte: the rest of it means nothing
ROOM = 1 << 28  # bytes it may take

READ, OTHER = "read", "read as something else"

# What we refuse and TensorFlow reads, with the values that were made: it looks keys up by the index, reads what it is
# asked for, and no more.
UNREAD = "it does not read all blocks and bytes of an index, such as the metaindex block; we want to notice any change"
UNASKED = "it does not look where a tensor of no bytes lies, or compare sizes that it does not need"
STRICTER = {
    **dict.fromkeys(["block-bits", "block-crc", "block-type", "block-type-snappy", "block-noise", "entry-noise",
                     "snappy-length", "snappy-offset-zero", "snappy-offset-before", "snappy-cut", "snappy-more",
                     "restart-count", "restart-none", "metaindex-filled", "footer-handle", "footer-padding",
                     "footer-long", "handle-gap", "handle-size", "handle-cut", "separator-high", "separator-low"],
                    UNREAD),
    "restart-offset": "its search by key may begin elsewhere",
    "restart-shared": "likewise",
    "key-shared": "likewise",
    "entry-offset": UNASKED,
    "entry-size": UNASKED,
    "entry-rank": "it takes the dimensions that are there, and unknown_rank for nothing",
    "slice-shape": "it compares the number of elements",
    "slice-type": "it compares the size of the type",
    "slice-loose": "it asks for the slices of variables, not for variables of slices",
    "tensors-overlap": "it does not compare the places of tensors, of which there is one more",
    "header-missing": "it takes whatever comes first for the header",
    "header-endianness": "it swaps bytes; ours is only refused, and some types have one byte",
    "keys-doubled": "it takes one of the two",
}
# What we refuse and TensorFlow reads as something else: values that were never saved.
MISREAD = {
    "header-endianness": "it swaps the bytes, which were not swapped",
    **dict.fromkeys(["block-noise", "entry-noise"], "nobody knows what was hit"),
}
# What we read and TensorFlow does not.
WIDER = {
    "entry-reference": "it aborts at types of references; the format's description has them read as what they refer to",
}


def made(directory, seed, count):
    run = subprocess.run([TOOL, directory, str(seed), str(count)], capture_output=True, text=True, timeout=DEADLINE)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def content(value, number):
    """A tensor's value as the tool writes it."""
    if number == STRING:
        strings = numpy.asarray(value, dtype=object).reshape(-1)
        return b"".join(struct.pack("<Q", len(s)) + s for s in strings)
    stored = numpy.asarray(value).tobytes()
    return bytes(b & LOW_BITS[number] for b in stored) if number in LOW_BITS else stored


def tensorflow_reads(row):
    """What TensorFlow says of it: READ, OTHER where it reads other values than the tool has, or its sentence."""
    try:
        reader = tf.train.load_checkpoint(row["prefix"])
        try:
            names = {name.encode() for name in reader.get_variable_to_shape_map()}
        except UnicodeDecodeError:  # Python wants them to be text
            names = None
        # Where a block is damaged its list ends, and nothing says so.
        same = row["error"] or names is None or names == {bytes.fromhex(t["name"]) for t in row["tensors"]}
        for tensor in row["tensors"]:
            if tensor["type"] == VARIANT:  # which cannot be given to Python
                continue
            try:
                value = reader.get_tensor(bytes.fromhex(tensor["name"]))
            except ValueError as error:
                # TensorFlow cannot put together slices of all types.
                if tensor["sliced"] and re.fullmatch(r"Dtype \w+ not supported\.", str(error)):
                    continue
                raise
            same = (same and list(numpy.shape(value)) == tensor["shape"]
                    and content(value, tensor["type"]).hex() == tensor["bytes"])
        return READ if same else OTHER
    except Exception as error:  # whatever it is
        return f"{type(error).__name__}: {error}"[:300]


def child(rows, pipe):
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Else it takes what a damaged size says.
    most = int(pathlib.Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    for row in rows:
        os.write(pipe, json.dumps(tensorflow_reads(row)).encode() + b"\n")
    os._exit(0)


def ask_tensorflow(rows):
    """What it says of each: None where it crashed or hung, in a child that is followed by another."""
    said = []
    while len(said) < len(rows):
        ours, theirs = os.pipe()
        pid, text, before = os.fork(), b"", len(said)
        if not pid:
            child(rows[before:], theirs)
        os.close(theirs)
        while select.select([ours], [], [], DEADLINE)[0] and (more := os.read(ours, 1 << 16)):
            text += more
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ours)
        said += [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith(b"\n")]
        if len(said) < len(rows):
            said.append(None)
    return said


def test_both_read_the_same(tmp_path):
    seed, count = int(os.environ.get("MADE_CHECKPOINTS_SEED", 1)), int(os.environ.get("MADE_CHECKPOINTS", 300))
    rows = made(tmp_path, seed, count)
    wrong, crashed, wider, stricter = [], 0, 0, collections.Counter()
    for number, (row, said) in enumerate(zip(rows, ask_tensorflow(rows), strict=True), seed):
        where, damage = f"seed {number}, {row['damage'] or 'sound'}", set(row["damage"].split("+"))
        crashed += said is None
        if row["error"] is None and said != READ:
            wider += bool(damage & set(WIDER))
            if not damage & set(WIDER):
                wrong.append(f"{where}: we read it, TensorFlow: {said or 'crashes'}")
        elif row["error"] is not None and said in (READ, OTHER):
            known = damage & set(STRICTER if said == READ else MISREAD)
            if said == READ and any(t["type"] == VARIANT for t in row["tensors"]):
                known = known or {"variants"}  # which it was not asked for
            stricter.update(known)
            if not known:
                wrong.append(f"{where}: TensorFlow: {said}, we: {row['error']}")
    print(f"{count} checkpoints, TensorFlow crashed at {crashed}; we alone read {wider} and refuse: "
          + ", ".join(f"{damage} {n}" for damage, n in sorted(stricter.items())))
    assert not wrong, "\n".join(wrong)
    assert sum(row["error"] is None for row in rows) >= count // 3
    assert crashed <= count // 5
