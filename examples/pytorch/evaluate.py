#!/usr/bin/env python3
"""Scores one checkpoint of train.py and prints its metrics as a line of JSON, for evaluator --exec.

What goes to standard output as `name value`, `name=value` or an object of JSON is a metric; all else is kept in
EVAL/logs/. An exception ends it with another exit status than 0: the checkpoint has failed, its last line says why.
"""
import argparse
import json

import torch

from network import images_and_labels, make_network


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint")
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--num-examples", type=int, help="the first so many test images; default: all")
    options = parser.parse_args()

    torch.set_num_threads(1)
    images, labels = images_and_labels(options.data_dir, "t10k", options.num_examples)
    network = make_network()
    network.load_state_dict(torch.load(options.checkpoint, weights_only=True)["network"])
    network.eval()
    loss = correct = 0
    with torch.inference_mode():
        for image, label in zip(images.split(500), labels.split(500)):
            logits = network(image)
            loss += torch.nn.functional.cross_entropy(logits, label, reduction="sum").item()
            correct += (logits.argmax(1) == label).sum().item()
    print(json.dumps({"accuracy": correct / len(labels), "loss": loss / len(labels)}))


if __name__ == "__main__":
    main()
