# A string that is not closed is shown where it begins.
# Also as a cell of a context.
text = "no end
print(text)
