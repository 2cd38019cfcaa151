# `return` outside a function, found before anything runs.
# Also as a cell of a context.
print("never")
return 5
