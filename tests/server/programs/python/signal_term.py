# SIGTERM ends a program that does not handle it.
import os
import signal

print("before", flush=True)
os.kill(os.getpid(), signal.SIGTERM)
print("never")
