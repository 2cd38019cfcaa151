# A frame of compiled code with a name for which linecache has lines shows them.
# Also as a cell of a context.
import linecache

text = "def f(x):\n    return 1 / x\n"
linecache.cache["<formula>"] = (len(text), None, text.splitlines(True), "<formula>")
exec(compile(text, "<formula>", "exec"))
f(0)
