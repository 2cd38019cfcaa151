# input(), readline(), next() and read() take turns on one buffer.
import sys

print(repr(input()))
print(repr(sys.stdin.readline()))
print(repr(next(sys.stdin)))
print(repr(sys.stdin.read(3)))
print(repr(sys.stdin.read()))
print(repr(sys.stdin.read()))
