# -*- coding: no-such-codec -*- An unknown encoding is a syntax error.
print("never")
