# with-blocks and an ExitStack end in reverse order, also by an error.
# Also as a cell of a context.
import contextlib


@contextlib.contextmanager
def block(name):
    print("enter", name)
    try:
        yield
    finally:
        print("leave", name)


with contextlib.ExitStack() as stack:
    for name in "abc":
        stack.enter_context(block(name))
    stack.callback(print, "callback")
    raise RuntimeError("inside")
