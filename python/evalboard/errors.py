"""The exceptions of this package; each has the sentence of the C library."""
from evalboard._library import (EventLogArgumentError, EventLogCorruptError, EventLogError, EventLogMemoryError,
                                EventLogOSError)

__all__ = ["EventLogArgumentError", "EventLogCorruptError", "EventLogError", "EventLogMemoryError", "EventLogOSError"]
