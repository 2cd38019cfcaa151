import sys


def hook(kind, value, frames):
    raise KeyboardInterrupt("in the hook")


sys.excepthook = hook
1 / 0
