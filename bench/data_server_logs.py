"""What the logs of data_server_latency have, for the bench and for its client, which another Python runs."""

RUNS, SMALL_LAST, LARGE_CURVES = 50, 999, 37  # small runs, the last step of each; curves of the large one
