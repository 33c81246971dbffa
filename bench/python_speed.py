"""How fast the Python package writes and reads, in processor time of the whole process (its threads included), each job in
processes of its own, alternating with the peers': PyTorch's and tensorboardX's writers, EventAccumulator and tbparse."""
import json
import pathlib
import statistics
import subprocess

import log_reading_speed
import programs
import summary

WRITERS = {"evalboard": "from evalboard import SummaryWriter",
           "torch": "from torch.utils.tensorboard import SummaryWriter",
           "tensorboardX": "from tensorboardX import SummaryWriter"}
# What is written, how often, and how much faster than the better peer it should be.
KINDS = {"scalar": ("w.add_scalar('loss', 0.5 + i, i)", {"evalboard": 400_000, "torch": 20_000, "tensorboardX": 10_000}, 20),
         "histogram": ("w.add_histogram('weights', values, i)", {"evalboard": 40, "torch": 6, "tensorboardX": 6}, 5),
         "image": ("w.add_image('picture', pixels, i)", {"evalboard": 20, "torch": 8, "tensorboardX": 8}, 3)}
WRITE = """
import json, resource, sys, tempfile
import numpy as np
{writer}
def used():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime
random = np.random.default_rng(1)
values = random.standard_normal(10**6)
y, x = np.mgrid[0:512, 0:512]
pixels = np.stack([np.sin(x / 40), np.cos(y / 30), np.sin((x + y) / 50)]) / 2 + 0.5 + random.random((3, 512, 512)) * 0.02
pixels = pixels.clip(0, 1)
with tempfile.TemporaryDirectory() as place:
    w = SummaryWriter(place)
    i = 0
    {call}
    w.flush()
    start = used()
    for i in range({count}):
        {call}
    w.close()
    print(json.dumps((used() - start) / {count}))
"""
READERS = {"evalboard": "import evalboard; log = evalboard.read(sys.argv[1]); n = sum(map(len, log.values()))",
           "EventAccumulator": "from tensorboard.backend.event_processing.event_accumulator import EventAccumulator\n"
                               "a = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0}).Reload()\n"
                               "import numpy as np\n"
                               "arrays = {t: np.array(a.Scalars(t)) for t in a.Tags()['scalars']}; n = sum(map(len, arrays.values()))",
           "tbparse": "import tbparse; frame = tbparse.SummaryReader(sys.argv[1]).scalars; n = len(frame)"}
# What the readers load, before memory is measured; where a name says it all, the module of that name.
MODULES = {"evalboard": "evalboard.reader", "EventAccumulator": "tensorboard.backend.event_processing.event_accumulator"}
READ = """
import json, resource, sys
import numpy, importlib
importlib.import_module({module!r})
before = resource.getrusage(resource.RUSAGE_SELF)
{code}
after = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                  (after.ru_maxrss - before.ru_maxrss) * 1024, n]))
"""


def answer(python, code, build, *arguments):
    environment = {**programs.ENVIRONMENT, "PYTHONPATH": str(programs.ROOT / "python"), "CUDA_VISIBLE_DEVICES": "",
                   "EVALBOARD_LIBRARY": str(pathlib.Path(build).resolve() / "product/libeventlog.so.0"), "TF_CPP_MIN_LOG_LEVEL": "3"}
    run = subprocess.run([python, "-W", "ignore", "-c", code, *map(str, arguments)], env=environment, capture_output=True, text=True)
    if run.returncode:
        raise programs.Missing(run.stderr.strip().splitlines()[-1])
    return json.loads(run.stdout.splitlines()[-1])


def writing(options):
    python, results = programs.peer_python("torch"), []
    for kind, (call, counts, wanted) in KINDS.items():
        times = {name: [] for name in WRITERS}
        for _ in range(options.rounds):
            for name, writer in WRITERS.items():
                code = WRITE.format(writer=writer, call=call, count=counts[name])
                times[name].append(answer(python, code, options.build))
        middle = {name: statistics.median(t) for name, t in times.items()}
        peer = min((name for name in WRITERS if name != "evalboard"), key=middle.get)
        ratio = middle[peer] / middle["evalboard"]
        summary.add(f"add_{kind} in Python, processor time", "µs", 1e6 * middle["evalboard"], 1e6 * middle[peer], peer, None, "compute",
                    [1e6 * t for t in times["evalboard"]])
        rows = [(name, f"{t * 1e6:,.2f}", f"{1 / t:,.0f}") for name, t in middle.items()]
        print(f"\npython_speed: add_{kind}, processor time; {ratio:.1f} times the better peer (wanted: {wanted})", flush=True)
        programs.table(("", "µs a call", "a second"), rows)
        results.append(ratio)
    return results


def reading(options):
    python, rows, speeds, files, measured = programs.peer_python("tbparse"), [], {}, {}, []
    with log_reading_speed.Logs(options.build) as logs:
        for name, code in READERS.items():
            for count in (options.points // 10, options.points) if name == "evalboard" else (options.points // 100,):
                file = files[count] = files.get(count) or logs.make("scalars", count)
                module = MODULES.get(name, name)
                runs = [answer(python, READ.format(code=code, module=module), options.build, file.parent)
                        for _ in range(options.rounds if name == "evalboard" else 1)]
                seconds, grown, n = min(runs)
                speeds[name] = seconds / n
                if name == "evalboard":
                    measured = [1e9 * run[0] / n for run in runs]
                rows.append((f"{name}, {n:,} points", f"{seconds:.2f}", f"{n / seconds:,.0f}", f"{grown / n:.1f}"))
    print("\npython_speed: a log into arrays, processor time; "
          f"{speeds['tbparse'] / speeds['evalboard']:.0f} times tbparse (wanted: 150)", flush=True)
    programs.table(("", "seconds", "points a second", "bytes a point"), rows)
    peer = min((name for name in READERS if name != "evalboard"), key=speeds.get)
    summary.add("a point read into arrays in Python, processor time", "ns", 1e9 * speeds["evalboard"], 1e9 * speeds[peer], peer, None,
                "memory", measured)
    return [speeds]


def run(options):
    return [*writing(options), *reading(options)]
