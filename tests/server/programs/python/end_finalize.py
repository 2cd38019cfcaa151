# weakref.finalize runs at the end for what is still alive, in reverse order.
import weakref


class Thing:
    def __init__(self, name):
        self.name = name


a, b, c = Thing("a"), Thing("b"), Thing("c")
weakref.finalize(a, print, "end of a")
weakref.finalize(b, print, "end of b")
weakref.finalize(c, print, "never").atexit = False
del a
print("body")
