# Backtracking with bits: the eight queens.
# Also as a cell of a context.
def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    free, count = ~(columns | left | right) & ((1 << n) - 1), 0
    while free:
        bit = free & -free
        free -= bit
        count += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count


print([queens(n) for n in range(1, 9)])
