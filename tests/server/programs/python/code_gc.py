# Weak references, reference counts, collection and its callbacks.
# Also as a cell of a context.
import gc
import sys
import weakref


class Node:
    pass


node = Node()
gone = weakref.ref(node, lambda _: print("callback"))
node.me = node
print(sys.getrefcount(node) >= 3, gone() is node, gc.isenabled())
del node
print(gone() is None, gc.collect() > 0, gone() is None)
cache = weakref.WeakValueDictionary(a=(x := Node()))
del x
print(dict(cache), gc.get_threshold(), gc.get_freeze_count() == 0)
