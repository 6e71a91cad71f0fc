"""Prime factors of ranges, small ones against trial division, large ones by their product."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stripe.ir.factors import divisors, is_prime, prime_factors

LARGE = [
    999_999_999_999_999_989,  # a prime
    2**61 - 1,  # a prime
    999_999_937 * 999_999_929,  # the slowest: two primes of one size
    2_147_483_647**2,
    3_215_031_751,  # passes the test of Miller and Rabin for the bases 2, 3, 5 and 7
    897_612_484_786_617_600,  # most divisors below 10^18
    2**62,
]


def test_small_numbers() -> None:
    for number in range(1, 2000):
        expected = [n for n in range(1, number + 1) if number % n == 0]
        assert divisors(number) == expected
        assert is_prime(number) == (len(expected) == 2)


@pytest.mark.parametrize("number", LARGE)
def test_large_numbers(number: int) -> None:
    factors = prime_factors(number)
    assert prod(factors) == number
    assert all(map(is_prime, factors))
    assert is_prime(number) == (factors == (number,))
    assert list(factors) == sorted(factors)
    assert len(divisors(number)) == prod(factors.count(prime) + 1 for prime in set(factors))


@given(st.integers(1, 2**62))
def test_products(number: int) -> None:
    factors = prime_factors(number)
    assert prod(factors) == number
    assert all(map(is_prime, factors))
