# An error in __del__ is ignored and said on standard error.
# Also as a cell of a context.
import sys


class Fragile:
    def __del__(self):
        raise ValueError("while dying")


sys.unraisablehook = lambda args: print("unraisable:", args.exc_type.__name__, args.exc_value, args.object.__qualname__)
thing = Fragile()
del thing
print("goes on")
sys.unraisablehook = sys.__unraisablehook__
