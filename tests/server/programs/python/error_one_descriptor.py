import os

os.dup2(1, 2)
print("before", end="")
1 / 0
