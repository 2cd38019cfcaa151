# The locale: its names, sorting, and one that does not exist.
import locale
import os

print(locale.setlocale(locale.LC_ALL, ""), locale.getlocale(), os.environ.get("LANG"))
print(sorted(["b", "Ä", "a", "Z", "é"], key=locale.strxfrm), locale.localeconv()["decimal_point"], locale.format_string("%d", 1234567, grouping=True))
locale.setlocale(locale.LC_ALL, "xx_XX.UTF-8")
