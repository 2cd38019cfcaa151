import sys


def hook(kind, value, traceback):
    raise StopIteration("from the hook")


sys.excepthook = hook
raise ValueError("first")
