# Seek, tell, truncate, append and exclusive creation.
with open("f", "wb+") as file:
    print(file.write(b"0123456789"), file.seek(-3, 2), file.read(), file.seek(2), file.write(b"XY"), file.tell())
    file.truncate(6)
with open("f", "ab") as file:
    print(file.tell(), file.seek(0), file.write(b"end"))
print(open("f", "rb").read())
with open("t", "w+") as file:
    file.write("añb")
    file.seek(0)
    file.read(2)
    print(file.tell(), file.read())
open("f", "x")
