# /dev/stdin can be opened by its name.
with open("/dev/stdin") as lines:
    for number, line in enumerate(lines, 1):
        print(number, line.rstrip())
