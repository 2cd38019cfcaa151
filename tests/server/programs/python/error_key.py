# Errors with odd messages: a KeyError's quotes, an empty assert, a text of two lines.
# Also as a cell of a context.
import traceback

for make in (lambda: {}["a'b"], lambda: (_ for _ in ()).throw(AssertionError), lambda: int("1\n2"), lambda: b"\xff".decode()):
    try:
        make()
    except Exception as error:
        print("".join(traceback.format_exception_only(error)), end="")
assert 1 + 1 == 3
