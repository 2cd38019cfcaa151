# Large integers: powers, inverses, and the limit of their texts.
# Also as a cell of a context.
import math

print(pow(3, -1, 7), pow(2, 10**18, 1_000_007), math.isqrt(10**40), (2**200).bit_length(), hex(-255), int("0b101", 0))
print(len(str(math.factorial(1000))), divmod(-7, 3), -7 // 2, round(2.5), round(-3.5), round(1234, -2))
print((1 << 64).to_bytes(9, "big"), int.from_bytes(b"\xff\xfe", "little", signed=True))
str(10 ** 5000)
