# input() reads lines until EOFError.
total = 0
while True:
    try:
        total += int(input())
    except EOFError:
        break
print(total)
