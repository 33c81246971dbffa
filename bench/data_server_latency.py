"""How long ReadScalars takes, for answers of 100 bytes to 64 kB: of a server at rest and of one that loads 1 GB, asked by one
client and by 50 together, beside the data server that comes with TensorBoard. The client is bench/data_server_calls.c, which
costs a few microseconds a call; gRPC's Python client, which costs more than the answer, has rows of its own. 50 clients that
each ask 20 ms after their last answer tell how long an answer takes among others; 50 that ask at once tell how many answers
the processors can give, since 50 calls always wait.
"""
import json
import subprocess

import programs
import summary
from data_server_logs import LARGE_CURVES, RUNS
from log_reading_speed import Logs

BYTES_A_POINT = 57  # of `event_log scalars`
SIZES = ("5,1", "60,1", "1000,1", "440,10")  # points of each curve, curves


def ask(what, python, program, logs, calls, last):
    run = subprocess.run(list(map(str, [python, "bench/data_server_latency_peer.py", what, program, logs.path / "log", logs.path,
                                        calls, last, *SIZES])),
                         capture_output=True, text=True, cwd=programs.ROOT, env=programs.ENVIRONMENT)
    if run.returncode:
        raise RuntimeError(f"{program}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout)


def run(options):
    python, server = programs.peer_python("tensorboard_data_server"), programs.program(options.build, "eventlog-server").resolve()
    calls, rows = programs.helper(options.build, "bench/data_server_calls").resolve(), []
    points = options.log_bytes // BYTES_A_POINT // LARGE_CURVES * LARGE_CURVES
    with Logs(options.build) as logs:
        (logs.path / "log").mkdir()
        logs.make("curves", RUNS).rename(logs.path / "log/small")
        logs.make("scalars", points).parent.rename(logs.path / "log/large")
        for what, words in (("idle", "at rest"), ("loading", "while it loads")):
            for name, program in (("eventlog-server", server), ("tensorboard-data-server", "stock")):
                for asker, size, count, median, p99, longest in ask(what, python, program, logs, calls, points // LARGE_CURVES - 1):
                    rows.append((f"{name} {words}", asker, size, count,
                                 *((f"{median:.2f}", f"{p99:.2f}", f"{longest:.1f}") if count else ("all was loaded", "", ""))))
                    if name == "eventlog-server" and "Python" not in asker and count:
                        summary.add(f"ReadScalars {words}, {asker}, {size:,} bytes: p99", "ms", p99, None, "")
    print(f"\ndata_server_latency: ReadScalars, milliseconds; {options.log_bytes / 1e9:.1f} GB of log", flush=True)
    programs.table(("", "asked by", "bytes", "calls", "median", "p99", "longest"), rows)
    return rows
