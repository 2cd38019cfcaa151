# The newline modes of text files, both ways.
import pathlib

for newline in (None, "", "\n", "\r\n"):
    with open("t", "w", newline=newline) as file:
        file.write("a\nb\r\n")
    print(repr(newline), pathlib.Path("t").read_bytes())
pathlib.Path("t").write_bytes(b"1\r\n2\r3\n4")
for newline in (None, "", "\r"):
    with open("t", newline=newline) as file:
        print(repr(newline), file.readlines(), file.newlines)
