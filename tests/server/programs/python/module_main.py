# The names of a program's own namespace and module.
import os
import sys

print(sorted(globals()))
print(__name__, __doc__, __package__, __spec__, os.path.basename(__file__), os.path.isabs(__file__))
print(sys.modules["__main__"].__dict__ is globals(), type(__builtins__).__name__, [os.path.basename(each) for each in sys.argv])
