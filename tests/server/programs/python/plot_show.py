# plt.show() without a screen.
import matplotlib.pyplot as plt

plt.plot([1, 2])
plt.title("shown")
plt.show()
print(plt.get_fignums())
