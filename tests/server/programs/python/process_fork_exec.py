# fork, dup2 and exec, as a shell does for a redirection.
import os

pid = os.fork()
if pid == 0:
    fd = os.open("listing.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(fd, 1)
    os.execvp("printf", ["printf", "%s\n", "b", "a"])
print(os.waitpid(pid, 0)[1])
with open("listing.txt") as file:
    print(file.read().split())
