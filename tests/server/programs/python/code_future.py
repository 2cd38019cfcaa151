# A future import of the program counts for its annotations, and for exec in it.
# Also as a cell of a context.
from __future__ import annotations

import __future__


def f(x: undefined) -> also_undefined:
    return x


print(f.__annotations__, __future__.annotations.compiler_flag > 0)
exec("def g(x: undefined): pass\nprint(g.__annotations__)")
