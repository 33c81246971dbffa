"""Every figure that the five published comparisons state, and what of ours stands beside each.

The figures are those of the reports themselves: ResNet-32 on CIFAR-10 with Parallax, Show and Tell with TensorFlow, Horovod
and Parallax, an LSTM on MNIST with the same three, ResNet-50 with Mirrored and CollectiveAllReduce, a CNN on MNIST on up to
8 GPUs. Speeds are steps a second, accuracies and precisions parts of 1, epochs seconds.
"""
import dataclasses
import typing

# Global steps a second on nodes with one worker and one server each, to about step 1,400; precision, which was also the best
# one, at the last step of each. One line of the log, near step 700, and the speed of PS while another job ran.
PARALLAX = {"mpi": {"global_step/s": 0.9, "precision": 0.796, "step": 3500},
            "ps": {"global_step/s": 0.97, "precision": 0.774, "step": 2600}}
PARALLAX_LOG_LINE, PARALLAX_BESIDE_A_JOB = 0.912595, 0.189

# The mean of steps 101 to 200, on 2 workers.
IM2TXT = {"TensorFlow": 0.157594, "Horovod": 0.150986, "Parallax": 0.137008}

# step: accuracy (of each worker where they differ), steps a second of each worker
LSTM = {
    "TensorFlow": {0: ([0.1070, 0.1028], [377.4, 369.2]), 50: ([0.4729, 0.4947], [14.79, 12.25]),
                   100: ([0.6838, 0.7344], [11.82, 11.75]), 150: ([0.7740, 0.7797], [11.59, 11.63])},
    "Horovod": {0: ([0.1609], []), 50: ([0.4279], [12.42, 12.73, 12.13]), 100: ([0.6284], [12.11, 11.59, 12.04]),
                150: ([0.7302], [12.12, 12.32, 11.89]), 200: ([0.7732], [11.61, 11.08, 11.39]),
                250: ([0.8109], [10.76, 10.66, 10.70])},
    "Parallax": {0: ([0.867], []), 50: ([0.886], [8.77, 8.83, 8.85]), 100: ([0.8947], [9.73, 9.92, 9.84]),
                 150: ([0.9058], [9.17, 9.25, 9.19]), 200: ([0.8939], [9.04, 9.09, 9.03]),
                 250: ([0.9203], [9.69, 9.72, 9.45])},
}

# Global steps a second on 1, 2 and 3 machines of 8 GPUs.
MIRRORED = 1.26
COLLECTIVE = [1.06, 1.98, 2.925]

# GPUs: seconds of an epoch of training and of testing, and the report's percentages of one GPU's speed.
EPOCHS = {
    "shared weights": {1: (7.234, 0.412, 100, 100), 2: (3.902, 0.231, 185, 178), 4: (2.311, 0.242, 313, 170),
                       8: (2.173, 0.162, 333, 254)},
    "all-sum": {1: (7.348, 0.415, 100, 100), 2: (3.877, 0.229, 190, 181), 4: (2.208, 0.143, 333, 290),
                8: (1.448, 0.095, 507, 435)},
}
EPOCH_BATCH, EPOCH_STEPS, TEST_IMAGES = 1024, 53, 9216

# The strategy here that does what theirs did.
OURS = {"TensorFlow": "ps", "Horovod": "mpi", "Parallax": "hybrid", "CollectiveAllReduce": "ring", "Mirrored": "mirrored",
        "shared weights": "mirrored:weights=shared", "all-sum": "mirrored"}


@dataclasses.dataclass
class Pair:
    """One published figure, and ours: None where it was not measured."""
    figure: str
    at: str  # "step 50", or nothing
    system: str
    workers: int
    published: float
    ours: typing.Optional[float] = None
    note: str = ""  # why the two are not to be compared as they are
    worker: int = 0  # whose figure it is; 0: of all
    never: str = ""  # why nothing here stands beside it

    @property
    def strategy(self):
        return OURS.get(self.system.split(",")[0], self.system)

    @property
    def ratio(self):
        return self.ours / self.published if self.ours is not None else None


def over(x, y):
    return x / y if x and y else None


def resnet32(measured):
    speeds = {how: measured.median(how, 3, "steps_per_second") for how in PARALLAX}
    pairs = []
    for how, theirs in PARALLAX.items():
        at = f"step {theirs['step']}"
        pairs.append(Pair("global_step/s", "", how, 3, theirs["global_step/s"], speeds[how], "other machines"))
        pairs.append(Pair("against mpi", "", how, 3, theirs["global_step/s"] / PARALLAX["mpi"]["global_step/s"],
                          over(speeds[how], speeds["mpi"])))
        pairs.append(Pair("precision", at, how, 3, theirs["precision"], measured.median(how, 3, "precision_at_end"),
                          f"ours after {measured.steps} steps"))
    pairs.append(Pair("global_step/s", "a log line", "mpi", 3, PARALLAX_LOG_LINE, never="its strategy is not said"))
    pairs.append(Pair("global_step/s", "beside a job", "ps", 3, PARALLAX_BESIDE_A_JOB, never="another job ran; repeated, it was 0.9"))
    return pairs


def show_and_tell(measured):
    pairs = []
    speeds = {system: measured.median(OURS[system], 2, "steps_101_200_per_second") for system in IM2TXT}
    for system, theirs in IM2TXT.items():
        pairs.append(Pair("steps/s", "", system, 2, theirs, speeds[system], "other machines, another size"))
        pairs.append(Pair("against TensorFlow", "", system, 2, theirs / IM2TXT["TensorFlow"],
                          over(speeds[system], speeds["TensorFlow"])))
    return pairs


def mnist_lstm(measured):
    pairs = []
    for system, steps in LSTM.items():
        # TensorFlow's were two workers and a server, which each measured the accuracy for itself.
        how, workers = OURS[system], 2 if system == "TensorFlow" else 3
        for step, (accuracies, speeds) in steps.items():
            at = f"step {step}"
            for number, accuracy in enumerate(accuracies, 1):
                pairs.append(Pair("accuracy", at, system, workers, accuracy, measured.precision_at(how, workers, step),
                                  "theirs continued a trained checkpoint" if system == "Parallax" else "",
                                  number if len(accuracies) > 1 else 0))
            for number, speed in enumerate(speeds, 1):
                pairs.append(Pair("steps/s", at, system, workers, speed,
                                  measured.speed_at(how, workers, step) if step else None, "other machines", number,
                                  "" if step else "theirs is of an interval without training"))
    return pairs


def resnet50(measured):
    pairs = []
    one = measured.median("ring", 1, "samples_per_second")
    for machines, theirs in enumerate(COLLECTIVE, 1):
        at = f"{machines} x 8 GPUs"
        ours = measured.median("ring", machines, "samples_per_second")
        pairs.append(Pair("global_step/s", at, "CollectiveAllReduce", machines, theirs,
                          measured.median("ring", machines, "steps_per_second"), "other machines, another size"))
        pairs.append(Pair("against one machine", at, "CollectiveAllReduce", machines, theirs / COLLECTIVE[0], over(ours, one)))
    mirrored, ring = (measured.median(how, 2, "samples_per_second") for how in ("mirrored", "ring"))
    pairs.append(Pair("global_step/s", "8 GPUs", "Mirrored", 2, MIRRORED, measured.median("mirrored", 2, "steps_per_second"),
                      "other machines, another size"))
    pairs.append(Pair("against all-reduce", "8 GPUs", "Mirrored", 2, MIRRORED / COLLECTIVE[0], over(mirrored, ring)))
    return pairs


def mnist_cnn(measured):
    pairs = []
    for system, by_workers in EPOCHS.items():
        one = measured.epoch(OURS[system], 1)
        for workers, (train, test, train_percent, test_percent) in by_workers.items():
            ours = measured.epoch(OURS[system], workers)
            for figure, theirs, seconds, percent, first in (("train", train, ours.train, train_percent, one.train),
                                                            ("test", test, ours.test, test_percent, one.test)):
                faster = over(first, seconds)
                pairs.append(Pair(f"{figure} s", "", system, workers, theirs, seconds, "other machines"))
                pairs.append(Pair(f"{figure} %", "", system, workers, percent, 100 * faster if faster else None))
    return pairs
