"""examples/systemd and examples/slurm as far as they run without systemd and Slurm: units that systemd accepts, whose
commands do what they say with the system calls that the units allow; the batch script with a stand-in for srun.
"""
import ctypes
import functools
import json
import os
import pathlib
import re
import shlex
import signal
import struct
import subprocess
import sys

import pytest

from evaluators import BUILD, ledger, steps, write
from tensorboard_server import data_server_or_skip
from waiting import DEADLINE, wait_for


ROOT = pathlib.Path(__file__).resolve().parents[2]
UNITS = ROOT / "examples/systemd"
SRUN = """#!/bin/bash
# srun's options that the script uses; the rest is the command. `exec`, so that signals reach it, as srun passes them on.
ranks=1
while [[ $1 == --* ]]; do [[ $1 == --ntasks=* ]] && ranks=${1#--ntasks=}; shift; done
[ "$ranks" = 1 ] && exec "$@"
exec mpirun --oversubscribe --bind-to none -n "$ranks" "$@"
"""


def command_of(unit, environment):
    """ExecStart with its variables, in words."""
    text = (UNITS / unit).read_text().replace("\\\n", " ")
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    words = [re.sub(r"\$\{(\w+)\}", lambda m: environment[m.group(1)], word) for word in shlex.split(line)]
    assert words[0].startswith("/usr/local/bin/")
    return [BUILD / "bin" / pathlib.Path(words[0]).name, *words[1:]]


@functools.cache
def system_call_numbers():
    """{name: number} of this processor, as the compiler knows them."""
    said = subprocess.run(["cc", "-dM", "-E", "-include", "sys/syscall.h", "-x", "c", "/dev/null"], capture_output=True, text=True,
                          check=True)
    return {name: int(number) for name, number in re.findall(r"^#define __NR_(\w+) (\d+)$", said.stdout, re.M)}


@functools.cache
def members(group):
    """The names of a group of system calls, with those of the groups in it."""
    said = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True)
    words = [line.strip() for line in said.stdout.splitlines()[1:] if line.startswith("    ") and "#" not in line]
    return {name for word in words for name in (members(word) if word.startswith("@") else {word})}


def filter_of(unit):
    """What limits a process to the unit's system calls, for preexec_fn. Another call ends the process by SIGSYS, where the
    unit lets it fail; seccomp(2), and struct sock_filter of linux/filter.h."""
    group = re.search(r"^SystemCallFilter=(@\S+)$", (UNITS / unit).read_text(), re.M).group(1)
    # systemd allows what loads a program, whatever the filter says.
    allowed = sorted({system_call_numbers()[name] for name in members(group) | {"execve", "exit_group"}
                      if name in system_call_numbers()})
    assert len(allowed) > 100
    load, equal, give = 0x20, 0x15, 0x06
    allow, kill = 0x7fff0000, 0x80000000
    lines = [(load, 0, 0, 0)] + [line for number in allowed for line in ((equal, 0, 1, number), (give, 0, 0, allow))]
    code = b"".join(struct.pack("HBBI", *line) for line in [*lines, (give, 0, 0, kill)])
    program = ctypes.create_string_buffer(code)
    descriptor = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(program))
    libc = ctypes.CDLL(None, use_errno=True)

    def limit():
        no_new_privileges, set_filter, by_filter = 38, 22, 2
        if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_filter, by_filter, descriptor, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
        return program  # which must live until then

    return limit


def test_the_filter_can_fail():
    """A system call that no unit allows ends the process."""
    call = [sys.executable, "-c", "import ctypes; ctypes.CDLL(None).sethostname(b'', -1)"]  # fails, where it may be made
    assert subprocess.run(call).returncode == 0
    assert subprocess.run(call, preexec_fn=filter_of("evaluator.service")).returncode == -signal.SIGSYS


@pytest.mark.parametrize("unit", ["evaluator.service", "evaluator@.service", "eventlog-server.service"])
def test_systemd_accepts_the_units(tmp_path, unit):
    """Sections and assignments, and systemd's own opinion."""
    sections = []
    for line in re.sub(r"\\\n", " ", (UNITS / unit).read_text()).splitlines():
        assert not line or re.fullmatch(r"#.*|\[\w+\]|\w+=.*", line), line
        sections += re.findall(r"^\[(\w+)\]$", line)
    assert sections == ["Unit", "Service", "Install"]
    copy = tmp_path / unit.replace("@", "@one")
    copy.write_text((UNITS / unit).read_text().replace("/usr/local/bin/", f"{BUILD}/bin/"))
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True)
    told = [line for line in run.stderr.splitlines() if unit.split(".")[0].rstrip("@") in line]
    assert not told and (run.returncode == 0 or not run.stderr.count(str(copy))), run.stderr


def test_the_command_of_the_data_server(tmp_path):
    data_server_or_skip()
    defaults = dict(line.split("=", 1) for line in (UNITS / "eventlog-server.default").read_text().split())
    assert defaults["PORT"] == "6806"
    command = command_of("eventlog-server.service", {**defaults, "LOGDIR": str(tmp_path), "PORT": "0"})
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True,
                               preexec_fn=filter_of("eventlog-server.service"))
    assert re.fullmatch(r"eventlog-server: listening on \S+:\d+\n", process.stderr.readline())
    process.terminate()
    assert process.wait(DEADLINE) == -signal.SIGTERM


def test_the_service_command(tmp_path):
    defaults = dict(line.split("=", 1) for line in (UNITS / "evaluator.default").read_text().split())
    assert set(defaults) == {"CHECKPOINTS", "EVALUATIONS", "MODEL", "DATA", "DATA_DIR"}
    data = BUILD / "none"
    command = command_of("evaluator.service", {**defaults, "CHECKPOINTS": str(tmp_path / "training"), "MODEL": "lenet",
                                               "DATA": "fashion-mnist", "EVALUATIONS": str(tmp_path / "state"),
                                               "DATA_DIR": str(data)})
    at = command.index("--data-dir")
    del command[at:at + 2]  # Debian's package has its place
    (tmp_path / "training").mkdir()
    (tmp_path / "state").mkdir()
    with open(tmp_path / "journal", "wb") as journal:
        process = subprocess.Popen(command, stderr=journal, preexec_fn=filter_of("evaluator.service"))
    try:
        write(tmp_path, "--last", 200, checkpoints="training/first")
        state = tmp_path / "state/first"
        wait_for(lambda: steps(ledger(state)) == [100, 200] or process.poll() is not None, "both")
        process.send_signal(signal.SIGHUP)  # ExecReload
        wait_for(lambda: "SIGHUP" in (tmp_path / "journal").read_text(), "the reload")
        assert 'tb_eval_done_total{run="first/eval"} 2' in (tmp_path / "state/evaluator.prom").read_text()
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    finally:
        process.kill()
        process.wait()
    assert all(json.loads(line)["program"] for line in (tmp_path / "journal").read_text().splitlines())


def test_the_template_command(tmp_path):
    (tmp_path / "evaluate.sh").write_text('#!/bin/sh\ntest -e "$1.index" && echo accuracy 0.5\n')
    (tmp_path / "evaluate.sh").chmod(0o755)
    write(tmp_path, "--last", 300, "--finish")
    subprocess.run(command_of("evaluator@.service", {}), cwd=tmp_path, check=True, timeout=DEADLINE,
                   stderr=subprocess.DEVNULL, preexec_fn=filter_of("evaluator@.service"))
    assert steps(ledger(tmp_path, "logs/eval")) == [100, 200, 300]


@pytest.mark.parametrize("cancelled", [False, True])
def test_the_batch_script(tmp_path, cancelled):
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "srun").write_text(SRUN)
    (programs / "srun").chmod(0o755)
    for name in ("trainer", "evaluator"):
        (programs / name).symlink_to(BUILD / "bin" / name)
    script = ROOT / "examples/slurm/train_and_evaluate.sbatch"
    assert len(re.findall(r"^#SBATCH --ntasks=5$", script.read_text(), re.M)) == 1
    run = tmp_path / "run"
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "RUN": str(run), "MODEL": "lenet",
                   "DATA": "fashion-mnist", "MAX_STEPS": "100000" if cancelled else "20", "EVERY": "10",
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OPENBLAS_NUM_THREADS": "1"}
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(["bash", script], env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        if cancelled:
            wait_for(lambda: ledger(run, "logs/eval") or process.poll() is not None, "an evaluation")
            process.send_signal(signal.SIGTERM)  # --signal=B:TERM: to the shell alone
        process.wait(DEADLINE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    said = (tmp_path / "log").read_text()
    records = ledger(run, "logs/eval")
    assert re.search(r"trainer: \d+, evaluator: 0$", said, re.M), said
    written = sorted(int(p.stem.split("-")[1]) for p in (run / "ckpt").glob("model.ckpt-*.index"))
    assert set(written) <= set(steps(records)) and [r["status"] for r in records] == ["done"] * len(records), said
    if not cancelled:
        assert process.returncode == 0 and steps(records)[-1] == 20, said
    assert json.loads((run / "logs/eval/evaluator.lock").read_text())["state"] == "ended"
