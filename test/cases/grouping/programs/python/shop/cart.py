import functools
import json
import sqlite3
import urllib.request

import requests

from .errors import Declined, NotFound

#2 # Edited:
#2 # two lines more.


class Cart:
    def __init__(self):
        self.items = []

    def total(self, last):
        return self.items[last]["price"]


def price_of(prices, item):
    #2 prices = dict(prices)
    return prices[item]


def count_of(counts, item):
    return counts[item]


def charge(user):
    raise Declined(f"no card of user {user}")


def refund(user):
    raise Declined(f"no card of user {user}")


def load_stock(text):
    return int(text)


def checkout(kind):
    try:
        return load_stock("x") if kind == "number" else price_of({}, "x")
    except Exception as error:
        raise Declined("the checkout failed") from error


def checkout_again(kind):
    try:
        return load_stock("x") if kind == "number" else price_of({}, "x")
    except Exception:
        return refund("17")


def show(user):
    try:
        price_of({}, user)
    except KeyError:
        raise NotFound(f"no price for {user}") from None


def hide(user):
    try:
        price_of({}, user)
    except KeyError:
        raise NotFound(f"no price for {user}") from None


def noted(user):
    try:
        charge("17")
    except Declined as error:
        error.add_note(f"while serving {user}")
        raise


def fetch_rates(url):
    return requests.get(url, timeout=2)


def fetch_stock(url):
    return requests.get(url, timeout=2)


def open_rates(url):
    return urllib.request.urlopen(url, timeout=2)


def open_stock(url):
    return urllib.request.urlopen(url, timeout=2)


def select(table):
    return sqlite3.connect(":memory:").execute(f"select * from {table}")


def delete(table):
    return sqlite3.connect(":memory:").execute(f"delete from {table}")


def read_order(text):
    return json.loads(text)


def read_cart(text):
    return json.loads(text)


def timed(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@timed
def timed_price(prices, item):
    return prices[item]


@timed
def timed_count(counts, item):
    return counts[item]


def walk(prices, depth):
    return prices["x"] if depth == 0 else walk(prices, depth - 1)


def endless(n):
    return endless(n + 1)


def endless_too(n):
    return endless_too(n + 1)


def check_sum(left, right):
    assert left == right


def check_count(left, right):
    assert left == right


def sorted_prices(items):
    return sorted(items, key=lambda item: item["price"])


def sorted_counts(items):
    return sorted(items, key=lambda item: item["price"])


def retry(attempts):
    for attempt in range(attempts):
        try:
            load_stock(f"attempt-{attempt}")
        except ValueError:
            if attempt == attempts - 1:
                raise


def summed(items):
    return sum(item["price"] for item in items)


def longest(items):
    return max(item["price"] for item in items)


def template(text):
    exec(compile(text, "<template>", "exec"), {})
