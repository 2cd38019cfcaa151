# Notes of an exception follow it.
# Also as a cell of a context.
try:
    int("x")
except ValueError as error:
    error.add_note("while reading line 7")
    error.add_note("of settings.ini")
    raise
