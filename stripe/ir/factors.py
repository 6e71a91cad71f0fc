"""Prime factors and divisors of ranges, which may be as large as addresses: some 10^5 steps for any 64 bits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import gcd

_SMALL = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41)
"""As bases of the test of Miller and Rabin they decide for all numbers below 3.3e24 (Sorenson, Webster 2015)."""


def is_prime(number: int) -> bool:
    """Whether a number is a prime: the test of Miller and Rabin."""
    if number < 2:
        return False
    for prime in _SMALL:
        if number % prime == 0:
            return number == prime
    twos = ((number - 1) & -(number - 1)).bit_length() - 1
    return not any(_is_witness(base, number, twos) for base in _SMALL)


def _is_witness(base: int, number: int, twos: int) -> bool:
    """Whether `base` shows that a number, one less than which is divisible by 2 ** `twos`, is composite."""
    power = pow(base, (number - 1) >> twos, number)
    if power in (1, number - 1):
        return False
    for _ in range(twos - 1):
        power = power * power % number
        if power == number - 1:
            return False
    return True


def prime_factors(number: int) -> tuple[int, ...]:
    """The prime factors of a positive number, each as often as it divides, rising."""
    found: list[int] = []
    for prime in _SMALL:
        while number % prime == 0:
            found.append(prime)
            number //= prime
    waiting = [number] if number > 1 else []
    while waiting:
        part = waiting.pop()
        if is_prime(part):
            found.append(part)
        else:
            factor = next(_proper_factors(part))
            waiting += [factor, part // factor]
    return tuple(sorted(found))


def _proper_factors(number: int) -> Iterator[int]:
    """Factors of an odd composite number other than 1 and itself: Pollard's rho, where the sequence meets itself modulo
    a prime factor after some steps of the order of its square root."""
    for offset in count(1):
        slow = fast = 2
        common = 1
        while common == 1:
            slow = (slow * slow + offset) % number
            fast = (fast * fast + offset) % number
            fast = (fast * fast + offset) % number
            common = gcd(abs(slow - fast), number)
        if common != number:
            yield common


def divisors(number: int) -> list[int]:
    """The divisors of a positive number, rising."""
    found = {1}
    for prime in prime_factors(number):
        found |= {divisor * prime for divisor in found}
    return sorted(found)
