# A timer that is left running rings before the program ends; a cancelled one does not.
import threading

threading.Timer(0.1, print, ("rings",)).start()
silent = threading.Timer(0.1, print, ("never",))
silent.start()
silent.cancel()
print("body")
