# Fast input of judges: all numbers from sys.stdin.buffer, one write at the end.
import sys

data = sys.stdin.buffer.read().split()
n = int(data[0])
rows = [tuple(map(int, data[1 + 2 * i:3 + 2 * i])) for i in range(n)]
sys.stdout.write("\n".join(str(a * b) for a, b in rows) + "\n")
