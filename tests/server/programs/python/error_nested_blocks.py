# The compiler's own limits are errors in words.
# Also as a cell of a context.
text = "".join(" " * depth + "for a in b:\n" for depth in range(25)) + " " * 25 + "pass\n"
try:
    compile(text, "<deep>", "exec")
except SyntaxError as error:
    print(error)
try:
    eval("(" * 300 + ")" * 300)
except (SyntaxError, MemoryError) as error:
    print(type(error).__name__, error)
