"""What the evaluating peers share: a resident process that evaluates a checkpoint whenever a line comes.

It prints `ready` when data and model are there, and for each line of standard input `loaded L evaluated E precision P`:
seconds to read the checkpoint into the model, seconds for all images, and what came out.
"""
import argparse
import sys
import time

import cifar10


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", choices=("resnet32", "cifar10_cnn"), required=True)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--checkpoint", required=True, help="written first, then read for each evaluation")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=250)
    parser.add_argument("--num-examples", type=int, default=10000)
    parser.add_argument("--bfloat16", action="store_true", help="PyTorch only")
    return parser.parse_args()


def data(options):
    """Test images as the model is fed them, (n, height, width, 3) floats, and labels."""
    images, labels = cifar10.load(options.data_dir, "test")
    images, labels = images[:options.num_examples], labels[:options.num_examples]
    if options.model == "cifar10_cnn":
        images = images[:, 4:28, 4:28]
    return cifar10.standardise(images), labels


def serve(load, evaluate, examples):
    """load() reads the checkpoint; evaluate() returns how many of the examples were right."""
    print("ready", flush=True)
    for _ in sys.stdin:
        started = time.monotonic()
        load()
        loaded = time.monotonic()
        right = evaluate()
        print(f"loaded {loaded - started:.6f} evaluated {time.monotonic() - loaded:.6f} precision "
              f"{right / examples:.4f}", flush=True)
