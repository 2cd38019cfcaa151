print('my functools')
