# breakpoint() takes its commands from standard input.
def double(x):
    y = x * 2
    breakpoint()
    return y


print(double(21))
