"""The cells of the matrix of equal weights (same_bits.py): which trainings must end with the same bits, and how each begins.

A training is a model, a strategy with its options, a number of workers and a layout: this host, or the ranks spread over
hosts of a bridge. A cell is one training, or two: one that is killed in the middle of step 37, and another that resumes it.
"""
import dataclasses
import hashlib
import itertools
import pathlib

STEPS, KILLED_AT, SAVED_EVERY, MICRO_SHARDS = 50, 37, 10, 8
WORKERS = (1, 2, 3, 4, 5, 8)
BUCKETS = (1 << 10, 64 << 10, 64 << 20)
SERVERS = (1, 2, 3)
LAYOUTS = {"one host": 1, "2 hosts": 2, "3 hosts": 3, "4 hosts": 4, "2 hosts, in turn": 2}
HOSTS = "abcd"


@dataclasses.dataclass(frozen=True)
class Model:
    data: str
    batch: int           # of all workers together: micro-shards of batch / MICRO_SHARDS
    size: int            # of its gradient in bytes, about
    tables: bool = False  # hybrid has servers only for these
    of: str = ""         # what --model is given, if that is another name or a file
    options: tuple = ()  # how it is trained: words
    few: bool = False    # not all cells: only those that resume others


MODELS = {"lenet": Model("fashion-mnist", 64, 87 << 10), "next_word": Model("text", 16, 7700 << 10, tables=True),
          "resnet32": Model("cifar10", 8, 1820 << 10),
          "lenet_clipped": Model("fashion-mnist", 64, 87 << 10, of="lenet", options=("--clip-norm", 0.5), few=True),
          "next_word_clipped": Model("text", 16, 7700 << 10, True, "next_word", ("--clip-norm", 0.2), few=True),
          # A cell of next_word takes 3 to 35 s of processor time, most of it for its 7.7 MB a step in small buckets.
          "next_word_narrow": Model("text", 16, 665 << 10, True, f"{pathlib.Path(__file__).parent}/next_word_narrow.model")}
MOST_MESSAGES = 8e6  # a training sends: more take many minutes


@dataclasses.dataclass(frozen=True)
class Training:
    model: str
    strategy: str        # --run-option; mirrored also with its weights
    workers: int
    layout: str = "one host"
    servers: int = 0
    options: tuple = ()  # others of the strategy, as (name, value) pairs

    def __str__(self):
        servers = f" + {self.servers} server{'s' * (self.servers > 1)}" if self.servers else ""
        options = "".join(f" {name.removeprefix('--')} {value}" for name, value in self.options)
        return f"{self.model} {self.strategy}, {self.workers} worker{'s' * (self.workers > 1)}{servers}, {self.layout}{options}"

    @property
    def ranks(self):
        """Those that mpirun starts; 0: without it."""
        return 0 if self.strategy.split()[0] in ("single", "mirrored") else self.workers + self.servers

    def arguments(self):
        """What its strategy adds to the trainer's line."""
        name, *weights = self.strategy.split()
        words = ["--run-option", name]
        words += ["--threads", self.workers, "--weights", *weights] if weights else []
        words += ["--servers", self.servers] if self.servers else []
        return [str(word) for word in [*words, *itertools.chain(*self.options)]]

    def shards(self, worker):
        """How many micro-shards a process computes in a step: that of one worker, or all of them without mpirun."""
        if not self.ranks:
            return MICRO_SHARDS
        return (worker + 1) * MICRO_SHARDS // self.workers - worker * MICRO_SHARDS // self.workers

    def messages(self):
        """About how many are sent, where each bucket goes in messages of its own."""
        options = dict(self.options)
        buckets = MODELS[self.model].size / min(options.get("--bucket-bytes", 60 << 10), MODELS[self.model].size)
        gathered = ("--sparse-exchange", "all-gather") in self.options
        tables = (self.servers or gathered) and MODELS[self.model].tables  # of which the rows that are used travel alone
        if not self.ranks or options.get("--transport") == "shared" or tables:
            return 0
        return STEPS * buckets * 2 * self.workers * (1 if self.strategy == "ps" else self.workers - 1)

    def places(self):
        """[(host, ranks)] of a layout with several: each has as many as another, or one more."""
        count = LAYOUTS[self.layout]
        return [(HOSTS[host], (host + 1) * self.ranks // count - host * self.ranks // count) for host in range(count)]


@dataclasses.dataclass(frozen=True)
class Cell:
    training: Training
    killed: Training = None  # the one that it resumes
    victim: int = 0          # its rank that is killed

    def __str__(self):
        return f"{self.killed}; rank {self.victim} killed, resumed: {self.training}" if self.killed else f"{self.training}"

    @property
    def strategy(self):
        """The row of the table."""
        return f"{self.training.strategy}{', resumed' if self.killed else ''}"

    @property
    def layout(self):
        return self.training.layout

    @property
    def is_slow(self):
        return any(training.messages() > MOST_MESSAGES for training in (self.training, self.killed) if training)


def bucket(size):
    return ("--bucket-bytes", size)


def on_one_host(model):
    """Every number of workers with every bucket and every number of servers."""
    def cells(strategy, counts, servers=(0,), options=((),)):
        for workers, size, count, more in itertools.product(counts, BUCKETS, servers, options):
            yield Cell(Training(model, strategy, workers, "one host", count, (bucket(size), *more)))

    yield from cells("single", (1,))
    yield from cells("mpi", WORKERS, options=[(("--transport", "shared"),), (("--transport", "mpi"),)])
    yield from cells("ring", WORKERS)
    yield from cells("ps", WORKERS, SERVERS)
    if MODELS[model].tables:
        yield from cells("hybrid", WORKERS, SERVERS)
        yield from cells("mpi", WORKERS, options=[(("--sparse-exchange", "all-gather"),)])
    else:  # the same as mpi: all ranks are workers
        yield from cells("hybrid", WORKERS)
    yield from cells("mirrored shared", WORKERS)
    yield from cells("mirrored copied", WORKERS)


def on_several_hosts(model):
    """Every number of workers and servers on every layout, and with each of these one size of buckets after the other."""
    pushing = itertools.cycle([(("--local-aggregation", "auto"),), (("--local-aggregation", "off"),)])
    reducing = itertools.cycle([(("--transport", "two-level"),), (("--transport", "mpi"), ("--partitions", 5)),
                                (("--transport", "auto"), ("--partitions", 16))])
    for layout, workers in itertools.product([name for name, hosts in LAYOUTS.items() if hosts > 1], WORKERS):
        sizes = [bucket(BUCKETS[(WORKERS.index(workers) + number) % len(BUCKETS)]) for number in range(len(BUCKETS))]
        made = [Training(model, "mpi", workers, layout, 0, (sizes[number], ("--transport", transport)))
                for number, transport in enumerate(("two-level", "mpi"))]
        made += [Training(model, "ring", workers, layout, 0, (sizes[0],))]
        if MODELS[model].tables:
            made += [Training(model, "mpi", workers, layout, 0, (sizes[2], ("--sparse-exchange", "all-gather")))]
        for servers, size in zip(SERVERS, sizes):
            made += [Training(model, "ps", workers, layout, servers, (size, *next(pushing)))]
            if MODELS[model].tables:
                made += [Training(model, "hybrid", workers, layout, servers, (size, *next(reducing), *next(pushing)))]
        if not MODELS[model].tables:
            made += [Training(model, "hybrid", workers, layout, 0, (sizes[1],))]
        yield from (Cell(training) for training in made if training.ranks >= LAYOUTS[layout])


def resumed(model):
    """Every strategy goes on where every other one was killed, with another number of workers."""
    ways = ["single", "mpi", "ring", "ps", "hybrid", "mirrored shared", "mirrored copied"]
    counts, sizes, servers = itertools.cycle(WORKERS[1:]), itertools.cycle(BUCKETS), itertools.cycle(SERVERS)
    layouts = itertools.cycle(LAYOUTS)

    def training(strategy):
        workers, size, count, layout = 1 if strategy == "single" else next(counts), next(sizes), next(servers), next(layouts)
        count *= strategy == "ps" or (strategy == "hybrid" and MODELS[model].tables)
        made = Training(model, strategy, workers, layout, count, (bucket(size),))
        return made if made.ranks >= LAYOUTS[layout] else dataclasses.replace(made, layout="one host")

    for number, (before, after) in enumerate(itertools.permutations(ways, 2)):
        first, second = training(before), training(after)
        while second.workers == first.workers:
            second = dataclasses.replace(second, workers=next(counts))
        if second.ranks < LAYOUTS[second.layout]:
            second = dataclasses.replace(second, layout="one host")
        yield Cell(second, first, number % first.workers if first.ranks else 0)


def reference(model):
    """What all others are compared with."""
    return Cell(Training(model, "single", 1))


def cells(models):
    """All, the models in turn, each in an order drawn by names: what is done when a run is ended is a fair part of it."""
    def drawn(model):
        made = [*([] if MODELS[model].few else [*on_one_host(model), *on_several_hosts(model)]), *resumed(model)]
        return [reference(model), *sorted(made, key=lambda cell: hashlib.sha256(f"{cell}".encode()).digest())]

    for several in itertools.zip_longest(*map(drawn, models)):
        yield from filter(None, several)
