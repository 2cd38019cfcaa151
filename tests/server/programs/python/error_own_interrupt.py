class Stop(KeyboardInterrupt):
    pass


raise Stop("mine")
