# A program's own sys.excepthook shows the error instead.
import sys


def hook(kind, value, frames):
    print("hook:", kind.__name__, value, frames.tb_lineno, file=sys.stderr)


sys.excepthook = hook
print("about to fail")
raise LookupError("lost")
