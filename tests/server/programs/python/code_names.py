# Names of builtins that the program hides, del, and star imports.
# Also as a cell of a context.
list = "hidden"
print(list)
del list
print(list("ab"))
from math import *

print(pi, e, "sqrt" in globals(), "__builtins__" in globals())
print(_)
