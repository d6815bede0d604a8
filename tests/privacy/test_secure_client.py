"""What a client does and refuses, whatever the server asks."""

from dataclasses import replace

import numpy as np
import pytest

from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.client import answer
from fdrsvm.federated.client_memory import NO_MEMORY, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast
from fdrsvm.federated.methods import ADMM, Subgradient, describe, from_description
from fdrsvm.federated.secure.primitives import (
    LARGEST,
    add,
    combine,
    from_fixed,
    from_words,
    is_whole,
    mask,
    seal_of,
    to_words,
    weights_at_zero,
)
from fdrsvm.federated.secure.secure_step import Member, SecureStep, digest_of, threshold
from tests.federated.cases import assert_same_values, blobs, names, problems
from tests.privacy.cases import opened

SM = describe(Subgradient())


class Clients:
    """Clients with their memories, asked one by one as a server would."""

    def __init__(self, n_clients=4, method=SM, session="a session"):
        self.problems = dict(zip(names(n_clients), problems(blobs(n_clients)), strict=True))
        self.memories = dict.fromkeys(self.problems, NO_MEMORY)
        self.method, self.session = method, session
        width = next(iter(self.problems.values())).width
        self.asked = {"asked/points": np.linspace(-1.0, 1.0, width)[None]}
        self.members = ()

    def tell(self, name, step, values=None, round_=1):
        broadcast = Broadcast("a run", round_, name, describe(step), values or {})
        self.memories[name], update = answer(self.problems[name], self.memories[name], broadcast)
        return update.values

    def learn_keys(self):
        step = SecureStep("upload", self.session, 1, self.method)
        found = {name: self.tell(name, step)["public"] for name in self.problems}
        n = len(found)
        self.members = tuple(
            Member(name, from_words(key, 32).hex(), 1.0 / n) for name, key in found.items()
        )

    def upload(self, number=1, asked=None, round_=1, of=None, **changes):
        step = SecureStep("upload", self.session, number, self.method, self.members)
        step = replace(step, **changes)
        return {
            name: self.tell(name, step, self.asked if asked is None else asked, round_)
            for name in of or self.problems
        }

    def letters(self, name, uploads, survivors):
        position = list(self.problems).index(name)
        return np.array(
            [
                uploads[other]["letters"][position]
                for k, other in enumerate(self.problems)
                if k in survivors and k != position
            ]
        ).reshape(-1, 7)

    def agree(self, name, uploads, survivors, number=1, **changes):
        values = {
            "letters": self.letters(name, uploads, survivors),
            "arrived": to_words(digest_of(uploads[name]))[None],
            **changes,
        }
        step = SecureStep("agree", self.session, number, survivors=tuple(survivors))
        return self.tell(name, step, values)

    def unmask(self, name, uploads, survivors, number=1, agreed=None, **changes):
        values = {"arrived": to_words(digest_of(uploads[name]))[None], **changes}
        if agreed is not None:
            here = [other for k, other in enumerate(self.problems) if k in survivors]
            at = {other: [one for one in here if one != other].index for other in here}
            rows = [agreed[other]["words"][at[other](name)] for other in here if other != name]
            values["words"] = np.array(rows)
        step = SecureStep("unmask", self.session, number, survivors=tuple(survivors))
        return self.tell(name, step, values)

    def agree_and_unmask(self, uploads, survivors, number=1):
        """All of the survivors, as an honest server would have it."""
        here = [name for k, name in enumerate(self.problems) if k in survivors]
        agreed = {name: self.agree(name, uploads, survivors, number) for name in here}
        keys = {name: self.unmask(name, uploads, survivors, number, agreed) for name in here}
        return agreed, keys


@pytest.fixture
def clients():
    found = Clients()
    found.learn_keys()
    return found


def test_a_message_sent_twice_gets_the_same_answer(clients):
    first = clients.upload()
    memories = dict(clients.memories)
    again = clients.upload()
    for name in first:
        assert_same_values(first[name], again[name])
        assert clients.memories[name] is memories[name]
    revealed = clients.unmask("client-0", first, range(4))
    assert_same_values(revealed, clients.unmask("client-0", first, range(4)))


def test_keys_stay_those_of_the_session(clients):
    keys = clients.members
    clients.learn_keys()
    assert clients.members == keys
    clients.session = "another"
    clients.learn_keys()
    assert not {m.public for m in keys} & {m.public for m in clients.members}


def test_another_upload_under_the_same_number_is_refused(clients):
    """Else one mask would hide two values."""
    clients.upload(number=3)
    other = {"asked/points": clients.asked["asked/points"] + 1.0}
    for number in (3, 2):
        with pytest.raises(TellableError, match="a mask is for one upload"):
            clients.upload(number=number, asked=other)
    clients.upload(number=4, asked=other)


def test_a_second_set_of_survivors_is_refused(clients):
    uploads = clients.upload()
    clients.agree("client-0", uploads, (0, 1, 2))
    for survivors in ((0, 1, 3), (0, 1, 2, 3)):
        for ask in (clients.agree, clients.unmask):
            with pytest.raises(TellableError, match="one set of survivors"):
                ask("client-0", uploads, survivors)
    clients.unmask("client-1", uploads, range(4))
    for ask in (clients.agree, clients.unmask):
        with pytest.raises(TellableError, match="one set of survivors"):
            ask("client-1", uploads, (0, 1, 2))


def test_an_older_upload_is_not_unmasked_after_a_newer_one(clients):
    uploads = clients.upload(number=1)
    clients.upload(number=2)
    with pytest.raises(TellableError, match="not the one that waits"):
        clients.unmask("client-0", uploads, range(4), number=1)


@pytest.mark.parametrize("survivors", [(0,), (0, 1), (1, 2, 3), (0, 1, 9)])
def test_too_few_survivors_or_others_are_refused(clients, survivors):
    uploads = clients.upload()
    arrived = to_words(digest_of(uploads["client-0"]))[None]
    for phase in ("agree", "unmask"):
        step = SecureStep(phase, clients.session, 1, survivors=survivors)
        with pytest.raises(TellableError, match="survivors must be at least 3 of the 4"):
            clients.tell("client-0", step, {"arrived": arrived})
    clients.unmask("client-0", uploads, range(4))  # which costs the right request nothing


def test_a_letter_to_another_is_told_with_a_proof_that_does_not_open_it(clients):
    uploads = clients.upload()
    swapped = {**uploads, "client-1": uploads["client-2"]}
    found = clients.agree("client-0", swapped, range(4))
    assert found.keys() == {"broken", "proof"}
    assert found["broken"].tolist() == [1]
    proof = from_words(found["proof"], 64)
    assert seal_of(proof) == from_words(uploads["client-1"]["seals out"][0], 16)
    assert not is_whole(proof, from_words(uploads["client-2"]["letters"][0], 49))
    # The letter as it was sent is whole, and that is all that can be said of it.
    letter = from_words(uploads["client-1"]["letters"][0], 49)
    assert is_whole(proof, letter)
    for key in (proof[:32], proof[32:]):
        with pytest.raises(CorruptDataError):
            opened(key, letter)
    with pytest.raises(TellableError, match="not the one that waits"):
        clients.unmask("client-0", uploads, range(4))


def test_rows_of_another_form_are_refused(clients):
    uploads = clients.upload()
    for wrong in (np.zeros((1, 7), np.int64), np.zeros((3, 7))):
        with pytest.raises(TellableError, match="3 rows of letters"):
            clients.agree("client-0", uploads, range(4), letters=wrong)
    with pytest.raises(TellableError, match="2 rows of words"):
        clients.unmask("client-0", uploads, (0, 1, 2))


def test_an_upload_that_was_changed_on_its_way_is_not_unmasked(clients):
    uploads = clients.upload()
    other = to_words(digest_of({**uploads["client-0"], "n_present": np.array([[5, 7]])}))[None]
    for ask in (clients.agree, clients.unmask):
        with pytest.raises(TellableError, match="changed on the way"):
            ask("client-0", uploads, range(4), arrived=other)


def test_an_unmasking_of_another_session_is_refused(clients):
    uploads = clients.upload()
    clients.session = "another"
    with pytest.raises(TellableError, match="session"):
        clients.unmask("client-0", uploads, range(4))


def test_a_new_session_forgets_the_secrets_of_the_old_one(clients):
    clients.upload()
    before = clients.memories["client-0"].values
    old = [before[name].tobytes() for name in ("private", "own key", "context")]
    clients.session = "another"
    clients.learn_keys()
    after = clients.memories["client-0"].values
    kept = b" ".join(array.tobytes() for array in after.values())
    assert not any(secret in kept for secret in old)


def test_secrets_are_gone_once_they_are_revealed(clients):
    uploads = clients.upload()
    assert {"context", "own key", "keys"} <= clients.memories["client-0"].values.keys()
    clients.unmask("client-0", uploads, range(4))
    left = clients.memories["client-0"].values.keys()
    assert not {"context", "own key", "keys"} & left


def test_a_client_that_lost_its_memory_gives_a_new_key(clients):
    old = clients.members[2].public
    clients.memories["client-2"] = NO_MEMORY
    found = clients.upload(of=["client-2"])["client-2"]
    assert set(found) == {"public"}
    assert from_words(found["public"], 32).hex() != old


def test_a_member_with_a_key_that_is_none_is_refused(clients):
    wrong = clients.members[1]._replace(public="00" * 32)
    members = (clients.members[0], wrong, *clients.members[2:])
    with pytest.raises(TellableError, match="must be keys"):
        clients.upload(of=["client-0"], members=members)


def test_a_memory_goes_through_its_file(clients):
    uploads = clients.upload()
    for name, memory in clients.memories.items():
        clients.memories[name] = memory_from_arrays(*memory_to_arrays(memory))
    assert clients.unmask("client-1", uploads, range(4))["keys"].shape == (4, 4)


def test_the_inner_method_s_memory_is_what_it_would_be_in_the_open():
    clients = Clients(method=describe(ADMM(rho=0.1)))
    clients.learn_keys()
    clients.asked.update({"asked/rho": np.array(0.1), "asked/tau": np.array(0.0)})
    plain = NO_MEMORY
    for round_ in (1, 2, 3, 4):
        clients.asked["asked/points"] = clients.asked["asked/points"] * 0.9
        clients.upload(number=round_, round_=round_)
        values = {name.removeprefix("asked/"): a for name, a in clients.asked.items()}
        broadcast = Broadcast("a run", round_, "client-0", clients.method, values)
        plain, _ = answer(clients.problems["client-0"], plain, broadcast)
    header, expected = memory_to_arrays(plain)
    stored = clients.memories["client-0"].values
    assert stored["inner rounds"].tolist() == header["past"]
    inner = {k.removeprefix("inner/"): v for k, v in stored.items() if k.startswith("inner/")}
    assert_same_values(inner, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -2.0 * LARGEST])
def test_a_number_that_does_not_fit_is_told_without_its_value(clients, value, monkeypatch):
    monkeypatch.setattr(
        Subgradient, "answer", lambda *_: ({}, {"risks": np.array([1.0]), "slopes": [value]})
    )
    with pytest.raises(TellableError, match="slopes") as caught:
        clients.upload()
    assert str(abs(value)) not in str(caught.value)


def test_clients_asked_different_things_have_no_keys_in_common(clients):
    """So their masks do not cancel, and nobody can open the other's letter."""
    uploads = clients.upload(of=["client-0", "client-1", "client-2"])
    other = {"asked/points": clients.asked["asked/points"] + 1.0}
    uploads |= clients.upload(asked=other, of=["client-3"])
    for name in clients.problems:
        assert "broken" in clients.agree(name, uploads, range(4))
    for k, name in enumerate(["client-0", "client-1", "client-2"]):
        out, back = uploads[name]["seals out"][3], uploads[name]["seals in"][3]
        assert not (out == uploads["client-3"]["seals in"][k]).all()
        assert not (back == uploads["client-3"]["seals out"][k]).all()


# --- what a server that lies can strip: see also test_secure_attacks.py ---


def test_the_threshold_is_above_two_thirds_and_at_least_three():
    for n in range(3, 300):
        assert 3 <= threshold(n) <= n
        assert 3 * threshold(n) >= 2 * n + 1


# --- a sum by hand ---


def test_uploads_shares_and_masks_make_the_sum_by_the_formula(clients):
    """The protocol's equations once more, from the words of the clients alone; one is gone."""
    here, gone = ["client-0", "client-2", "client-3"], 1
    positions = (0, 2, 3)
    uploads = clients.upload(of=here)
    agreed, revealed = clients.agree_and_unmask(uploads, positions)
    kinds = ("constants", "norm_weights", "risks", "slopes")
    flat = {
        name: np.concatenate(
            [uploads[name][f"masked/{kind}"].reshape(-1, 2) for kind in kinds]
            + [uploads[name]["n_present"]]
        ).view(np.uint64)
        for name in here
    }
    length = len(flat["client-0"])
    total = np.zeros((length, 2), dtype=np.uint64)
    for at, (name, k) in enumerate(zip(here, positions, strict=True)):
        total = add(total, flat[name])
        shares = {
            j + 1: opened(
                from_words(revealed[other]["keys"][at], 32),
                from_words(uploads[name]["letters"][j], 49),
            )
            for other, j in zip(here, positions, strict=True)
        }
        seed = combine(shares, weights_at_zero([1, 3, 4]))
        total = add(total, ~mask(seed, length))
        total = add(total, one(length))
        pair = mask(from_words(agreed[name]["masks"][0], 32), length)
        total = add(total, pair if k > gone else add(~pair, one(length)))
    plain = {
        name: Subgradient().answer(
            clients.problems[name], {}, {"points": clients.asked["asked/points"]}
        )[1]
        for name in here
    }
    sums = from_fixed(total)
    assert sums[-1] == 3.0
    expected = np.concatenate(
        [np.ravel(sum(0.25 * plain[name][kind] for name in here)) for kind in kinds]
    )
    np.testing.assert_allclose(sums[:-1], expected, rtol=1e-15, atol=3 * 2.0**-65)


def one(length):
    """The integer 1, so often: what turns a complement into a negative."""
    return np.tile(np.array([1, 0], dtype=np.uint64), (length, 1))


# --- steps as text ---


@pytest.mark.parametrize(
    "wrong",
    [
        {"phase": "leak"},
        {"number": 0},
        {"number": 1.5},
        {"session": 3},
        {"survivors": [2, 1]},
        {"survivors": [-1]},
        {"members": [["a", "00" * 32, 1.0]] * 3},
        {"members": [["a", "00" * 32, 0.5], ["b", "11" * 32, 0.5]]},
        {"members": [["a", "00" * 32, 0.3], ["b", "11" * 32, 0.3], ["c", "22" * 31, 0.3]]},
        {"members": [["a", "00" * 32, 0.3], ["b", "11" * 32, 0.3], ["c", "zz" * 32, 0.3]]},
        {"members": [["a", "00" * 32, 0.3], ["b", "11" * 32, 0.3], ["c", "22" * 32, 1.5]]},
        {"members": [["a", "00" * 32, 0.3], ["b", "11" * 32, 0.3], ["c", "22" * 32, "1"]]},
        {"members": [["a", "00" * 32, 1.0], ["b", "11" * 32, 0.0], ["c", "22" * 32, 0.0]]},
        {"members": [["a", "00" * 32, 0.4], ["b", "11" * 32, 0.4], ["c", "22" * 32, 0.4]]},
    ],
)
def test_a_step_that_is_not_whole_is_refused(wrong, clients):
    step = SecureStep("upload", "s", 1, SM, clients.members)
    assert from_description(describe(step)) == step
    settings = {"phase": "upload", "session": "s", "number": 1, **wrong}
    with pytest.raises(InvalidInputError):
        SecureStep(**settings)
