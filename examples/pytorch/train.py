#!/usr/bin/env python3
"""Trains a small PyTorch network on Fashion-MNIST and writes a checkpoint model_<step>.pt every so many steps.

Beside it, in another terminal, every checkpoint is scored as it appears, up to the last:

  evaluator --checkpoint-dir ckpt --eval-dir logs/eval --pattern 'model_{step}.pt' --ready rename \\
      --exec 'python3 examples/pytorch/evaluate.py {checkpoint}' --best-metric accuracy --until-step 500

A checkpoint is written under another name and renamed: nobody ever sees half of it.
"""
import argparse
import os
import pathlib

import torch

from network import images_and_labels, make_network


def save(directory, step, network, optimizer):
    path = directory / f"model_{step}.pt"
    unfinished = path.with_suffix(".pt.tmp")
    torch.save({"step": step, "network": network.state_dict(), "optimizer": optimizer.state_dict()}, unfinished)
    os.replace(unfinished, path)
    print(f"step {step}: {path}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", default="/usr/share/datasets/fashion-mnist")
    parser.add_argument("--checkpoint-dir", type=pathlib.Path, default=pathlib.Path("ckpt"))
    parser.add_argument("--max-steps", type=int, default=500)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    options.checkpoint_dir.mkdir(parents=True, exist_ok=True)
    images, labels = images_and_labels(options.data_dir, "train")
    network = make_network()
    optimizer = torch.optim.SGD(network.parameters(), lr=options.learning_rate, momentum=0.9)
    for step in range(1, options.max_steps + 1):
        batch = torch.randint(len(labels), (options.batch_size,))
        loss = torch.nn.functional.cross_entropy(network(images[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % options.save_every == 0 or step == options.max_steps:
            save(options.checkpoint_dir, step, network, optimizer)


if __name__ == "__main__":
    main()
