"""Kernels that are compiled for each instruction set are vector code in each: a choice or a call in a loop can make the
compiler take one number at a time, which no value shows."""
import os
import pathlib
import platform
import re
import subprocess

import pytest

from waiting import DEADLINE

BUILD = pathlib.Path(os.environ.get("EVALBOARD_BUILD", "build")).resolve()
WIDE = {"avx2": "y", "avx512f": "[yz]"}
ARITHMETIC = r"\bv(?!mov|xor|broadcast|insert|extract|perm)\w*(?:p[sd]|p\w+[bwdq])\s[^\n]*%%%smm"


def clones():
    """Each function that the compiler made for an instruction set, with its code."""
    for path in sorted([*BUILD.glob("model/**/*.o"), *BUILD.glob("trainer/**/*.o")]):
        if b".avx2" not in path.read_bytes():
            continue
        code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True).stdout
        for name, level, body in re.findall(r"<(\w+)\.(avx2|avx512f)>:\n(.*?)(?:\n\n|\Z)", code, re.DOTALL):
            yield f"{path.name}: {name}", level, body


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one instruction set")
def test_all_are():
    found = list(clones())
    assert len(found) > 40
    assert not [(name, level) for name, level, body in found if not re.search(ARITHMETIC % WIDE[level], body)]


@pytest.mark.parametrize("model", ["lenet", "mnist_cnn", "cifar10_cnn", "resnet32"])
@pytest.mark.parametrize("level", ["AVX2", "DEFAULT"])
def test_onednn_never_by_its_reference(model, level):
    """It says which of its implementations ran; those named ref take one number at a time."""
    run = subprocess.run([BUILD / "bin" / "trainer", "--model", model, "--data", "synthetic", "--batch-size", "2", "--max-steps", "1",
                          "--quiet"], env={**os.environ, "DNNL_MAX_CPU_ISA": level, "DNNL_VERBOSE": "1"}, capture_output=True,
                         text=True, check=True, timeout=DEADLINE)
    ran = [line.split(",")[4] for line in run.stdout.splitlines() if ",exec,cpu,convolution," in line]
    assert (ran or model in ("lenet", "mnist_cnn")) and not [name for name in ran if name.startswith("ref")], ran
