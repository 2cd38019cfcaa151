# Asynchronous generators, comprehensions and context managers; a generator left open is closed.
# Also as a cell of a context.
import asyncio
import contextlib


async def numbers():
    try:
        for n in range(5):
            await asyncio.sleep(0)
            yield n
    finally:
        print("generator closed")


@contextlib.asynccontextmanager
async def opened(name):
    print("open", name)
    yield name.upper()
    print("close", name)


async def main():
    print([n * n async for n in numbers() if n % 2])
    async with opened("x") as x:
        async for n in numbers():
            print(x, n)
            if n == 1:
                break


asyncio.run(main())
