# sigwait() takes a blocked signal in a thread's turn.
import os
import signal

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
os.kill(os.getpid(), signal.SIGUSR2)
print(signal.SIGUSR2 in signal.sigpending())
print(signal.sigwait({signal.SIGUSR2}).name)
print(signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR2}) >= {signal.SIGUSR2})
