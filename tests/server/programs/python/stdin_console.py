# code.interact() is a Python prompt inside a program.
import code

secret = 42
code.interact(banner="hello", local={"secret": secret}, exitmsg="bye")
