# os.abort() ends by SIGABRT, without exit functions.
import atexit
import os

atexit.register(print, "never")
print("before", flush=True)
os.abort()
