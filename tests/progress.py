"""What is running, told while nothing else is: a line at least every few seconds, so that nobody takes work for a hang."""
import contextlib
import threading
import time

SILENCE = 8  # seconds without a line


class Progress:
    """Names begin() and end(); where a line was printed otherwise, said(). A thread tells what runs after a silence.

    say: prints one line. note: a function whose text the line begins with.
    """

    def __init__(self, say, note=lambda: ""):
        self.say, self.note, self.running, self.lock = say, note, {}, threading.Lock()
        self.last, self.over = time.monotonic(), threading.Event()
        threading.Thread(target=self.watch, daemon=True).start()

    def begin(self, name):
        with self.lock:
            self.running[name] = time.monotonic()

    def end(self, name):
        with self.lock:
            self.running.pop(name, None)

    def said(self):
        self.last = time.monotonic()

    def watch(self):
        while not self.over.wait(0.5):
            now = time.monotonic()
            with self.lock:
                names = [f"{name} ({now - began:.0f} s)" for name, began in self.running.items()]
            if names and now - self.last >= SILENCE:
                self.said()
                self.say(f"  {self.note()}running: {', '.join(names)}")

    def close(self):
        self.over.set()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def running(name, say):
    """While the `with` lasts, one thing runs."""
    with Progress(say) as told:
        told.begin(name)
        yield
