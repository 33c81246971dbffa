"""A training loop with curves, a distribution, a picture and a text: python3 scalars.py logs/python"""
import sys

import numpy as np

import evalboard


def main(directory):
    random = np.random.default_rng(1)
    weights = random.standard_normal((3, 16, 16)) * 0.2
    with evalboard.SummaryWriter(directory) as writer:
        writer.add_text("settings", "| setting | value |\n|---|---|\n| rate | 0.1 |")
        for step in range(1000):
            weights *= 0.999
            writer.add_scalar("loss", float((weights ** 2).mean()), step)
            if step % 100 == 0:
                writer.add_histogram("weights", weights, step)
                writer.add_image("weights", weights / 2 + 0.5, step)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "logs/python")
