# A status that does not fit into a C long becomes 255.
import sys

sys.exit(10 ** 30)
