"""Runs each bug, and writes what OpenTelemetry's SDK records of it as a line of JSON."""

import asyncio
import concurrent.futures
import json
import sys
import threading
import traceback

from shop import cart, orders


def emit(scenario, error):
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    stack = "".join(traceback.format_exception(kind, error, error.__traceback__))
    print(json.dumps({"scenario": scenario, "type": name, "message": str(error), "stacktrace": stack}))


def bug(scenario, function, *args):
    try:
        function(*args)
    except BaseException as error:
        emit(scenario, error)


async def fetch_price(item):
    await asyncio.sleep(0)
    return cart.price_of({}, item)


async def fetch_count(item):
    await asyncio.sleep(0)
    return cart.count_of({}, item)


async def wait_price():
    await asyncio.wait_for(asyncio.sleep(9), 0.01)


async def wait_count():
    await asyncio.wait_for(asyncio.sleep(9), 0.01)


async def gathered(*tasks):
    await asyncio.gather(*tasks)


async def grouped(*tasks):
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(task)


def raise_group(*bodies):
    errors = []
    for body, *args in bodies:
        try:
            body(*args)
        except Exception as error:
            errors.append(error)
    raise ExceptionGroup("several failed", errors)


def in_pool(function, *args):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        pool.submit(function, *args).result()


def in_processes(function, *args):
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        pool.submit(function, *args).result()


def in_thread(scenario, name, *call):
    thread = threading.Thread(target=bug, name=name, args=(scenario, *call))
    thread.start()
    thread.join()


BUGS = {
    "total": (cart.Cart().total, 3),
    "order-total": (orders.Order().total, 3),
    "price": (cart.price_of, {}, "tea"),
    "price-other": (cart.price_of, {}, 4711),
    "count": (cart.count_of, {}, "tea"),
    "charge": (cart.charge, "17"),
    "charge-other": (cart.charge, "ada@shop.example"),
    "charge-lines": (cart.charge, '17\n  File "/srv/shop/shop/pay.py", line 3, in refund\n    x'),
    "refund": (cart.refund, "17"),
    "checkout-number": (cart.checkout, "number"),
    "checkout-price": (cart.checkout, "price"),
    "again-number": (cart.checkout_again, "number"),
    "again-price": (cart.checkout_again, "price"),
    "show": (cart.show, "17"),
    "show-other": (cart.show, "ada"),
    "hide": (cart.hide, "17"),
    "noted": (cart.noted, "user 17"),
    "noted-other": (cart.noted, "user 4711, second try"),
    "rates": (cart.fetch_rates, "http://127.0.0.1:1/rates"),
    "rates-other": (cart.fetch_rates, "http://127.0.0.1:2/rates?day=3"),
    "stock": (cart.fetch_stock, "http://127.0.0.1:1/rates"),
    "open-rates": (cart.open_rates, "http://127.0.0.1:1/"),
    "open-stock": (cart.open_stock, "http://127.0.0.1:1/"),
    "select": (cart.select, "orders"),
    "select-other": (cart.select, "users_2"),
    "delete": (cart.delete, "orders"),
    "read-order": (cart.read_order, "{no}"),
    "read-order-other": (cart.read_order, '{"a": 1, no}'),
    "read-cart": (cart.read_cart, "{no}"),
    "timed-price": (cart.timed_price, {}, "tea"),
    "timed-count": (cart.timed_count, {}, "tea"),
    "walk-2": (cart.walk, {}, 2),
    "walk-40": (cart.walk, {}, 40),
    "endless": (cart.endless, 0),
    "endless-too": (cart.endless_too, 0),
    "check-sum": (cart.check_sum, 1, 2),
    "check-count": (cart.check_count, 1, 2),
    "sorted-prices": (cart.sorted_prices, [{}]),
    "sorted-counts": (cart.sorted_counts, [{}]),
    "retry-1": (cart.retry, 1),
    "retry-3": (cart.retry, 3),
    "summed": (cart.summed, [{}]),
    "longest": (cart.longest, [{}]),
    "template": (cart.template, "\n\n1 / 0"),
    "gathered-price": (lambda: asyncio.run(gathered(fetch_price("tea"))),),
    "gathered-price-other": (lambda: asyncio.run(gathered(fetch_price("milk"))),),
    "gathered-count": (lambda: asyncio.run(gathered(fetch_count("tea"))),),
    "grouped-price": (lambda: asyncio.run(grouped(fetch_price("tea"))),),
    "grouped-price-other": (lambda: asyncio.run(grouped(fetch_price("milk"))),),
    "grouped-count": (lambda: asyncio.run(grouped(fetch_count("tea"))),),
    "wait-price": (lambda: asyncio.run(wait_price()),),
    "wait-count": (lambda: asyncio.run(wait_count()),),
    "group-price": (raise_group, (cart.price_of, {}, "tea"), (cart.charge, "17")),
    "group-price-other": (raise_group, (cart.price_of, {}, "milk"), (cart.charge, "18")),
    "group-stock": (raise_group, (cart.load_stock, "x"), (cart.check_sum, 1, 2)),
    "pool-price": (in_pool, cart.price_of, {}, "tea"),
    "pool-price-other": (in_pool, cart.price_of, {}, "milk"),
    "pool-count": (in_pool, cart.count_of, {}, "tea"),
    "processes-price": (in_processes, cart.price_of, {}, "tea"),
    "processes-price-other": (in_processes, cart.price_of, {}, "milk"),
    "processes-count": (in_processes, cart.count_of, {}, "tea"),
}

if __name__ == "__main__":
    sys.setrecursionlimit(200)
    for scenario, call in BUGS.items():
        bug(scenario, *call)
    in_thread("thread-1", "worker-1", cart.price_of, {}, "tea")
    in_thread("thread-2", "worker-2", cart.price_of, {}, "milk")
    in_thread("thread-count", "worker-1", cart.count_of, {}, "tea")
