# A large output is whole: half a megabyte in one write and many small ones.
import sys

sys.stdout.write("\n".join(map(str, range(60_000))) + "\n")
for n in range(3_000):
    print(n, end=" ")
print(file=sys.stdout)
print("end", file=sys.stderr)
