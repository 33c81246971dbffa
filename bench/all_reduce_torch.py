"""Milliseconds of an all-reduce by PyTorch's gloo, as all_reduce.c prints them: RANK RANKS FILE ROUNDS COUNT..."""
import statistics
import sys
import time

import torch
import torch.distributed as distributed

rank, size, store, rounds, *counts = (sys.argv[i] if i == 3 else int(sys.argv[i]) for i in range(1, len(sys.argv)))
torch.set_num_threads(1)
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
for count in counts:
    times = []
    for _ in range(rounds + 1):
        vector = torch.arange(count, dtype=torch.float32) % 100 + rank
        distributed.barrier()
        begun = time.perf_counter()
        distributed.all_reduce(vector)
        times.append((time.perf_counter() - begun) * 1e3)
    if rank == 0:
        print(count, statistics.median(times[1:]), flush=True)
distributed.destroy_process_group()
