# difflib compares texts, and bisect, heapq, itertools do what they do.
# Also as a cell of a context.
import bisect
import difflib
import heapq
import itertools

print("".join(difflib.unified_diff(["a\n", "b\n", "c\n"], ["a\n", "x\n", "c\n", "d\n"], "old", "new")), difflib.get_close_matches("appel", ["ape", "apple", "peach"]))
print(list(itertools.batched([1, 2, 3], 2)) if hasattr(itertools, "batched") else "", list(itertools.pairwise("abc")), [*itertools.accumulate([1, 2, 3])])
print(heapq.nlargest(2, [3, 1, 4]), list(heapq.merge([1, 4], [2, 3])), bisect.bisect([1, 2, 2, 3], 2), [list(g) for _, g in itertools.groupby("aabb")])
