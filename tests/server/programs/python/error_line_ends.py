# A form feed and U+2028 inside a line are no line ends for a traceback.
# Also as a cell of a context.
a = 1

b = " "
c = "  "
raise ValueError("line 7")
