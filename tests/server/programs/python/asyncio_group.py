# A TaskGroup cancels its tasks when one fails.
# Also as a cell of a context.
import asyncio


async def slow():
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        print("cancelled")
        raise


async def main():
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            await asyncio.sleep(0)
            group.create_task(asyncio.wait_for(asyncio.sleep(5), 0.01))
    except* TimeoutError as errors:
        print(len(errors.exceptions))
    async with asyncio.timeout(1):
        print("in time")


asyncio.run(main())
