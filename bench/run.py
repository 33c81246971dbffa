#!/usr/bin/env python3
"""The benchmarks: tables with the peers beside us. `make bench` runs this; BENCH_ARGS='--only NAME ...' picks.

A peer that is not installed is named as missing; the rest runs. Figures of one machine compare only within one run.
"""
import argparse
import os
import subprocess
import sys

import all_reduce
import checkpoint_speed
import data_server
import data_server_latency
import evaluation_speed
import evaluation_load
import event_writing
import growth
import log_reading_speed
import many_images
import mnist_lstm_accuracy
import model_speed
import plan_cells
import processors
import programs
import python_speed
import resnet32_accuracy
import resnet32_speed
import resnet50_curve
import resnet50_speed
import saving_speed
import slow_network
import start_up
import strategy_agreement
import summary
import table_speed
import tensorboard_start
import training_cost
import value_speed


def train_step(options):
    """bench/train_step.c with each model."""
    path, outputs = programs.helper(options.build, "bench/train_step"), []
    for model, steps in (("lenet", 50), ("cifar10_cnn", 10), ("resnet32", 6)):
        print(f"\n{model}, batch {options.batch_size}, training and inference alone:", flush=True)
        outputs.append(subprocess.run([path, model, str(options.batch_size), str(steps)], env=programs.ENVIRONMENT))
    return [run for run in outputs if run.returncode == 0]


# name: what runs it, with the options, and is true where there are results; what --help says of it
BENCHMARKS = {
    "train_step": (train_step, "images/s of one rank of each model without input and exchange, and where the time goes"),
    "resnet32_speed": (resnet32_speed.run,
                       "images/s of ResNet-32 training: our trainer with 1 and 2 ranks and threads, PyTorch, TensorFlow"),
    "resnet50_speed": (resnet50_speed.run, "images/s of processor time of ResNet-50 training at 224x224: our trainer, PyTorch"),
    "resnet50_curve": (resnet50_curve.run, "losses and test accuracy of ResNet-50 at 64x64 on CIFAR-10, 2 workers: ours and PyTorch, "
                       "from the same weights on the same batches"),
    "training_cost": (training_cost.run, "processor time of a step and peak memory of ResNet-32 training, float32 and bfloat16: "
                      "ours, PyTorch, TensorFlow"),
    "model_speed": (model_speed.run, "processor time of a step of lenet, cifar10_cnn, mnist_lstm, mnist_cnn: ours, PyTorch by itself and "
                    "compiled, TensorFlow"),
    "resnet32_accuracy": (resnet32_accuracy.run, "test precision after the same few hundred steps: ours and PyTorch"),
    "mnist_lstm_accuracy": (mnist_lstm_accuracy.run, "test accuracy of the homework's LSTM on MNIST, 3 workers, beside TensorFlow "
                            "and the published curve"),
    "many_images": (many_images.run, "200,000 small images from disk with 512 MiB of memory: how long the training waits for input"),
    "evaluation_load": (evaluation_load.run, "1,000 checkpoints at 10 and 300 at 100 a second, five kept: how many are "
                        "evaluated, missed, twice"),
    "evaluation_speed": (evaluation_speed.run, "images/s of evaluating checkpoints, and what a checkpoint costs in all: "
                         "ours, PyTorch, TensorFlow"),
    "start_up": (start_up.run, "how soon each program answers, and an evaluation begins after its checkpoint appears"),
    "strategy_agreement": (strategy_agreement.run, "how far the losses of other numbers of ranks and of the parameter "
                           "server part from one rank's"),
    "all_reduce": (all_reduce.run, "ms of an all-reduce of two ranks on one host: ours, MPI_Allreduce, gloo"),
    "slow_network": (slow_network.run, "ms a step of lenet between hosts at 10 Mbit/s, beside what the wire takes"),
    "table_speed": (table_speed.run, "words/s of a language model between 2 to 8 slow hosts: hybrid, all-gather and dense, where "
                    "which is fastest, and whether the weights are equal"),
    "plan_cells": (plan_cells.run, "ms a step of lenet between hosts at 10 Mbit/s, as trainer plan predicts and as measured"),
    "checkpoint_speed": (checkpoint_speed.run, "MB/s of writing and reading checkpoints on a tmpfs: ours, TensorFlow, "
                         "PyTorch, safetensors"),
    "saving_speed": (saving_speed.run, "what a checkpoint every 10 steps costs a step: ResNet-32, 100 MB of weights"),
    "event_writing": (event_writing.run, "scalars/s into one event file: ours, PyTorch, tensorboardX, TensorFlow"),
    "value_speed": (value_speed.run, "ms of a histogram of 10^6 values and of a picture, beside PyTorch"),
    "export_speed": (log_reading_speed.export_speed, "10^7 scalars to CSV, beside tbparse"),
    "verify_speed": (log_reading_speed.verify_speed,
                     "GB/s of verify for logs of several kinds, beside TensorBoard's own file loader"),
    "python_speed": (python_speed.run, "the Python package: points, histograms, pictures written, points read, beside PyTorch, "
                     "tensorboardX, EventAccumulator and tbparse"),
    "data_server": (data_server.run, "seconds, memory and open files until eventlog-server has loaded a log, and ms of an answer, "
                    "beside TensorBoard's data server; and the same, started again"),
    "data_server_latency": (data_server_latency.run, "ms of ReadScalars at rest, while 1 GB loads, and for 50 clients, beside "
                            "TensorBoard's data server"),
    "tensorboard_start": (tensorboard_start.run, "seconds until the whole of TensorBoard shows 500 runs, over each data server"),
    "growth": (growth.run, "how time and memory of each command of eventlog grow with points, tags and runs"),
    "inspect_speed": (log_reading_speed.inspect_speed, "5,000 runs, and 10^7 points of one file, beside EventAccumulator "
                      "and tensorboard --inspect"),
}


def measured(name, options):
    """Whether there are results."""
    others = processors.Others()
    try:
        done = bool(BENCHMARKS[name][0](options))
    except programs.Missing as missing:
        print(f"\n{name}: missing: {missing}")
        return False
    if done and (note := others.note()):
        print(f"{name}: {note}", flush=True)
    return done


def main():
    listed = "".join(f"\n  {name:20}{sentence}" for name, (_, sentence) in BENCHMARKS.items())
    parser = argparse.ArgumentParser(description=f"{__doc__}{listed}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="where the programs are (build)")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, help="run this one; may be given again")
    parser.add_argument("--cifar10-dir", help="CIFAR-10 in its binary version; without it noise is trained on")
    parser.add_argument("--mnist-dir", help="MNIST, for mnist_lstm_accuracy")
    parser.add_argument("--lstm-seeds", type=int, default=3, help="mnist_lstm_accuracy: trainings of each side (3)")
    parser.add_argument("--json", metavar="FILE", help="write the results of the last table to FILE")
    parser.add_argument("--compare", metavar="FILE", help="show beside them those that --json wrote in an earlier run, and say which changed by more than their spread")
    parser.add_argument("--batch-size", type=int, default=128, help="a process (128)")
    speed = parser.add_argument_group("resnet32_speed")
    speed.add_argument("--steps", type=int, default=100, help="(100)")
    speed.add_argument("--warm-up", type=int, default=20, help="steps not counted (20)")
    speed.add_argument("--log-every", type=int, default=10, help="(10)")
    speed.add_argument("--rounds", type=int, default=3, help="of evaluation_speed, event_writing, data_server and tensorboard_start, too (3)")
    speed.add_argument("--without", action="append", default=[], metavar="WORD",
                       help="leave out the lines that hold this word")
    deep = parser.add_argument_group("resnet50_speed")
    for what, number, text in (("batch", 8, "images a step"), ("steps", 3, "after the first"), ("rounds", 3, "of each")):
        deep.add_argument(f"--resnet50-{what}", type=int, default=number, help=f"{text} ({number})")
    curve = parser.add_argument_group("resnet50_curve")
    for what, number, text in (("steps", 500, "of each training"), ("seeds", 3, "trainings of each side")):
        curve.add_argument(f"--curve-{what}", type=int, default=number, help=f"{text} ({number})")
    accuracy = parser.add_argument_group("resnet32_accuracy")
    accuracy.add_argument("--accuracy-steps", type=int, default=300, help="(300)")
    accuracy.add_argument("--evaluate-every", type=int, default=100, help="(100)")
    accuracy.add_argument("--seeds", type=int, default=2, help="trainings of each side (2)")
    parser.add_argument("--images", type=int, default=200_000, help="many_images: files (200000)")
    parser.add_argument("--agreement-seeds", type=int, default=4, help="strategy_agreement: trainings of each (4)")
    parser.add_argument("--checkpoint-rounds", type=int, default=5, help="checkpoint_speed: (5)")
    parser.add_argument("--saving-rounds", type=int, default=5, help="saving_speed: (5)")
    network = parser.add_argument_group("slow_network")
    network.add_argument("--network-megabits", type=int, default=10, help="a second, of each host in each direction (10)")
    network.add_argument("--network-congestion", default="reno", help="of TCP; 'kernel': what the kernel takes by itself (reno)")
    network.add_argument("--network-steps", type=int, default=30, help="(30)")
    network.add_argument("--network-rounds", type=int, default=3, help="the one in the middle counts (3)")
    tables = parser.add_argument_group("table_speed")
    for what, some, text in (("words", "500,10000,100000", "vocabularies"), ("hosts", "", "instead of those of each vocabulary")):
        tables.add_argument(f"--table-{what}", type=lambda text: [int(n) for n in text.split(",") if n], default=some, metavar="LIST",
                            help=f"{text} ({some})" if some else text)
    tables.add_argument("--table-megabits", type=int, help="a second of each host, instead of that of each vocabulary")
    tables.add_argument("--table-queue", type=int, default=200, metavar="MS", help="of a link's rate waits for it at most (200)")
    tables.add_argument("--table-steps", type=int, default=3, help="of which the first is not counted (3)")
    tables.add_argument("--table-rounds", type=int, default=2, help="the median of which counts (2)")
    logs = parser.add_argument_group("export_speed, verify_speed, inspect_speed, data_server, data_server_latency")
    logs.add_argument("--points", type=int, default=10_000_000, help="of the large file (10000000)")
    logs.add_argument("--log-bytes", type=int, default=10**9, help="of each log that is verified, and of the one that loads in data_server_latency (1000000000)")
    sizes = parser.add_argument_group("growth", "powers of ten, two at least; 4,5,6,7,7.7 points take half an hour")
    for by, powers in (("points", "4,5,6"), ("tags", "2,3,4"), ("runs", "1,2,3")):
        sizes.add_argument(f"--growth-{by}", type=growth.powers_of, default=powers, metavar="LIST", help=f"({powers})")
    parser.add_argument("--num-examples", type=int, default=10000, help="evaluation_speed, resnet50_curve: images (10000)")
    options = parser.parse_args()
    earlier, roofs = summary.read(options.compare) if options.compare else ([], {})
    if kernels := os.environ.get("OPENBLAS_CORETYPE"):
        programs.say(f"OPENBLAS_CORETYPE is set: our matrix products use the kernels of {kernels}, which may not be the fastest here")
    done = [measured(name, options) for name in BENCHMARKS if not options.only or name in options.only]
    if summary.RESULTS:
        summary.measure_roofs(options.build)
        summary.show(earlier, roofs)
    if options.json:
        summary.write(options.json)
    sys.exit(0 if any(done) else 1)


main()
