# The text of a class of the program, and of a module that it imports.
import inspect
import json


class Box:
    """A box."""

    size = 2


print(inspect.getsource(Box), inspect.getsourcelines(Box)[1], inspect.getdoc(Box), inspect.getmodule(Box).__name__)
print(inspect.getsource(json.dumps).splitlines()[0], inspect.signature(json.loads))
