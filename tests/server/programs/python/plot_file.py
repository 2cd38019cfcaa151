# A figure is saved as PNG and SVG, with titles in Chinese.
import hashlib

import matplotlib
import matplotlib.pyplot as plt

matplotlib.rcParams["svg.hashsalt"] = "fixed"
figure, (left, right) = plt.subplots(1, 2, figsize=(6, 3))
left.plot([1, 4, 9], "o-", label="n²")
left.legend()
right.bar(["a", "b"], [3, 5])
figure.suptitle("标题")
figure.savefig("figure.png", dpi=50)
figure.savefig("figure.svg", metadata={"Date": None})
plt.close(figure)
print(hashlib.md5(open("figure.png", "rb").read()).hexdigest() == hashlib.md5(open("figure.png", "rb").read()).hexdigest(), matplotlib.get_backend())
