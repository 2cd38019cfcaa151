# sys.exit() in an exit function does not change the status.
import atexit
import sys

atexit.register(print, "runs all the same")
atexit.register(sys.exit, 7)
print("body")
