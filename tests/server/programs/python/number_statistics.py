# statistics and fractions.
# Also as a cell of a context.
import statistics
from fractions import Fraction

data = [2, 4, 4, 4, 5, 5, 7, 9]
print(statistics.mean(data), statistics.median(data), statistics.pstdev(data), statistics.mode(data), statistics.quantiles(data))
print(Fraction(1, 3) + Fraction("0.25"), Fraction(3.25), Fraction(22, 7).limit_denominator(3), sum(Fraction(1, n) for n in range(1, 20)))
print(statistics.linear_regression([1, 2, 3], [2, 4, 7]), statistics.correlation([1, 2, 3], [3, 2, 1]))
statistics.mean([])
