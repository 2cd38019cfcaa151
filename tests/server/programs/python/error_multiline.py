# An expression over several lines: the first line is quoted.
# Also as a cell of a context.
result = sum(
    int(word)
    for word in (
        "1 2 three"
    ).split()
)
