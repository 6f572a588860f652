import os
import threading
import time


def low_bits(number):
    return number & 3


def count(total):
    for number in range(2_000_000):
        total += low_bits(number)  # BREAK


print("up", flush=True)
while not os.path.exists("go"):
    time.sleep(0.02)
before = time.process_time()
threads = [threading.Thread(target=count, args=(at,)) for at in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print((time.process_time() - before) * 1000)
