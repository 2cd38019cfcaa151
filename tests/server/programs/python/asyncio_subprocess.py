# asyncio runs a child process and reads it line by line.
# Also as a cell of a context.
import asyncio


async def main():
    child = await asyncio.create_subprocess_shell("echo one; echo two; exit 3", stdout=asyncio.subprocess.PIPE)
    async for line in child.stdout:
        print(line)
    print(await child.wait())
    out, _ = await (await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1)).communicate(b"echoed")
    print(out)


asyncio.run(main())
