"""Images a second of processor time of ResNet-50 training at 224x224 on noise: our trainer beside PyTorch, one thread each, in
turns. Time is that of the processor, which a machine that does other things, too, changes less."""
import os
import statistics
import subprocess

import programs

HERE = programs.ROOT / "bench"


def seconds_of(command, errors=subprocess.DEVNULL):
    """Of the processor, and what was printed."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True,
                          env=programs.ENVIRONMENT) as process:
        printed = process.stdout.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, printed


def ours(options):
    """Of a step: of a longer training without what a training of one step takes."""
    command = [programs.program(options.build, "trainer"), "--model", "resnet50_torchvision", "--data", "synthetic",
               "--batch-size", options.resnet50_batch, "--quiet", "--max-steps"]
    return (seconds_of([*command, 1 + options.resnet50_steps])[0] - seconds_of([*command, 1])[0]) / options.resnet50_steps


def peer(options):
    return float(seconds_of([programs.peer_python("torch"), HERE / "resnet50_torch.py", "--batch-size", options.resnet50_batch,
                             "--steps", options.resnet50_steps])[1])


def run(options):
    found = {"evalboard": [], "PyTorch": []}
    for number in range(options.resnet50_rounds):
        for name, measure in (("evalboard", ours), ("PyTorch", peer)):
            found[name].append(options.resnet50_batch / measure(options))
            programs.say(f"  round {number + 1}: {name}: {found[name][-1]:.2f} images/s")
    middle = {name: statistics.median(values) for name, values in found.items()}
    print(f"\nResNet-50 at 224x224, batch {options.resnet50_batch}, {options.resnet50_steps} steps after the first, median of "
          f"{options.resnet50_rounds} rounds")
    rows = [[name, f"{middle[name]:.2f}", f"{min(values):.2f} - {max(values):.2f}", f"{middle[name] / middle['PyTorch']:.2f}"]
            for name, values in found.items()]
    programs.table(["", "images/s", "least - most", "/ PyTorch"], rows)
    return rows
