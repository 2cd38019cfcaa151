# A coroutine that is never awaited warns, with its name.
import asyncio


async def work():
    return 1


async def main():
    work()
    print("forgotten")


asyncio.run(main())
