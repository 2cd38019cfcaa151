# quit() of the site module ends the program and closes standard input.
print("before")
quit(4)
print("never")
