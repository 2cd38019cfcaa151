# Code with await at its top level is no program.
import asyncio

await asyncio.sleep(0)
print("never as a file")
