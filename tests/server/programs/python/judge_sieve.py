# Primes below two million and a sum of them, by slices of a bytearray.
# Also as a cell of a context.
limit = 2_000_000
sieve = bytearray([1]) * limit
sieve[:2] = b"\0\0"
for n in range(2, int(limit ** 0.5) + 1):
    if sieve[n]:
        sieve[n * n::n] = bytes(len(range(n * n, limit, n)))
print(sum(sieve), sum(n for n, prime in enumerate(sieve) if prime))
