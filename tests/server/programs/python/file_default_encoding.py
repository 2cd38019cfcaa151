# Without an encoding files are UTF-8, and so are names.
import locale
import sys

with open("naïve.txt", "w") as file:
    print(file.encoding, file.errors)
    file.write("漢\n")
print(open("naïve.txt", "rb").read(), sys.getfilesystemencoding(), locale.getpreferredencoding())
