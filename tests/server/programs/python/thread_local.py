# Thread-local values and context variables belong to one thread.
# Also as a cell of a context.
import contextvars
import threading

local, variable = threading.local(), contextvars.ContextVar("v", default="none")
local.x = 1
variable.set("main")
seen = []
thread = threading.Thread(target=lambda: seen.append((hasattr(local, "x"), variable.get())))
thread.start()
thread.join()
copied = contextvars.copy_context()
copied.run(variable.set, "copy")
print(seen, variable.get(), copied[variable], local.x)
