# An interactive task: each question is flushed before the answer is read.
low, high, questions = 1, 100, 0
while low < high:
    middle = (low + high) // 2
    print("?", middle, flush=True)
    questions += 1
    if input() == "higher":
        low = middle + 1
    else:
        high = middle
print("!", low, questions)
