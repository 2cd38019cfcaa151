# inspect.stack() and sys._getframe() see the program's frames alone.
# Also as a cell of a context.
import inspect
import sys


def outer():
    return [frame.function for frame in inspect.stack()]


print(outer())
print(sys._getframe().f_back, sys._getframe().f_code.co_name)
try:
    sys._getframe(1)
except ValueError as error:
    print(error)
