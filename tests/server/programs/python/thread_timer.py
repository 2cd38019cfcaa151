# A timer that is left running rings before the program ends; a cancelled one does not.
import threading

silent = threading.Timer(60, print, ("never",))
silent.start()
silent.cancel()
print("body")
threading.Timer(0.1, print, ("rings",)).start()
