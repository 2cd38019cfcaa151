# Exit functions run last in, first out; each with its arguments; one may be taken back.
import atexit

atexit.register(print, "one", end="!\n")
two = atexit.register(lambda: print("two"))
three = atexit.register(lambda: (print("three"), atexit.register(print, "registered while ending")))
atexit.unregister(two)
print("body")
