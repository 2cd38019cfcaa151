# asyncio: tasks in turns, a timeout, a cancelled task.
# Also as a cell of a context.
import asyncio


async def tick(name):
    for n in range(2):
        await asyncio.sleep(0)
        print(name, n)
    return name


async def main():
    print(await asyncio.gather(tick("a"), tick("b")))
    try:
        await asyncio.wait_for(asyncio.sleep(10), 0.01)
    except TimeoutError:
        print("timeout")
    task = asyncio.create_task(asyncio.sleep(10))
    await asyncio.sleep(0)
    task.cancel()
    print(await asyncio.gather(task, return_exceptions=True))


asyncio.run(main())
