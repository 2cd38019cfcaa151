# A hook that fails itself: both errors are printed.
import sys


def hook(kind, value, frames):
    raise RuntimeError("the hook is broken")


sys.excepthook = hook
raise LookupError("the first")
