# Floats as they are printed and read.
# Also as a cell of a context.
import math

print(0.1 + 0.2, 1e16, 1e-7, 5e-324, 1.7976931348623157e308 * 10, -0.0, 1 / 3, 2 ** 0.5)
print(math.fsum([0.1] * 10), sum([0.1] * 10), math.nan == math.nan, (0.1).hex(), (0.1).as_integer_ratio())
print(f"{1234567.891:,.1f} {0.00001234:g} {12345678:.3e} {0.25:.0%} {42:#x} {42:08b} {-5:+d} {3.0!r}")
print(math.dist((0, 0), (3, 4)), math.comb(50, 25), math.gcd(48, 36, 60), math.lcm(4, 6), math.hypot(5, 12), math.remainder(7, 4))
math.sqrt(-1)
