"""Waiting for what another process does: with a deadline, never by sleeping for as long as it usually takes."""
import time

DEADLINE = 600  # seconds for anything that ends by itself: only a hang takes as long, on a busy machine too


def wait_for(condition, what, seconds=DEADLINE):
    """Asks condition() until it gives something true, and returns that; fails after seconds with `what` was waited for.

    what: a text, or a function that gives one. Asking takes at most half of the time: it may be an HTTP request.
    """
    end = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if value := condition():
            return value
        assert time.monotonic() < end, f"waited {seconds} s for {what() if callable(what) else what}"
        time.sleep(max(0.005, time.monotonic() - asked))
