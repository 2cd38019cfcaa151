# A MemoryHandler's records are written when logging shuts down at the end.
import logging
import logging.handlers
import sys

target = logging.StreamHandler(sys.stdout)
handler = logging.handlers.MemoryHandler(100, flushLevel=logging.CRITICAL, target=target)
logging.getLogger().addHandler(handler)
logging.warning("kept until the end")
print("body")
