# An error inside an f-string expression.
# Also as a cell of a context.
value = 3
print(f"{value:d} is fine")
print(f"{value:q}")
