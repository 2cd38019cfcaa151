# Shortest paths over a graph from standard input, with a heap.
import heapq
import sys

read = sys.stdin.readline
n, m = map(int, read().split())
graph = [[] for _ in range(n + 1)]
for _ in range(m):
    a, b, w = map(int, read().split())
    graph[a].append((b, w))
    graph[b].append((a, w))
best = [float("inf")] * (n + 1)
best[1], heap = 0, [(0, 1)]
while heap:
    d, a = heapq.heappop(heap)
    if d == best[a]:
        for b, w in graph[a]:
            if d + w < best[b]:
                best[b] = d + w
                heapq.heappush(heap, (best[b], b))
print(*best[1:])
