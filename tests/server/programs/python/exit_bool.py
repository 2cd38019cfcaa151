# True is a number for sys.exit().
import sys

sys.exit(2 > 1)
