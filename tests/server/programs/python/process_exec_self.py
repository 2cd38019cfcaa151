# A program starts itself anew with arguments, by its own __file__.
import os
import sys

if len(sys.argv) == 1:
    print("first", os.path.basename(sys.argv[0]), flush=True)
    os.execv(sys.executable, [sys.executable, __file__, "again", "and again"])
print("second", os.path.basename(sys.argv[0]), sys.argv[1:])
