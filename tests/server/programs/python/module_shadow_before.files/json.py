print('my json')
