# Complex numbers and operators of classes.
# Also as a cell of a context.
import cmath
import operator
from functools import reduce, total_ordering


@total_ordering
class Money:
    def __init__(self, cents):
        self.cents = cents

    def __eq__(self, other):
        return self.cents == other.cents

    def __lt__(self, other):
        return self.cents < other.cents

    def __format__(self, spec):
        return f"{self.cents / 100:{spec or '.2f'}}"


print((1 + 2j) * 3j, abs(3 + 4j), cmath.sqrt(-2), complex("1-1j").conjugate(), Money(5) >= Money(3), f"{Money(1234)} {Money(5):.1f}")
print(reduce(operator.mul, range(1, 11)), operator.itemgetter(1, 0)("ab"), Money(1) < 3)
