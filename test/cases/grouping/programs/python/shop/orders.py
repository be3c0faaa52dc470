class Order:
    def __init__(self):
        self.items = []

    def total(self, last):
        return self.items[last]["price"]
