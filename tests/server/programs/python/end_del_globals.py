# An object that ends with its program still finds the modules and the functions that it uses, whoever else keeps
# __main__, as multiprocessing does.
import logging
import multiprocessing
import os
import shutil
import sys


def say(text):
    print(text)


class Folder:
    def __init__(self, path):
        self.path = path
        os.makedirs(path)

    def __del__(self):
        shutil.rmtree(self.path)
        say("removed %s: %s" % (self.path, not os.path.exists(self.path)))
        logging.warning("and logged")


print(sys.modules["__mp_main__"] is sys.modules["__main__"], multiprocessing.current_process().name)
folder = Folder("folder")
print("end", os.path.exists("folder"))
