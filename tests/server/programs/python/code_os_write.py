# os.write() comes before what is buffered in sys.stdout.
import os

print("buffered")
os.write(1, b"at once\n")
