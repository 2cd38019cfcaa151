MARK = "mine"
