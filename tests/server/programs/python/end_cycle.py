# A cycle is collected at the end, and its __del__ runs.
import gc


class Node:
    def __del__(self):
        print("node gone")


gc.disable()
node = Node()
node.self = node
del node
print("body")
