# A judge's task: several cases, answers by a map of what was seen.
import sys


def solve(target, values):
    seen = {}
    for at, value in enumerate(values):
        if target - value in seen:
            return seen[target - value], at
        seen.setdefault(value, at)
    return None


for line in sys.stdin:
    target, *values = map(int, line.split())
    print(*(solve(target, values) or ("IMPOSSIBLE",)))
