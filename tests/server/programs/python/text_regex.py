# Regular expressions: groups, look-behind, a function as replacement, flags, an error.
# Also as a cell of a context.
import re

text = "2024-01-05 paid €30.50, 2023-12-31 paid €7"
print(re.findall(r"(?P<y>\d{4})-(?P<m>\d\d)", text), re.sub(r"€(\d+(?:\.\d+)?)", lambda m: f"{float(m[1]) * 2:.2f} EUR", text))
print(re.split(r"(?<=,)\s*", text), re.match(r"(?i)PAID", "paid").span(), re.fullmatch(r"(\w)(?:.*)\1", "abca").groups())
print(re.compile(r"""
    ^ \s* (\w+) \s* = \s* (.*?) \s* $   # name = value
""", re.X | re.M).findall("a = 1\n b=2 "), re.sub(r"\b(\w)(\w*)", r"\2\1", "pig latin", count=1))
re.compile(r"(unclosed")
