# Unicode: normal forms, names, cases, widths, slices of characters outside the plane.
# Also as a cell of a context.
import unicodedata

for text in ("é", "ß", "ﬁ", "漢", "👩‍🚀", "İ"):
    print(text, len(text), unicodedata.normalize("NFKD", text).encode("unicode_escape"), text.upper(), text.casefold(), unicodedata.east_asian_width(text[0]))
print(unicodedata.name("\u2603"), "\N{SNOWMAN}", "Straße".title(), "٣".isdigit(), int("٣"), sorted("zäaé"), "a\u0301" == "á")
print("\ud83d".encode("utf-16", "surrogatepass"), ascii("\U0001f600"), "ab\u200bc".isprintable())
