"""Servers and clients that do not follow the protocol: what they get, and who is named."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from fdrsvm import ClientError, InvalidInputError, QuorumError
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.joining import TellableError
from fdrsvm.federated.messages import Broadcast, Update
from fdrsvm.federated.methods import Subgradient, describe
from fdrsvm.federated.rounds import Failure
from fdrsvm.federated.secure import primitives
from fdrsvm.federated.secure import secure_client as client_side
from fdrsvm.federated.secure.primitives import split, to_words
from fdrsvm.federated.secure.secure_client import Promises
from fdrsvm.federated.secure.secure_step import (
    LARGEST_PAIR,
    LARGEST_SHARE,
    LEAST_HIDDEN,
    SMALLEST_PART,
    broken_weight_rule,
    digest_of,
    threshold,
)
from fdrsvm.federated.secure.secure_sums import SecureSum
from tests.federated.cases import assert_same_bits, blobs, problems, with_values
from tests.privacy.test_secure_client import Clients
from tests.privacy.test_secure_sums import (
    ALPHAS,
    Altered,
    Away,
    assert_certified,
    limits_of,
    run,
)

# --- weights ---


def with_weights(clients, weights):
    return tuple(
        member._replace(weight=weight)
        for member, weight in zip(clients.members, weights, strict=True)
    )


@pytest.fixture
def clients():
    found = Clients()
    found.learn_keys()
    return found


@pytest.mark.parametrize(
    ("weights", "reason"),
    [
        ((1.0 - 3e-30, 1e-30, 1e-30, 1e-30), "one client has 1 of the weight"),
        ((0.52, 0.16, 0.16, 0.16), "one client has 0.52"),
        ((0.49, 0.49, 0.01, 0.01), "two clients have 0.98"),
        ((0.45, 0.4, 0.1498, 0.0002), "a weight is 0.00044 of another"),
    ],
)
def test_weights_that_lay_a_client_open_are_refused_by_every_client(clients, weights, reason):
    for name in clients.problems:
        with pytest.raises(TellableError, match=f"hide every client.*{reason}"):
            clients.upload(of=[name], members=with_weights(clients, weights))
    sums = SecureSum(InProcess(problems(blobs(4))), weights)
    with pytest.raises(InvalidInputError, match=f'try "equal".*{reason}'):
        sums.join()


def test_weights_within_the_rule_are_taken(clients):
    for weights in ((0.5, 0.3, 0.1, 0.1), (0.45, 0.45, 0.05, 0.05)):
        fresh = Clients()
        fresh.learn_keys()
        assert "letters" in fresh.upload(members=with_weights(fresh, weights))["client-3"]
    assert not broken_weight_rule([1e-9, 2e-9, 2e-9])  # what counts is how they compare


def test_up_to_half_of_the_weight_a_sum_can_leave_every_answer_possible():
    """Answers in [0, 1], weights a and 1 - a of the others: which x fit a x + (1 - a) z = s, by
    intervals. Above one half every s excludes some x, up to it s = 1/2 excludes none."""

    def width(a, s):
        low, high = (s - (1 - a)) / a, s / a
        return min(high, Fraction(1)) - max(low, Fraction(0))

    sums = [Fraction(k, 40) for k in range(41)]
    for a in (Fraction(1, 10), Fraction(1, 3), Fraction(LARGEST_SHARE)):
        assert width(a, Fraction(1, 2)) == 1
    for a in (Fraction(51, 100), Fraction(2, 3), Fraction(99, 100)):
        assert max(width(a, s) for s in sums) == (1 - a) / a < 1
    assert (LARGEST_PAIR, SMALLEST_PART) == (0.9, 1e-3)


def test_what_a_sum_leaves_of_one_answer_by_least_squares():
    """Independent answers of equal variance: the part of it that is left is the formula of the
    page, here from the normal equations of the best linear guess."""

    def left(weights):
        alphas = np.array(weights)
        covariance, variance = alphas[0], alphas @ alphas  # of x_0 with the sum, of the sum
        part = 1.0 - covariance**2 / variance
        rounding = 2 * len(weights) * np.finfo(float).eps  # of two sums of as many products
        assert abs(part - alphas[1:] @ alphas[1:] / variance) <= rounding
        return part

    assert left([1, 1, 1]) == pytest.approx(2 / 3)
    assert left([1, 1, 1, 1]) == pytest.approx(3 / 4)
    # Three within the other rules: half for one, and any split of the rest leaves a third.
    assert min(left([0.5, k / 1000, 0.5 - k / 1000]) for k in range(100, 401)) >= 1 / 3 - 1e-15
    for n in range(3, 40):
        beside = [0.5, *[0.5 / (n - 1)] * (n - 1)]
        assert left(beside) == pytest.approx(1 / n)
        broken = broken_weight_rule(beside)
        assert (
            (1 / n + 1e-9 < LEAST_HIDDEN) == (f"others hide {1 / n:.2g}" in broken) == bool(broken)
        )
    assert np.sqrt(LEAST_HIDDEN) == pytest.approx(0.32, abs=0.005)


def test_weights_stay_as_they_are_in_the_run_whatever_the_session(clients):
    clients.upload(members=with_weights(clients, [0.1, 0.2, 0.3, 0.4]))
    for weights in ([0.1, 0.2, 0.4, 0.3], [0.25] * 4):
        with pytest.raises(TellableError, match="stay as they are in the whole run"):
            clients.upload(number=2, round_=2, members=with_weights(clients, weights))
    clients.session = "another"
    clients.learn_keys()
    with pytest.raises(TellableError, match="stay as they are in the whole run"):
        clients.upload(round_=2, members=with_weights(clients, [0.25] * 4))
    # Without one of them, and divided by their new sum, they are the same weights.
    fewer = with_weights(clients, [0.1, 0.2, 0.3, 0.4])[1:]
    fewer = tuple(member._replace(weight=member.weight / 0.9) for member in fewer)
    clients.upload(of=["client-1"], round_=2, members=fewer)


def test_survivors_keep_the_rule_too(clients):
    """Members do, and without one of them one has more than half."""
    uploads = clients.upload(members=with_weights(clients, [0.45, 0.15, 0.15, 0.25]))
    with pytest.raises(TellableError, match=r"one client has 0\.6 of the weight"):
        clients.agree("client-0", uploads, (0, 1, 2))
    clients.agree("client-0", uploads, range(4))


# --- a round's answers in two sums ---


def test_a_second_sum_of_a_round_over_other_survivors_is_refused(clients):
    """The difference of the two would be the answer of client-3."""
    first = clients.upload()
    for name in clients.problems:
        clients.unmask(name, first, range(4))
    everybody = clients.members
    for session in ("a session", "another"):
        if session == "another":
            clients.session = session
            clients.learn_keys()
        for members, number in ((everybody, 2), (everybody[:3], 3)):
            names = [m.client_id for m in members]
            own = {m.client_id: m for m in clients.members}
            asked = tuple(own[name]._replace(weight=0.25) for name in names)
            uploads = clients.upload(number=number, of=["client-0"], members=asked)
            with pytest.raises(TellableError, match="round 1 was given with others"):
                clients.agree("client-0", {**first, **uploads}, (0, 1, 2), number)


def test_the_same_sum_and_other_rounds_are_given(clients):
    """What a server needs that crashed, or lacks a client from now on."""
    for number in (1, 2):
        uploads = clients.upload(number=number)
        for name in clients.problems:
            clients.unmask(name, uploads, range(4), number)
    uploads = clients.upload(number=3, round_=2)
    clients.agree_and_unmask(uploads, (0, 1, 2), number=3)


def test_a_round_that_is_too_old_to_know_is_not_given_again():
    promises = Promises()
    for round_ in (1, *range(3, 11)):
        promises.check(round_, b"all")
        promises = promises.with_given(round_, b"all")
    assert [round_ for round_, _ in promises.given] == list(range(3, 11))
    promises.check(3, b"all")
    for round_ in (1, 2):
        with pytest.raises(TellableError, match=f"round {round_} was given, or is too old"):
            promises.check(round_, b"all")
    with pytest.raises(TellableError, match="round 5 was given with others"):
        promises.check(5, b"some")
    promises.check(11, b"some")


def test_before_keys_are_given_a_sum_may_be_done_over_without_a_client(clients):
    first = clients.upload()
    for name in ("client-0", "client-1", "client-2"):
        clients.agree(name, first, (0, 1, 2))
    second = clients.upload(number=2)
    clients.agree_and_unmask(second, (0, 1, 3), number=2)


def test_without_the_word_of_every_survivor_no_key_is_given(clients):
    uploads = clients.upload()
    survivors = (0, 1, 2)
    agreed = {k: clients.agree(k, uploads, survivors) for k in ("client-0", "client-1")}
    agreed["client-2"] = {"words": np.zeros((2, 2), np.int64)}  # it was told of others
    with pytest.raises(TellableError, match="all survivors must have agreed"):
        clients.unmask("client-0", uploads, survivors, agreed=agreed)
    # Words for another upload, or from one client to another, are none.
    agreed["client-2"] = clients.agree("client-2", uploads, survivors)
    agreed["client-2"] = {"words": agreed["client-2"]["words"][::-1]}
    with pytest.raises(TellableError, match="all survivors must have agreed"):
        clients.unmask("client-0", uploads, survivors, agreed=agreed)


def subsets(some, least):
    return [
        frozenset(chosen)
        for size in range(least, len(some) + 1)
        for chosen in itertools.combinations(sorted(some), size)
    ]


@pytest.mark.parametrize("n", [3, 4, 5])
def test_one_upload_has_one_sum_whatever_survivors_are_named_to_whom(n):
    """All ways to name survivors to n clients. A client that was named some in agree gives the
    masks to the others, and keys if all of the survivors were named the same; one that was not
    asked to agree gives the keys to all letters. A sum over C comes out if the seeds of its
    members have t shares and each mask to the outside is revealed at one of its ends."""
    t, everybody = threshold(n), frozenset(range(n))
    views = [[None, *(v for v in subsets(everybody, t) if k in v)] for k in range(n)]
    most = 0
    for told in itertools.product(*views):
        gives = [
            everybody if view is None else view if all(told[k] == view for k in view) else ()
            for view in told
        ]
        has_seed = {k for k in everybody if sum(k in given for given in gives) >= t}
        masked = [everybody if view is None else view for view in told]  # who stays masked with k
        readable = [
            c
            for c in subsets(has_seed, 1)
            if all(j not in masked[k] or k not in masked[j] for k in c for j in everybody - c)
        ]
        assert len(readable) <= 1
        assert all(len(c) >= t for c in readable)
        most = max(most, len(readable))
    assert most == 1


def smallest_difference(n, least):
    """Of two sums of one round's answers, over any members and survivors of n clients, of which
    none gives keys for both: at least ``least(members)`` must for each."""
    sums = [
        (members, survivors)
        for members in subsets(range(n), 3)
        for survivors in subsets(members, least(len(members)))
    ]
    return min(
        len(s ^ other)
        for (m, s), (others, other) in itertools.combinations(sums, 2)
        if s != other and len(m | others) >= least(len(m)) + least(len(others))
    )


def test_two_sums_of_one_round_differ_by_two_answers_at_least():
    """The page's theorem for m = 2; with the threshold of 0.1.0 seven clients were too many."""
    assert smallest_difference(7, threshold) >= 2
    assert smallest_difference(7, lambda n: (n + 3) // 2) == 1


def test_more_sums_do_not_help():
    """Clients that are in one of m sums only have a part in every combination of all of them: at
    least sum over k of 3 t_k - 2 n_k >= m, here by the smallest sets."""
    for sizes in itertools.combinations_with_replacement(range(3, 12), 3):
        alone = 0
        for n in sizes:
            t = threshold(n)
            alone += 2 * (t + t - n) - t  # twice the givers within the sum, less the sum itself
        assert alone >= len(sizes)


# --- clients that lie ---


class Lying:
    """A client that changes its own answers, and does not mind that they arrive so."""

    def __init__(self, inner, change, client_id="client-1"):
        self.inner, self.change, self.client_id = inner, change, client_id

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        asked = [self._unnoticed(b) if b.client_id == self.client_id else b for b in broadcasts]
        return [
            self._changed(a) if a.client_id == self.client_id else a
            for a in self.inner.exchange(asked, deadline)
        ]

    def _unnoticed(self, broadcast):
        values = dict(broadcast.values)
        if "arrived" in values:
            values["arrived"] = self.sent
        return Broadcast(
            broadcast.run_id, broadcast.round, broadcast.client_id, broadcast.algorithm, values
        )

    def _changed(self, answer):
        if isinstance(answer, Failure):
            return answer
        if "letters" in answer.values:
            self.sent = to_words(digest_of(answer.values))[None]
        return self.change(answer)


def changed_row(name, *rows):
    """An array of the answer with other numbers in some rows, all if none are given."""

    def change(answer):
        if name not in answer.values:
            return answer
        array = answer.values[name].copy()
        array[list(rows) if rows else slice(None)] ^= 1
        return with_values(answer, **{name: array})

    return change


def complains(answer):
    if "words" not in answer.values:
        return answer
    proof = np.zeros(8, np.int64)
    values = {"broken": np.array([2]), "proof": proof}
    return Update(answer.run_id, answer.round, answer.client_id, values)


LIES = {
    "one broken letter": changed_row("letters", 3),
    "all letters broken": changed_row("letters"),
    "other seals": changed_row("seals out"),
    "a complaint without proof": complains,
}
RUN = {"max_rounds": 4, "tol": 0.0}


def dropped(clients, transport, **settings):
    told = []
    sums = SecureSum(
        transport,
        ALPHAS,
        quorum=3,
        on_fault="drop",
        limits=limits_of(clients),
        listener=told.append,
        **settings,
    )
    return run(clients, Subgradient(0.5), sums=sums, **RUN), told


@pytest.mark.parametrize(
    "lie",
    ["one broken letter", "all letters broken", "other seals", "a complaint without proof"],
)
def test_a_lie_that_is_found_before_the_keys_ends_only_that_client_s_part(lie):
    clients = blobs(4)
    result, told = dropped(clients, Lying(InProcess(problems(clients)), LIES[lie]))
    assert result.n_rounds == 4
    assert_certified(clients, ALPHAS, result)
    faults = [event for event in told if event["event"] == "fault"]
    absent = [event for event in told if event["event"] == "absent"]
    assert [(event["round"], event["client"]) for event in faults] == [
        (r, "client-1")
        for r in range(1, 6)  # the last one evaluates the model
    ]
    assert [event["clients"] for event in absent] == [["client-1"]] * 5


@pytest.mark.parametrize("lie", ["one broken letter", "all letters broken", "other seals"])
def test_stop_names_the_sender_of_a_broken_letter(lie):
    clients = blobs(4)
    # The third share of four is enough for a seed, so that the fourth letter is not looked at.
    change = changed_row("letters", 2) if lie == "one broken letter" else LIES[lie]
    with pytest.raises(ClientError, match=r"client 'client-1': its (letter|keys)"):
        run(clients, Subgradient(0.5), transport=Lying(InProcess(problems(clients)), change))


def test_wrong_keys_are_the_receiver_s_and_the_sum_is_whole_all_the_same():
    clients = blobs(4)
    plain = run(clients, Subgradient(0.5), **RUN)
    for rows in ((), (0,), (1,), (3,)):
        result, told = dropped(
            clients, Lying(InProcess(problems(clients)), changed_row("keys", *rows))
        )
        assert_same_bits(result, plain)
        assert {(event["event"], event.get("client")) for event in told} == {("fault", "client-1")}
    with pytest.raises(ClientError, match="'client-1': a key that it reveals is not as it said"):
        run(
            clients,
            Subgradient(0.5),
            transport=Lying(InProcess(problems(clients)), changed_row("keys")),
        )


def test_of_two_that_differ_it_cannot_be_said_who_is_wrong():
    """One seal only: client-1's words against client-2's. Both are out; the others are too few."""
    clients = blobs(4)
    lying = Lying(InProcess(problems(clients)), changed_row("seals in", 2))
    with pytest.raises(ClientError, match="client-1 or client-2 is wrong, it cannot be said who"):
        run(clients, Subgradient(0.5), transport=lying)
    with pytest.raises(QuorumError, match=r"2 of 4 clients joined.*client-1: .*client-2: "):
        dropped(clients, Lying(InProcess(problems(clients)), changed_row("seals in", 2)))
    six = blobs(6)
    sums = SecureSum(
        Lying(InProcess(problems(six)), changed_row("seals in", 2)),
        quorum=5,
        on_fault="drop",
        limits=limits_of(six),
    )
    with pytest.raises(QuorumError, match="4 of 6 clients joined"):
        run(six, Subgradient(0.5), sums=sums, **RUN)


def badly_split(wrong):
    """Client-1 seals shares that are not of its seed, for so many of the others."""
    whole = client_side.make_upload

    def reply(private, waiting, values):
        def bad(seed, n_shares, least):
            shares = split(seed, n_shares, least)
            return [bytes(33) if k in wrong else share for k, share in enumerate(shares)]

        with pytest.MonkeyPatch.context() as patch:
            if waiting.position == 1:
                patch.setattr(primitives, "split", bad)
            return whole(private, waiting, values)

    return reply


def test_shares_that_are_not_of_the_seed_are_their_sender_s(monkeypatch):
    clients = blobs(4)
    plain = run(clients, Subgradient(0.5), **RUN)
    monkeypatch.setattr(client_side, "make_upload", badly_split({2}))
    result, told = dropped(clients, InProcess(problems(clients)))
    assert_same_bits(result, plain)  # the other three shares give the seed
    assert {event["client"] for event in told} == {"client-1"}
    with pytest.raises(ClientError, match="'client-1': shares of its seed do not fit"):
        run(clients, Subgradient(0.5), transport=InProcess(problems(clients)))


def test_who_shares_no_seed_at_all_is_named_and_the_round_is_lost(monkeypatch):
    """What was revealed is not given again for others, so nothing can be done over."""
    clients = blobs(4)
    monkeypatch.setattr(client_side, "make_upload", badly_split({0, 2, 3}))
    with pytest.raises(ClientError, match="'client-1': the shares of its seed do not give it"):
        dropped(clients, InProcess(problems(clients)))
    with pytest.raises(ClientError, match="'client-1': the shares of its seed do not give it"):
        run(clients, Subgradient(0.5), transport=InProcess(problems(clients)))


def test_masks_that_are_not_those_of_the_keys_are_noticed_and_nobody_is_named():
    clients = blobs(4)
    lying = Lying(InProcess(problems(clients)), changed_row("n_present"))
    with pytest.raises(ClientError, match=r"masks do not cancel.*nobody can say which one"):
        run(clients, Subgradient(), transport=lying)


@pytest.mark.parametrize("name", ["n_present", "masked/slopes", "letters", "seed"])
def test_an_upload_that_was_changed_on_its_way_is_told_by_its_client(name):
    clients = blobs(4)
    altered = Altered(InProcess(problems(clients)), changed_row(name))
    with pytest.raises(ClientError, match=r"client-1.*changed on the way"):
        run(clients, Subgradient(0.5), transport=altered)
    result, told = dropped(clients, Altered(InProcess(problems(clients)), changed_row(name)))
    assert result.n_rounds == 4
    assert_certified(clients, ALPHAS, result)
    assert {event["client"] for event in told if event["event"] == "fault"} == {"client-1"}


# --- left out for good ---


def five(is_away, told=None, **settings):
    clients = blobs(5)
    sums = SecureSum(
        Away(InProcess(problems(clients)), is_away),
        [0.1, 0.2, 0.2, 0.2, 0.3],
        quorum=4,
        limits=limits_of(clients),
        listener=None if told is None else told.append,
        **settings,
    )
    return clients, sums


def asked(sums, round_):
    values = {"points": np.full((1, 4), 0.1 * round_)}
    broadcast = Broadcast("a run", round_, sums.client_id, describe(Subgradient()), values)
    (found,) = sums.exchange([broadcast], None)
    return found


def test_who_is_away_for_some_rounds_in_a_row_is_left_out_and_the_problem_is_another():
    told = []
    clients, sums = five(
        lambda r, name, p: (name == "client-0" and r >= 3) or (name == "client-4" and r == 2),
        told,
        leave_out_after=3,
    )
    before, weights = sums.join()[0], sums.members.alphas
    for round_ in range(1, 6):
        assert sums.left_out == {}
        assert isinstance(asked(sums, round_), Update)
    assert sums.left_out == {"client-0": 5}
    assert told[-1] == {"event": "left out", "round": 5, "client": "client-0"}
    # Until the loop joins again, sums are of the old problem.
    assert sums.members.n_clients == 5
    after = sums.join()[0]
    assert sums.members.client_ids == tuple(f"client-{g}" for g in range(1, 5))
    np.testing.assert_allclose(sums.members.alphas, weights[1:] / 0.9, rtol=1e-15)
    assert sums.quorum == 4
    assert after.client_id != before.client_id
    assert after.n_samples == before.n_samples - len(clients[0].y)
    found = asked(sums, 6)
    assert isinstance(found, Update)  # four of four, and the clients do not mind
    expected = sum(
        alpha * problem.risk_of(np.full(4, 0.6))
        for alpha, problem in zip(sums.members.alphas, problems(clients)[1:], strict=True)
    )
    np.testing.assert_allclose(found.values["risks"], expected, rtol=1e-13)


def test_who_comes_back_in_time_stays():
    _, sums = five(lambda r, name, p: name == "client-0" and r % 3 != 0, leave_out_after=3)
    for round_ in range(1, 9):
        assert isinstance(asked(sums, round_), Update)
    assert sums.left_out == {}


def test_faults_count_in_all_and_nobody_is_left_out_unless_asked():
    for after, left_out in ((2, {"client-1": 3}), (None, {})):
        clients = blobs(5)
        lying = Lying(
            InProcess(problems(clients)),
            lambda a: changed_row("letters")(a) if a.round % 2 else a,
        )
        sums = SecureSum(
            lying, quorum=4, on_fault="drop", limits=limits_of(clients), leave_out_after=after
        )
        for round_ in range(1, 5):
            asked(sums, round_)
        assert sums.left_out == left_out
    with pytest.raises(InvalidInputError, match="leave_out_after"):
        SecureSum(lying, leave_out_after=0)


def test_fewer_than_three_or_too_unequal_a_rest_ends_the_run_in_words():
    clients = blobs(4)
    away = Away(InProcess(problems(clients)), lambda r, name, p: name == "client-0")
    sums = SecureSum(
        away, [0.1, 0.1, 0.35, 0.45], quorum=3, limits=limits_of(clients), leave_out_after=2
    )
    assert isinstance(asked(sums, 1), Update)
    found = asked(sums, 2)
    assert isinstance(found, Update)  # 0.45 of 0.9 is half
    gone = {"client-0"}
    away.is_away = lambda r, name, p: name in gone
    sums.join()
    gone.add("client-1")
    found = asked(sums, 3)
    assert isinstance(found, Failure)
    assert "2 of 3 clients" in found.reason
