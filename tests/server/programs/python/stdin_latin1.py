# A wrapper of one's own around standard input chooses another encoding.
import io
import sys

text = io.TextIOWrapper(sys.stdin.buffer, encoding="latin-1").read()
print(ascii(text), len(text))
