#!/usr/bin/env python3
"""Reads what `make -nB V=1` prints and writes compile_commands.json, as clangd and other tools read it, to stdout."""
import json
import os
import shlex
import sys

entries = []
for line in sys.stdin:
    try:
        words = shlex.split(line)
    except ValueError:  # of a recipe of several lines
        continue
    if "-c" in words and words[-1].endswith(".c"):
        entries.append({"directory": os.getcwd(), "file": words[-1], "output": words[words.index("-o") + 1], "arguments": words})
if not entries:
    sys.exit("make_compile_commands.py: no compiler was called in what was read")
json.dump(entries, sys.stdout, indent=1)
print(f"compile_commands.json: {len(entries)} files", file=sys.stderr)
