# After sys.stdin.close(), input() fails, and the descriptor may be reused.
import os
import sys

sys.stdin.close()
try:
    input()
except ValueError as error:
    print(error)
print(os.open("/dev/null", os.O_RDONLY))
