"""What a checkpoint every 10 steps costs a step of training, of ResNet-32 and of a model of 100 MB of weights (with its
momentum 200 MB a checkpoint): written beside the training, and waited for, as it was before. All cores train, as they do
where a machine's ranks share them. The three take turns in one process, so that a machine that becomes busier meanwhile
slows all of them.
"""
import os
import statistics
import subprocess

import programs

WANTED = {"resnet32": 1.02, "wide": 1.05}


def figures(options, model, batch, steps):
    program = programs.helper(options.build, "bench/saving_speed")
    with programs.scratch(options.build) as where:
        run = subprocess.run([program, model, str(batch), str(steps), str(options.saving_rounds), where], text=True,
                             stdout=subprocess.PIPE, env=os.environ, check=True)
    return [[float(word) for word in line.split()] for line in run.stdout.splitlines()]


def run(options):
    rows = []
    for model, steps in (("resnet32", 20), ("wide", 20)):
        rounds = figures(options, model, options.batch_size, steps)
        for name, place in (("beside the training", 1), ("waited for", 2)):
            ratios = sorted(row[place] / row[0] for row in rounds)
            processor = statistics.median(row[3 + place] / row[3] for row in rounds)
            rows.append([f"{model}, {name}", f"{1e3 * statistics.median(row[0] for row in rounds):.1f}",
                         f"{1e3 * statistics.median(row[place] for row in rounds):.1f}", f"{statistics.median(ratios):.3f}",
                         f"{ratios[0]:.3f}-{ratios[-1]:.3f}", f"{processor:.3f}", f"{WANTED[model]:.2f}" if place == 1 else "-"])
    print(f"\na checkpoint every 10 steps, batch {options.batch_size}, {options.saving_rounds} rounds; x: medians of the "
          "rounds' ratios to no checkpoint")
    programs.table(["", "ms a step without", "with", "x", "range", "x of processor time", "wanted"], rows)
    return True
