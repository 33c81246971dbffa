"""What bench/model_torch.py and bench/model_tensorflow.py share: their options, and the time of a step."""
import argparse
import time


def parser(documentation, models):
    found = argparse.ArgumentParser(description=documentation)
    found.add_argument("--model", choices=models, required=True)
    found.add_argument("--batch-size", type=int, default=128)
    found.add_argument("--steps", type=int, default=100)
    found.add_argument("--warm-up", type=int, default=20)
    return found


def tell_seconds(options, train_step):
    """Calls train_step() for each step, and prints the processor's seconds of one after the warm-up."""
    for step in range(options.steps):
        if step == options.warm_up:
            started = time.process_time()
        train_step()
    print("seconds a step:", (time.process_time() - started) / (options.steps - options.warm_up))
