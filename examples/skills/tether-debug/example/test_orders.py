"""Run by pytest, or by itself."""

from orders import Order


def test_without_discount():
    assert Order("Ada", [10, 20]).total() == 30


def test_discount():
    assert Order("Grace", [10, 20], discount=10).total() == 27
