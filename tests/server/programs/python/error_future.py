# A future import must come first.
# Also as a cell of a context.
x = 1
from __future__ import annotations
