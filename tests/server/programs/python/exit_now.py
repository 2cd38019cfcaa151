# os._exit() ends at once: no finally, no exit function.
import atexit
import os

atexit.register(print, "never")
try:
    print("flushed", flush=True)
    os._exit(9)
finally:
    print("never")
