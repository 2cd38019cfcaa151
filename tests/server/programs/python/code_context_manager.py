# redirect_stdout, suppress, nullcontext, closing, and a class with __exit__.
# Also as a cell of a context.
import contextlib
import io


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, kind, value, frames):
        print("swallows", kind.__name__, value)
        return True


with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(ZeroDivisionError):
    print("captured")
    1 / 0
with Swallow(), contextlib.closing(io.StringIO("x")) as text:
    raise KeyError(text.read())
print(out.getvalue().strip(), text.closed)
