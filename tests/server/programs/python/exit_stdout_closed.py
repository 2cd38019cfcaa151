# A program that closes standard output ends well.
import os
import sys

print("last words")
sys.stdout.close()
os.write(2, b"still alive\n")
