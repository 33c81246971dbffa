"""How soon the whole of TensorBoard shows 500 runs: from its start until its HTTP server has given a curve of every run up to
the last step, over eventlog-server and over the data server that comes with it. What is not the data server's is the same in
both, and measured over an empty log, which is TensorBoard's own start, and over an eventlog-server that was started before and
has loaded everything: what then is left no data server can be faster than. Where TensorFlow is installed, TensorBoard imports
it before anything else, which takes longer than all the rest; so all are also measured as if it was not installed. A curve's
last point is the last of its file.
"""
import json
import statistics
import subprocess

import programs
import summary
from log_reading_speed import Logs

RUNS, TAG, LAST, TAGS = 500, "layer_09/loss", 999, 10  # of `event_log curves`
LOADED = "eventlog-server, loaded before"


def ask(python, loader, logs, logdir, runs, environment, *series):
    command = [python, "bench/tensorboard_start_peer.py", loader, logdir, runs, TAG, LAST, logs.path, *series]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=programs.ROOT, env={**programs.ENVIRONMENT, **environment})
    if run.returncode:
        raise RuntimeError(f"{loader}: {run.stderr.strip().splitlines()[-1]}")
    return json.loads(run.stdout)


def middle(found, key):
    return statistics.median(run[key] for run in found)


def has_tensorflow(python):
    return not subprocess.run([python, "-c", "import importlib.util, sys; sys.exit(not importlib.util.find_spec('tensorflow'))"]).returncode


def without_tensorflow(logs):
    """An environment in which Python does not find it."""
    place = logs.path / "hidden"
    place.mkdir()
    (place / "tensorflow.py").write_text('raise ImportError("as if it was not installed")\n')
    return {"PYTHONPATH": str(place)}


def tell(found, words):
    """The table, and what is not the data server's; until all has come over ours, and over the stock one."""
    rows = [(name, *(f"{middle(runs, key):.2f}" if key in runs[0] else "" for key in ("answers", "runs", "all", "asked", "python_cpu", "server_cpu")))
            for name, runs in found.items()]
    print(f"\n{words}:", flush=True)
    programs.table(("", "HTTP answers", "all runs listed", "all has come", "asked for", "CPU s of Python", "CPU s of the server"), rows)
    ours, stock, floor, own = (middle(found[name], "all") for name in found)
    work, stock_work = (middle(found[name], "python_cpu") + middle(found[name], "server_cpu") for name in list(found)[:2])
    print(f"\nours / stock: {ours / stock:.2f} of the time, {work / stock_work:.2f} of the processor time. Over a server that has "
          f"loaded before, which no data server can be faster than: {floor / stock:.2f}, of which its start is {own / stock:.2f}. Beyond "
          f"that ours takes {ours - floor:.2f} s, the stock one {stock - floor:.2f} s: {(ours - floor) / (stock - floor):.2f} of it.",
          flush=True)
    return rows, ours, stock


def run(options):
    python, server = programs.peer_python("tensorboard_data_server"), programs.program(options.build, "eventlog-server").resolve()
    all_rows = []
    print(f"\ntensorboard_start: TensorBoard over {RUNS} runs of 10,000 points, seconds from its start; medians of {options.rounds} "
          "rounds", flush=True)
    with Logs(options.build) as logs:
        log, empty = logs.make("curves", RUNS), logs.path / "empty"
        empty.mkdir()
        kinds = {"without TensorFlow": without_tensorflow(logs)}
        if has_tensorflow(python):
            kinds["with TensorFlow"] = {}
        for words, environment in kinds.items():
            found = {"eventlog-server": [], "tensorboard-data-server": [], LOADED: [], "an empty log": []}
            for _ in range(options.rounds):
                for name, loader, logdir, runs, *series in (
                        ("eventlog-server", server, log, RUNS), ("tensorboard-data-server", "stock", log, RUNS),
                        (LOADED, server, log, RUNS, TAGS * RUNS), ("an empty log", server, empty, 0)):
                    found[name].append(ask(python, loader, logs, logdir, runs, environment, *series))
            rows, ours, stock = tell(found, f"TensorBoard {words}")
            all_rows += rows
            summary.add(f"TensorBoard {words}, {RUNS} runs: until all has come by HTTP", "s", ours, stock, "its data server",
                        measured=[run["all"] for run in found["eventlog-server"]])
    return all_rows
