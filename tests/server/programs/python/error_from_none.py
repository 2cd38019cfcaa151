# `from None` hides what was handled.
# Also as a cell of a context.
try:
    {}["missing"]
except KeyError:
    raise RuntimeError("only this shows") from None
