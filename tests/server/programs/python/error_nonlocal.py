# Errors of the compiler's second pass have their line, too.
# Also as a cell of a context.
def f():
    def g():
        nonlocal missing
        missing = 1
    return g
