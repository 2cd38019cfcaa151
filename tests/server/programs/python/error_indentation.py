# An unexpected indent is an IndentationError.
# Also as a cell of a context.
def f():
    x = 1
      y = 2
    return x + y
