print('my enum')
