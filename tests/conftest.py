"""For all tests: signals as a shell would leave them. Under nohup SIGHUP is ignored, and every child inherits that."""
import signal

signal.signal(signal.SIGHUP, signal.SIG_DFL)
