# An exception that cannot be printed is printed all the same.
# Also as a cell of a context.
class Broken(Exception):
    def __str__(self):
        raise ValueError("no text")


raise Broken("x")
