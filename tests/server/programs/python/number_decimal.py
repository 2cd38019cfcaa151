# Decimals: contexts, rounding, signals.
# Also as a cell of a context.
from decimal import ROUND_HALF_EVEN, Decimal, DivisionByZero, getcontext, localcontext

print(getcontext().prec, Decimal(1) / 7, Decimal("0.1") + Decimal("0.2"), Decimal(0.1))
with localcontext() as context:
    context.prec = 50
    print(Decimal(2).sqrt(), Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_EVEN))
try:
    Decimal(1) / 0
except DivisionByZero as error:
    print(error)
print(Decimal("NaN") == Decimal("NaN"), Decimal("1E+3").normalize(), f"{Decimal('1234.5'):,.2f}")
