import atexit
import sys

atexit.register(lambda: print("atexit ran"))


def hook(kind, value, frames):
    print("logged:", value)
    sys.stdout.write("partial")
    sys.exit(42)


sys.excepthook = hook
1 / 0
