# Files that are not closed warn only if asked for.
import gc
import warnings

warnings.simplefilter("always")
open("left.txt", "w")
gc.collect()
print("collected")
