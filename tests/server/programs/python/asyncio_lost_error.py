# An error of a task that nobody awaits is logged at its end.
import asyncio


async def fail():
    raise ValueError("nobody looks")


async def main():
    asyncio.create_task(fail(), name="lost")
    await asyncio.sleep(0.01)
    print("main ends")


asyncio.run(main())
