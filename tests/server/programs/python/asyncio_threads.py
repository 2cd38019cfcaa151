# asyncio.to_thread and run_in_executor.
# Also as a cell of a context.
import asyncio
import time


async def main():
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.1) for _ in range(3)))
    print(await asyncio.get_running_loop().run_in_executor(None, sum, [1, 2, 3]))


asyncio.run(main())
