# Templates, textwrap, pprint and f-strings with nested specs.
# Also as a cell of a context.
import pprint
import string
import textwrap

print(textwrap.fill("A long line that has to be wrapped at thirty characters, so it is.", 30, initial_indent="* ", subsequent_indent="  "))
print(textwrap.dedent("    a\n      b\n    c"), textwrap.shorten("many many words here", 12), string.Template("$a and ${b}s, $$5").substitute(a=1, b="x"))
pprint.pprint({"key": list(range(25)), "nested": {"deep": {"deeper": ["x" * 30, "y" * 30]}}}, width=60, sort_dicts=True)
width, value = 12, 3.14159
print(f"{value:>{width}.{2}f}|{'mid':^{width}}|{value=:.1f}|{'q'!r:*<6}|{1_000_000:_}")
