async def main():
    print("never")


main()
