# Names that are no UTF-8, that are long, and that have odd characters.
import os

for name in (b"\xd6\xd0.txt", "x" * 255, "a b'c\"d", "-rf", "tab\there", "line\nend", "e\u0301", "\u00e9"):
    with open(name, "wb") as file:
        file.write(os.fsencode(name)[:3])
print([ascii(name)[:20] for name in sorted(os.listdir(".")) if not name.startswith("main.")])
try:
    open("y" * 256, "w")
except OSError as error:
    print(error.errno, error.strerror)
