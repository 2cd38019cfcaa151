# Without input, input() fails with EOFError and a traceback.
print("before")
answer = input("more? ")
print("after", answer)
