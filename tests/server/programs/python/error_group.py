# An exception group is printed as a tree.
# Also as a cell of a context.
def fail(kind, text):
    try:
        raise kind(text)
    except kind as error:
        return error


raise ExceptionGroup("several", [fail(ValueError, "one"), ExceptionGroup("inner", [fail(TypeError, "two")])])
