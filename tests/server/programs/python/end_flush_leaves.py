import atexit
import os

atexit.register(os._exit, 3)
print("here", end="")
None
