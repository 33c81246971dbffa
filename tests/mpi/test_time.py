"""What the time of the ranks is spent on: a slow rank is named with what it costs, while the training runs and at the
end; tables, JSON and curves add up."""
import json
import re

import pytest

import ranks
from interposed import SLOW_PRODUCTS, interposed

LENET = ["--model", "lenet", "--data", "fashion-mnist", "--batch-size", 8]
PHASES = ["input", "forward", "backward", "waiting", "reducing", "updating", "saving", "other"]
WORDS = r"mostly in (forward|backward)"


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """The words that start one rank whose matrix products take 3 ms longer each."""
    library = interposed(tmp_path_factory.mktemp("slow"), "slow_products", SLOW_PRODUCTS)["LD_PRELOAD"]
    return ["env", f"LD_PRELOAD={library}", "SLOW_MICROSECONDS=3000", str(ranks.TRAINER)]


def train(count, slow, options):
    """With `slow`, rank 1 is started by these words."""
    trainer = [str(ranks.TRAINER), *map(str, options)]
    return ranks.finish(ranks.together((1, trainer), (1, [*(slow or trainer[:1]), *trainer[1:]]), (count - 2, trainer)))


def check_sums(summary, count):
    """The phases of each rank are its time, and that is the time of the training."""
    assert [row["rank"] for row in summary["time"]] == list(range(count))
    for row in summary["time"]:
        assert sum(row[phase] for phase in PHASES) == pytest.approx(row["seconds"], rel=1e-9)
        assert row["seconds"] == pytest.approx(summary["seconds"], rel=0.02, abs=0.5)
    first = summary["time"][0]
    assert summary["waiting_share"] == pytest.approx(first["waiting"] / first["seconds"], rel=1e-9)
    assert summary["input_waiting_share"] == pytest.approx(first["input"] / first["seconds"], rel=1e-9)


def test_a_slow_rank(slow, tmp_path):
    """Named once while the training runs, since its first step, and at the end, by what the others could have saved."""
    options = [*LENET, "--run-option", "mpi", "--max-steps", 60, "--log-every", 5, "--time", "--json", "--log-dir",
               tmp_path]
    summary, said = train(3, slow, options)
    lines = said.splitlines()
    found = [i for i, line in enumerate(lines) if " slower than the others" in line]
    assert len(found) == 2, said
    running = re.fullmatch(r"rank 1 on host (\S+) is ([\d.]+) times slower than the others since step 0, " + WORDS +
                           r"; waiting for it costs (\d+) % of the time", lines[found[0]])
    ended = re.fullmatch(r"rank 1 on host (\S+) was ([\d.]+) times slower than the others, " + WORDS +
                         r"; waiting for it cost (\d+) % of the time", lines[found[1]])
    assert running and ended, said
    assert any(line.startswith("step:") for line in lines[found[0]:found[1]])
    straggler = summary["straggler"]
    assert straggler["rank"] == 1 and straggler["ratio"] == pytest.approx(float(ended.group(2)), abs=0.051)
    check_sums(summary, 3)
    times = summary["time"]
    # The others waited for it as long as it took longer than they did, less what they were held up themselves.
    busy = [row["seconds"] - row["waiting"] for row in times]
    assert straggler["cost"] == pytest.approx((busy[1] - max(busy[0], busy[2])) / times[1]["seconds"], abs=0.01)
    assert times[1]["waiting"] < min(times[0]["waiting"], times[2]["waiting"])
    table = lines.index("time of each rank, in milliseconds a step:")
    used = [phase for phase in PHASES if any(row[phase] for row in times)]  # input may take no time at all
    titles = lines[table + 1].split()
    assert titles[:len(used) + 1] == ["rank", *used] and {"forward", "backward", "waiting"} <= set(used)
    assert titles[len(used) + 1:] in (["total"], [])  # which is left out where it is too wide
    assert [line.split()[0] for line in lines[table + 2:table + 5]] == ["0", "1", "2"]
    assert lines[table + 5] == "in % of its time:" and max(map(len, lines[table:])) <= 80
    for line in lines[table + 7:table + 10]:
        assert sum(map(float, line.split()[1:])) == pytest.approx(100, abs=0.5)
    curves = ranks.curves(tmp_path)
    groups = {tag.split("/")[0] for tag in curves if tag.split("/")[-1] in PHASES}
    assert groups == {"time", "time_min", "time_mean", "time_max"}
    for phase in PHASES:
        points = {group: curves[f"{group}/{phase}"] for group in sorted(groups)}
        assert len({tuple(step for step, _ in p) for p in points.values()}) == 1
        for i, (step, value) in enumerate(points["time"]):
            assert step % 5 == 0
            assert points["time_min"][i][1] <= min(value, points["time_mean"][i][1])
            assert max(value, points["time_mean"][i][1]) <= points["time_max"][i][1] * (1 + 1e-6)


@pytest.mark.parametrize("options", [[], ["--async"]], ids=["sync", "async"])
def test_servers(options):
    """The server's time is in the table, too."""
    command = [*LENET, "--run-option", "ps", *options, "--max-steps", 12, "--json"]
    summary, said = ranks.train(4, *command, "--time")
    assert "rank 3 is a server: waiting is being idle, a step is an update" in said.splitlines()
    assert [row["server"] for row in summary["time"]] == [False, False, False, True]
    assert sum(row["steps"] for row in summary["time"][:3]) == 12 * (1 if options else 3)
    server = summary["time"][3]
    assert server["steps"] == 12 and server["forward"] == server["backward"] == server["input"] == 0
    assert min(server["waiting"], server["updating"]) > 0 and (server["reducing"] > 0 or options)
    for row in summary["time"]:
        assert sum(row[phase] for phase in PHASES) == pytest.approx(row["seconds"], rel=1e-9)


def test_all_ranks_or_none():
    """Rank 0 would wait for times that nobody sends."""
    options = [*LENET, "--run-option", "mpi", "--max-steps", 3]
    _, said = ranks.train(2, *options, also=[*options, "--time"], status=2)
    assert "the training options: not the same on rank 2 on host" in said


def check_nesting(events):
    """Of one rank: slices of steps one after the other, in each its phases one after the other; all as the format says."""
    assert events == sorted(events, key=lambda e: (e["ts"], -e["dur"]))  # a step before the phases in it
    for event in events:
        assert set(event) == {"ph", "pid", "tid", "ts", "dur", "cat", "name", "args"} and event["dur"] >= 0
        event["ts"], event["dur"] = round(event["ts"] * 1000), round(event["dur"] * 1000)  # whole nanoseconds
    steps = sorted((e for e in events if e["cat"] == "step"), key=lambda e: e["ts"])
    phases = sorted((e for e in events if e["cat"] == "phase"), key=lambda e: e["ts"])
    for slices in (steps, phases):
        for one, next_one in zip(slices, slices[1:]):
            assert one["ts"] + one["dur"] <= next_one["ts"]
    for step in steps:
        inside = [e for e in phases if step["ts"] <= e["ts"] < step["ts"] + step["dur"]]
        assert inside and all(e["args"]["step"] == step["args"]["step"] for e in inside)
        assert all(e["ts"] + e["dur"] <= step["ts"] + step["dur"] for e in inside)
    assert {e["name"] for e in phases} <= set(PHASES)
    return steps, phases


@pytest.mark.parametrize("options", [["--run-option", "mpi"], ["--run-option", "ps"], ["--run-option", "ring"],
                                     ["--run-option", "mpi", "--transport", "two-level"]],
                         ids=["mpi", "ps", "ring", "two-level"])
def test_trace(options, tmp_path):
    """All ranks on one clock: none begins a step before every worker has begun the one before, and a packet is updated
    between the workers' pushes and the end of their step."""
    path = tmp_path / "trace.json"
    path.write_text("an older one")
    summary, said = ranks.train(4, *LENET, *options, "--max-steps", 8, "--trace", path, "--bucket-bytes", 20000, "--json")
    assert "milliseconds" not in said and len(summary["time"]) == 4 and summary["straggler"] is None
    trace = json.loads(path.read_text())
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]
    names = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    assert sorted(names) == [0, 1, 2, 3] and ("server" in names[3]) == ("ps" in options)
    found = {rank: check_nesting([e for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == rank])
             for rank in names}
    workers = [0, 1, 2] if "ps" in options else [0, 1, 2, 3]
    begun = {rank: {e["args"]["step"]: e["ts"] for e in found[rank][0]} for rank in names}
    assert all(sorted(begun[rank]) == list(range(8)) for rank in names)
    for step in range(7):
        assert min(begun[rank][step + 1] for rank in workers) > max(begun[rank][step] for rank in workers)
    buckets = {e["args"].get("bucket") for rank in names for e in found[rank][1] if e["name"] == "reducing"}
    assert {0, 1, 2, 3} <= buckets
    if "ps" in options:
        for step in range(7):
            assert max(begun[rank][step] for rank in workers) < begun[3][step]
            assert begun[3][step] < min(begun[rank][step + 1] for rank in workers)


def test_trace_that_cannot_be_written(tmp_path):
    """Said before the training."""
    for path, says in [(tmp_path, "is a directory; name a file"), (tmp_path / "no" / "trace", "No such file or directory")]:
        _, said = ranks.train(0, *LENET, "--max-steps", 3, "--trace", path, status=2)
        assert says in said and "step: " not in said
