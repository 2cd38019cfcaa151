import sys

kept = open("kept.txt", "w")
kept.write("kept\n")
sys.modules = {}
print("on")
None
