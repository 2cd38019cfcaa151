# A program that replaces sys.stdout and never puts it back.
import io
import sys

kept = sys.stdout
sys.stdout = io.StringIO()
print("into the buffer")
kept.write("the buffer has " + repr(sys.stdout.getvalue()) + "\n")
