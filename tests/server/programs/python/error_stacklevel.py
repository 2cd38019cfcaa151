# stacklevel points a warning at the caller, at any depth.
import warnings


def old(depth):
    warnings.warn(f"level {depth}", UserWarning, stacklevel=depth)


def middle(depth):
    old(depth)


for depth in (1, 2, 3, 9):
    middle(depth)
