# sys.exit() with a number ends with that status, after finally and with.
import sys

try:
    print("work")
    sys.exit(3)
finally:
    print("clean up")
