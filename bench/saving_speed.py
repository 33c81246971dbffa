"""What a checkpoint every 10 steps costs a step of training, of ResNet-32 and of a model of 100 MB of weights (with its
momentum 208 MB a checkpoint): written beside the training, and waited for. The large model is four dense layers, as many
weights as ResNet-50 has, but steps of a fraction of its time, so saving weighs more. All has one core, as where each core
of a machine has a rank: what the saver takes, the training lacks. The three take turns in one process, so that
a machine that becomes busier meanwhile slows all of them. What is wanted is of the processor time, since others on the
machine and a slow disk change the time more than the checkpoints do. These change the processor time of the training, too; what the
checkpoints take themselves, counted apart, is the least that they cost.
"""
import os
import statistics
import subprocess

import programs

WANTED = {"resnet32": 1.02, "wide": 1.05}


def figures(options, model, batch, steps):
    program = programs.helper(options.build, "bench/saving_speed")
    with programs.scratch(options.build) as where:
        core = {min(os.sched_getaffinity(0))}
        run = subprocess.run([program, model, str(batch), str(steps), str(options.saving_rounds), where], text=True,
                             stdout=subprocess.PIPE, env=programs.ENVIRONMENT, check=True,
                             preexec_fn=lambda: os.sched_setaffinity(0, core))
    return [[float(word) for word in line.split()] for line in run.stdout.splitlines()]


def run(options):
    rows = []
    for model, steps in (("resnet32", 20), ("wide", 20)):
        rounds = figures(options, model, options.batch_size, steps)
        for name, place in (("beside the training", 1), ("waited for", 2)):
            ratios = sorted(row[place] / row[0] for row in rounds)
            processor = statistics.median(row[3 + place] / row[3] for row in rounds)
            own = f"{1 + statistics.median(row[6] / row[3] for row in rounds):.4f}" if place == 1 else "-"
            rows.append([f"{model}, {name}", f"{1e3 * statistics.median(row[0] for row in rounds):.1f}",
                         f"{1e3 * statistics.median(row[place] for row in rounds):.1f}", f"{statistics.median(ratios):.3f}",
                         f"{ratios[0]:.3f}-{ratios[-1]:.3f}", f"{processor:.3f}", own, f"{WANTED[model]:.2f}" if place == 1 else "-",
                         "-" if place == 2 else "holds" if processor <= WANTED[model] else "missed"])
    print(f"\na checkpoint every 10 steps, batch {options.batch_size}, {options.saving_rounds} rounds, one core; x: medians "
          "of the rounds' ratios to no checkpoint")
    programs.table(["", "ms a step without", "with", "x", "range", "x of processor time", "by themselves", "wanted", ""], rows)
    return True
