# Dynamic programming by a cached recursion, deeper than the usual limit.
import sys
from functools import lru_cache

sys.setrecursionlimit(20_000)


@lru_cache(maxsize=None)
def ways(n):
    return 1 if n < 2 else (ways(n - 1) + ways(n - 2)) % 1_000_000_007


for number in input().split():
    print(ways(int(number)))
print(ways.cache_info().misses)
