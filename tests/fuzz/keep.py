#!/usr/bin/env python3
"""Keeps inputs of a fuzzer as text for the tests: tests/fuzz/corpus/NAME.txt, hexadecimal, an empty line between two.

usage: keep.py NAME DIRECTORY [BYTES]     inputs of DIRECTORY (a corpus that libFuzzer has merged), small and large ones,
                                          beside those that are kept already, up to BYTES together (4000)
"""
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "corpus"
COLUMNS = 116


def inputs(name):
    """The inputs that are kept, as bytes."""
    path = FOLDER / f"{name}.txt"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")] if path.exists() else []
    return [bytes.fromhex(part.replace("\n", "")) for part in "\n".join(lines).split("\n\n") if part.strip()]


def main():
    name, directory, limit = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 4000
    kept = inputs(name)
    new = sorted({p.read_bytes() for p in directory.iterdir()} - set(kept) - {b""}, key=lambda x: (len(x), x))
    every = 1
    while sum(map(len, kept + new[::every])) > limit and every <= len(new):
        every += 1
    kept += new[::every] if every <= len(new) else []
    text = [data.hex() for data in kept]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{name}.txt").write_text("\n\n".join(
        "\n".join(one[i:i + COLUMNS] for i in range(0, len(one), COLUMNS)) for one in text) + "\n")
    print(f"{name}: {len(kept)} inputs, {sum(map(len, kept))} bytes")


if __name__ == "__main__":
    main()
