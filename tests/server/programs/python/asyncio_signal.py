# A loop's signal handler stops it, and an interrupt cancels the main task.
import asyncio
import os
import signal


async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), signal.SIGTERM)
    await stop.wait()
    print("stopped by SIGTERM")
    try:
        asyncio.get_running_loop().call_later(0.02, os.kill, os.getpid(), signal.SIGINT)
        await asyncio.sleep(10)
    finally:
        print("clean up")


try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
