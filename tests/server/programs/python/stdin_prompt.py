# The prompt of input() goes to standard output, without a new line.
name = input("Name: ")
age = input("Age: ")
print(f"{name} is {age}")
