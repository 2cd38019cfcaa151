# fileinput reads standard input where there are no arguments.
import fileinput

for line in fileinput.input():
    print(fileinput.lineno(), fileinput.isstdin(), line.strip().upper())
