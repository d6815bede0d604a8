"""Fixed point against Python's integers and fractions; shares against brute force."""

import hashlib
import hmac
import itertools
import random
import runpy
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdrsvm.errors import CorruptDataError, UnsupportedError
from fdrsvm.federated.secure import primitives
from fdrsvm.federated.secure.primitives import (
    LARGEST,
    PRIME,
    add,
    assurance,
    combine,
    from_fixed,
    from_words,
    is_whole,
    mask,
    negate,
    new_private_key,
    pair_keys,
    proof_of,
    public_key,
    seal_letter,
    seal_of,
    split,
    stack,
    to_fixed,
    to_words,
    weights_at_zero,
)
from tests.privacy.cases import opened

WHOLE = 2**128
words = st.integers(0, WHOLE - 1)
numbers = st.floats(-LARGEST, LARGEST)


def as_fixed(integers):
    return np.array([[n % 2**64, n >> 64] for n in integers], dtype=np.uint64)


def as_integers(fixed):
    return [int(low) + (int(high) << 64) for low, high in fixed]


# --- fixed point ---


@given(st.lists(numbers, min_size=1, max_size=8))
def test_a_number_is_the_nearest_multiple_of_the_step(values):
    found = as_integers(to_fixed(np.array(values)))
    for value, integer in zip(values, found, strict=True):
        signed = integer - WHOLE if integer >= WHOLE // 2 else integer
        assert abs(signed - Fraction(value) * 2**64) <= Fraction(1, 2)


@given(st.lists(words, min_size=1, max_size=8), st.data())
def test_sums_and_negatives_are_those_of_integers(left, data):
    right = data.draw(st.lists(words, min_size=len(left), max_size=len(left)))
    total = as_integers(add(as_fixed(left), as_fixed(right)))
    assert total == [(a + b) % WHOLE for a, b in zip(left, right, strict=True)]
    assert as_integers(negate(as_fixed(left))) == [-a % WHOLE for a in left]


@given(st.lists(st.integers(-(2**124), 2**124), min_size=1, max_size=8))
def test_numbers_come_back_to_within_two_roundings(integers):
    """One of the fraction to float64, one of the sum."""
    found = from_fixed(as_fixed([n % WHOLE for n in integers]))
    for value, integer in zip(found, integers, strict=True):
        exact = Fraction(integer, 2**64)
        assert abs(Fraction(float(value)) - exact) <= abs(exact) * Fraction(2, 2**52)


@given(st.lists(numbers, min_size=2, max_size=6), st.randoms())
def test_the_order_of_a_sum_does_not_matter(values, rng):
    parts = [to_fixed(np.array([value / len(values)])) for value in values]
    shuffled = parts.copy()
    rng.shuffle(shuffled)
    sums = [list(itertools.accumulate(some, add))[-1] for some in (parts, shuffled)]
    np.testing.assert_array_equal(*sums)


@given(st.binary(max_size=70))
def test_bytes_come_back_from_words(data):
    assert from_words(to_words(data), len(data)) == data


def test_rows_of_bytes_are_rows_of_words():
    assert stack([], 33).shape == (0, 5)
    rows = [bytes(range(k, k + 33)) for k in range(3)]
    assert [from_words(row, 33) for row in stack(rows, 33)] == rows


# --- shares ---


def is_prime(n):
    """Miller and Rabin with 40 bases: wrong with a chance below 4^-40."""
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    rng = random.Random(0)
    for _ in range(40):
        x = pow(rng.randrange(2, n - 1), odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def test_the_field_is_one_and_holds_every_secret():
    assert is_prime(PRIME)
    assert not any(is_prime(2**256 + k) for k in range(1, 297))
    assert PRIME > 2**256


@settings(max_examples=40)
@given(st.binary(min_size=32, max_size=32), st.integers(2, 9), st.data())
def test_any_threshold_many_shares_give_the_secret(secret, n_shares, data):
    threshold = data.draw(st.integers(2, n_shares))
    shares = dict(enumerate(split(secret, n_shares, threshold), start=1))
    for chosen in itertools.combinations(shares, threshold):
        assert combine(shares, weights_at_zero(chosen)) == secret


def test_fewer_shares_fit_every_secret(monkeypatch):
    """Brute force in a small field: all polynomials, and what t - 1 shares say of the secret."""
    monkeypatch.setattr(primitives, "PRIME", 7)
    seen = {}
    for secret, a, b in itertools.product(range(7), repeat=3):
        polynomial = (secret, a, b)
        values = {k: primitives.polynomial_value(polynomial, k) for k in (1, 2, 3, 4)}
        for pair in itertools.combinations(values, 2):
            key = (pair, values[pair[0]], values[pair[1]])
            seen.setdefault(key, []).append(secret)
        for chosen in itertools.combinations(values, 3):
            weights = primitives.weights_at_zero(chosen)
            assert sum(weights[k] * values[k] for k in chosen) % 7 == secret
    assert all(sorted(secrets) == list(range(7)) for secrets in seen.values())


def test_shares_that_do_not_fit_give_another_secret():
    secret = bytes(31) + b"\1"
    shares = dict(enumerate(split(secret, 5, 3), start=1))
    wrong = {**shares, 2: shares[3]}
    assert combine(wrong, weights_at_zero([1, 2, 4])) != secret
    top = {1: (PRIME - 1).to_bytes(33, "little")}  # above 2^256: no secret has such a share alone
    assert len(combine(top, weights_at_zero([1]))) == 32


# --- keys, masks, letters ---


def test_both_ends_of_a_pair_have_the_same_keys_and_no_other_context_has():
    a, b, c = (new_private_key() for _ in range(3))
    with_b, with_c = pair_keys(a, [public_key(b), public_key(c)], b"context")
    assert pair_keys(b, [public_key(a)], b"context") == [with_b]
    others = pair_keys(a, [public_key(b)], b"another")
    assert len({key for pair in (with_b, with_c, *others) for key in pair}) == 9
    with pytest.raises(CorruptDataError, match="public key"):
        pair_keys(a, [public_key(b), bytes(32)], b"context")


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.hashes", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'fdr-svm\[secure\]'"):
        runpy.run_path(primitives.__file__)


def test_a_mask_is_the_cipher_s_stream():
    """RFC 8439, test vector 1 of A.1: ChaCha20 with key, nonce and counter of zeros."""
    expected = "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
    assert mask(bytes(32), 2).astype("<u8").tobytes().hex() == expected


def test_a_letter_is_read_with_its_key_only_and_as_it_was_written():
    key, other = new_private_key(), new_private_key()
    letter = seal_letter(key, b"a share")
    assert opened(key, letter) == b"a share"
    altered = bytes([letter[0] ^ 1]) + letter[1:]
    for wrong in ((other, letter), (key, altered), (key, letter[:-1])):
        with pytest.raises(CorruptDataError, match="sealed"):
            opened(*wrong)


def test_a_letter_and_its_seal_are_what_the_formulas_say():
    key, text = new_private_key(), bytes(range(33))

    def mac(key, text):
        return hmac.new(key, text, hashlib.sha256).digest()

    k_open, k_whole = mac(key, b"open"), mac(key, b"whole")
    stream = mask(k_open, 3).astype("<u8").tobytes()[:33]
    hidden = bytes(a ^ b for a, b in zip(text, stream, strict=True))
    letter = seal_letter(key, text)
    assert letter == hidden + mac(k_whole, hidden)[:16]
    proof = proof_of(key)
    assert seal_of(proof) == hashlib.sha256(hashlib.sha256(k_open).digest() + k_whole).digest()[:16]
    assert is_whole(proof, letter)
    assert not is_whole(proof, letter[:-1] + bytes([letter[-1] ^ 1]))
    assert assurance(key, b"who") == mac(key, b"survivorswho")[:16]
