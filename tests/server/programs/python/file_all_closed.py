import os

os.closerange(3, 5000)
held = [open(f"f{i}", "w") for i in range(950)]
for each in held:
    each.write("x")
held[0].name
