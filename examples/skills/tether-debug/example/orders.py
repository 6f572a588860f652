"""What customers have to pay. One of them pays too little."""

import time


class Order:
    def __init__(self, name, prices, discount=0):
        self.name = name
        self.prices = prices
        self.discount = discount

    def total(self):
        amount = 0
        for price in self.prices:
            amount += price
            amount -= amount * self.discount / 100
        return amount


def bill(orders):
    for order in orders:
        print(f"{order.name} pays {order.total():.2f}", flush=True)


def serve(seconds):
    """Bills again and again, for those who want to look in."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        bill(ORDERS)
        time.sleep(0.2)


ORDERS = [
    Order("Ada", [10, 20]),
    Order("Grace", [10, 20], discount=10),
]

if __name__ == "__main__":
    import sys

    if len(sys.argv) > 1:
        serve(float(sys.argv[1]))
    else:
        bill(ORDERS)
