# A syntax error is shown with its line and caret, and nothing runs.
# Also as a cell of a context.
print("never printed")
values = [1, 2
print(values)
