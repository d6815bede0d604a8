"""Runs on masked sums: equal to runs in the open, with clients that leave, and a server's view."""

import numpy as np
import pytest
from scipy import stats

from fdrsvm import ClientError, InvalidInputError, QuorumError, UnsupportedError
from fdrsvm.federated.audit import run_audited
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.client_memory import NO_MEMORY
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.messages import Broadcast, Update, encode
from fdrsvm.federated.methods import (
    ADMM,
    ADMMSC,
    Bundle,
    FedAvg,
    FedDRO,
    FedSGD,
    OneVsRest,
    OneVsRestProblem,
    Subgradient,
    describe,
    from_description,
)
from fdrsvm.federated.methods.admm import smallest_tau
from fdrsvm.federated.rounds import Failure, Stop
from fdrsvm.federated.secure.primitives import (
    add,
    combine,
    from_fixed,
    from_words,
    mask,
    negate,
    new_private_key,
    pair_keys,
    public_key,
    signed_mask,
    weights_at_zero,
)
from fdrsvm.federated.secure.secure_step import context_of
from fdrsvm.federated.secure.secure_sums import SecureSum
from fdrsvm.privacy import Recorded as RecordedInFile
from fdrsvm_paper.feddro_published import FedDROPublished
from tests.federated.cases import (
    METHODS,
    Recorded,
    ThroughBytes,
    assert_same_bits,
    blobs,
    names,
    problems,
    random_clients,
    train,
    with_values,
)
from tests.federated.reference import reference_optimum
from tests.federated.test_agreement import ROUNDING, true_objective, truth_of
from tests.privacy.cases import opened

ALPHAS = np.array([0.2, 0.2, 0.25, 0.35])  # of any three, none has more than half
SUMMABLE = [
    "summed",
    "admm",
    "admm-relaxed",
    "admm-sc",
    "subgradient",
    "fedsgd",
    "fedavg",
    "fedprox",
]


class Away:
    """Clients that miss exchanges, by round, name and phase; they do not know of them."""

    def __init__(self, inner, is_away):
        self.inner = inner
        self.is_away = is_away

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        def leaves(b):
            step = from_description(b.algorithm)
            phase = "keys" if step.phase == "upload" and not step.members else step.phase
            return self.is_away(b.round, b.client_id, phase)

        asked = [b for b in broadcasts if not leaves(b)]
        found = {a.client_id: a for a in self.inner.exchange(asked, deadline)}
        return [
            found.get(b.client_id, Failure(b.client_id, "away", is_missing=True))
            for b in broadcasts
        ]


def limits_of(clients):
    X = np.concatenate([client.X for client in clients])
    return Limits.checked(np.abs(X).max(axis=0), X.shape[1])


def run(clients, method, *, transport=None, alphas=ALPHAS, sums=None, **settings):
    """A run on masked sums."""
    transport = InProcess(problems(clients)) if transport is None else transport
    own = {name: settings.pop(name) for name in ("quorum", "on_fault") if name in settings}
    sums = SecureSum(transport, alphas, limits=limits_of(clients), **own) if sums is None else sums
    return train(clients, sums.method(method), transport=sums, **settings)


def evened(alphas):
    """Unequal still, and within what clients accept, also if one of them is absent."""
    return 0.25 * alphas + 0.75 / len(alphas)


def close(left, right, rtol):
    assert abs(left - right) <= rtol * abs(right)


def assert_certified(clients, alphas, result, *, is_exact=False):
    """lower bound <= optimum <= F(model) <= objective, which is F(model) itself if nobody left."""
    optimum, _, highest = truth_of(clients, alphas)
    for record in result.history:
        assert record.lower_bound <= highest + ROUNDING * (1.0 + highest), record.round
        assert record.objective >= optimum.low, record.round
    assert result.lower_bound <= highest + ROUNDING * (1.0 + highest)
    truth = true_objective(clients, alphas, result.model)
    assert result.objective >= truth - ROUNDING * (1.0 + truth)
    if is_exact:
        close(result.objective, truth, ROUNDING)


# --- the same run ---


@pytest.mark.parametrize("method", SUMMABLE)
def test_a_run_on_sums_is_the_run_in_the_open(method):
    """Numbers are rounded to 2^-64 and sums to float64: a run differs by rounding alone."""
    for seed in range(3):
        clients, alphas = random_clients(900 + seed, n_clients=4, boxed=False, kind="plain")
        alphas = evened(alphas)
        settings = {"max_rounds": 12, "tol": 1e-9}
        plain = train(clients, METHODS[method], alphas=alphas, **settings)
        secure = run(clients, METHODS[method], alphas=alphas, **settings)
        assert secure.n_rounds == plain.n_rounds
        close(secure.objective, plain.objective, 1e-11)
        np.testing.assert_allclose(secure.newest, plain.newest, rtol=1e-8, atol=1e-9)


def test_a_sum_of_one_exchange_is_the_sum_to_the_last_bit():
    """Subgradients at one model: integers are added, so only the last rounding is left."""
    clients = blobs(4)
    sums = SecureSum(InProcess(problems(clients)), ALPHAS)
    point = np.linspace(-1.0, 2.0, 4)
    asked = {"points": point[None]}
    method = Subgradient()
    broadcast = Broadcast("a run", 1, sums.client_id, describe(method), asked)
    (update,) = sums.exchange([broadcast], None)
    answers = [method.answer(problem, {}, asked)[1] for problem in problems(clients)]
    for name, array in update.values.items():
        integers = sum(
            np.array([round(x * 2**64) for x in np.ravel(a * one[name])], dtype=object)
            for a, one in zip(ALPHAS, answers, strict=True)
        )
        exact = np.array([n / 2**64 for n in integers]).reshape(array.shape)
        np.testing.assert_array_max_ulp(array, exact, 1)


@pytest.mark.parametrize("method", ["summed", "admm", "subgradient"])
def test_masks_leave_no_trace_in_the_result(method):
    """Two sessions have other keys and masks, and the same bits."""
    clients = blobs(3)
    settings = {"alphas": "equal", "max_rounds": 6, "tol": 1e-9}
    once = run(clients, METHODS[method], **settings)
    assert_same_bits(once, run(clients, METHODS[method], **settings))
    through = ThroughBytes(InProcess(problems(clients)))
    assert_same_bits(once, run(clients, METHODS[method], transport=through, **settings))
    threads = InProcess(problems(clients), n_threads=3)
    assert_same_bits(once, run(clients, METHODS[method], transport=threads, **settings))


def test_the_certificate_of_a_run_on_sums_holds():
    for seed in range(4):
        clients, alphas = random_clients(950 + seed, n_clients=3, kind="plain")
        alphas = evened(alphas)
        result = run(clients, Bundle(), alphas=alphas, tol=1e-5, max_rounds=200)
        assert result.reason is Stop.TOL
        assert_certified(clients, alphas, result, is_exact=True)


def test_several_classes_are_summed_model_by_model():
    rng = np.random.default_rng(3)
    parts = blobs(3)
    labels = [rng.choice([-1.0, 1.0], size=len(part.y)) for part in parts]
    both = [
        OneVsRestProblem((first, second))
        for first, second in zip(
            problems(parts),
            problems([p.with_(y=y) for p, y in zip(parts, labels, strict=True)]),
            strict=True,
        )
    ]
    for inner in (Bundle(), ADMM(rho=0.05), Subgradient(0.5)):
        method = OneVsRest(inner, 2, 1e-4)
        sums = SecureSum(InProcess(both))
        secure = train(parts, sums.method(method), transport=sums, max_rounds=15, tol=1e-4)
        summed = OneVsRest(Bundle(cuts="summed"), 2, 1e-4) if inner == Bundle() else method
        plain = train(parts, summed, transport=InProcess(both), max_rounds=15, tol=1e-4)
        close(secure.objective, plain.objective, 1e-9)


# --- what the server sees ---


def uploads_of(recorded):
    """All uploads by client, as bytes of the masked numbers, in the order they came."""
    found = {}
    for _, answers in recorded.rounds:
        for update in answers:
            if "n_present" in update.values:
                data = b"".join(
                    array.tobytes()
                    for name, array in sorted(update.values.items())
                    if name.startswith("masked/") or name == "n_present"
                )
                found.setdefault(update.client_id, []).append(data)
    return found


def test_equal_answers_are_unequal_bytes_each_time_and_look_random():
    """The same model in every round: equal values, and bytes that a chi-square test cannot tell
    from uniform ones; the values themselves it can."""
    clients = blobs(3, n_features=40)
    recorded = Recorded(InProcess(problems(clients)))
    sums = SecureSum(recorded)
    asked = {"points": np.linspace(-1.0, 1.0, 40)[None]}
    plain = b""
    for round_ in range(1, 41):
        method = describe(Subgradient())
        (found,) = sums.exchange([Broadcast("a run", round_, "all", method, asked)], None)
        plain += b"".join(array.tobytes() for array in found.values.values())
    uploads = uploads_of(recorded)
    assert len({data for some in uploads.values() for data in some}) == 3 * 40
    for some in (*uploads.values(), [b"".join(uploads["client-0"])]):
        counts = np.bincount(np.frombuffer(b"".join(some), np.uint8), minlength=256)
        assert counts.sum() > 25_000
        assert stats.chisquare(counts).pvalue > 1e-9  # wrong once in 10^9 runs
    counts = np.bincount(np.frombuffer(plain, np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue < 1e-9


def test_without_one_mask_of_a_pair_an_upload_says_nothing():
    """All but one pair's mask are stripped, as if all but two clients told the server theirs."""
    clients = blobs(4, n_features=3000, n_samples=5)
    transport = InProcess(problems(clients))
    recorded = Recorded(transport)
    sums = SecureSum(recorded)
    asked = {"points": np.zeros((1, 3000))}
    method = describe(Subgradient())
    sums.exchange([Broadcast("a run", 1, "all", method, asked)], None)
    _, (sent, uploads), (_, revealed) = recorded.rounds
    step = from_description(sent[0].algorithm)
    keys = [bytes.fromhex(member.public) for member in step.members]
    private = {k: from_words(transport.memories[names(4)[k]].values["private"], 32) for k in (2, 3)}
    numbers = [1, 2, 3]
    values = uploads[0].values
    shares = {
        k: opened(
            from_words(revealed[k - 1].values["keys"][0], 32),
            from_words(values["letters"][k - 1], 49),
        )
        for k in numbers
    }
    kinds = [k for k in sorted(values) if k.startswith("masked/")]
    total = np.concatenate([values[k].reshape(-1, 2) for k in kinds]).view(np.uint64)
    length = len(total) + 1
    masks = [mask(combine(shares, weights_at_zero(numbers)), length)]
    masks += [
        signed_mask(pair_keys(private[k], keys[:1], context_of(sent[0]))[0].mask, 0, k, length)
        for k in (2, 3)
    ]
    for one in masks:
        total = add(total, negate(one[:-1]))
    counts = np.bincount(np.frombuffer(total.tobytes(), np.uint8), minlength=256)
    assert stats.chisquare(counts).pvalue > 1e-9
    # With the last one too, the values are there: nothing else hid them.
    own = from_words(transport.memories["client-1"].values["private"], 32)
    last = signed_mask(pair_keys(own, keys[:1], context_of(sent[0]))[0].mask, 0, 1, length)
    found = from_fixed(add(total, negate(last[:-1])))
    answer = Subgradient().answer(transport.problems[0], {}, asked)[1]
    expected = np.concatenate([0.25 * np.ravel(answer[k.removeprefix("masked/")]) for k in kinds])
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=2.0**-64)


def test_no_client_s_own_number_passes_the_server():
    """Every float64 of every client's answer is looked for in all the bytes that travelled."""
    clients = blobs(3)
    recorded = Recorded(InProcess(problems(clients)))
    result = run(clients, Subgradient(0.5), transport=recorded, alphas="equal", max_rounds=4, tol=0)
    sent = b"".join(
        encode(message)
        for broadcasts, answers in recorded.rounds
        for message in (*broadcasts, *answers)
    )
    plain = Recorded(InProcess(problems(clients)))
    train(clients, Subgradient(0.5), transport=plain, max_rounds=4, tol=0)
    own = {
        x
        for _, answers in plain.rounds
        for update in answers
        for array in update.values.values()
        for x in array.ravel().tolist()
        if x not in (0.0, 1.0)
    }
    assert len(own) > 50
    radii = {client.epsilon for client in clients}  # told on joining
    assert not [x for x in own - radii if np.float64(x).tobytes() in sent]
    assert result.n_rounds == 4


# --- clients that leave ---


@pytest.mark.parametrize("method", ["summed", "admm", "admm-sc", "subgradient"])
@pytest.mark.parametrize("phase", ["upload", "unmask"])
def test_one_client_that_leaves_costs_nothing_but_its_part(method, phase):
    clients = blobs(4)
    told = []
    away = Away(
        InProcess(problems(clients)),
        lambda r, name, p: r in (2, 3) and name == "client-1" and p == phase,
    )
    sums = SecureSum(away, ALPHAS, quorum=3, limits=limits_of(clients), listener=told.append)
    result = run(clients, METHODS[method], sums=sums, max_rounds=12, tol=0.0)
    assert result.n_rounds == 12
    assert_certified(clients, ALPHAS, result)
    absent = [] if phase == "unmask" else [2, 3]
    assert told == [{"event": "absent", "round": r, "clients": ["client-1"]} for r in absent]
    if phase == "unmask":  # its upload is in the sum all the same
        plain = run(clients, METHODS[method], max_rounds=12, tol=0.0)
        assert_same_bits(result, plain)


def test_several_clients_leave_before_and_after_the_upload():
    clients = blobs(8)
    alphas = np.full(8, 0.125)
    away = {(2, "client-0", "upload"), (3, "client-1", "upload"), (3, "client-6", "upload")}
    away |= {(4, f"client-{g}", "unmask") for g in (2, 5)}
    transport = Away(InProcess(problems(clients)), lambda *at: at in away)
    sums = SecureSum(transport, alphas, quorum=6, limits=limits_of(clients))
    result = run(clients, Bundle(), sums=sums, tol=1e-5, max_rounds=100)
    assert result.reason is Stop.TOL
    assert_certified(clients, alphas, result)


def test_who_leaves_after_one_that_left_before_makes_the_sum_be_done_over():
    """As long as no keys were given: client-1 leaves before it agrees."""
    clients = blobs(7)
    leaves = {"client-0": "upload", "client-1": "agree"}
    away = Away(InProcess(problems(clients)), lambda r, name, p: r == 2 and leaves.get(name) == p)
    told = []
    sums = SecureSum(away, quorum=5, limits=limits_of(clients), listener=told.append)
    result = run(clients, Subgradient(), sums=sums, max_rounds=3, tol=0.0)
    assert told == [{"event": "absent", "round": 2, "clients": ["client-0", "client-1"]}]
    assert_certified(clients, np.full(7, 1 / 7), result)
    seen = []
    told.clear()

    def once(r, name, p):
        """client-1 leaves at its first agreement of round 2, and stays away."""
        if r != 2:
            return False
        if name == "client-1" and p == "agree":
            seen.append(name)
        return name == "client-0" or (name == "client-1" and bool(seen))

    away = Away(InProcess(problems(clients)), once)
    sums = SecureSum(away, quorum=5, limits=limits_of(clients), listener=told.append)
    result = run(clients, Subgradient(), sums=sums, max_rounds=3, tol=0.0)
    assert told == [{"event": "absent", "round": 2, "clients": ["client-0", "client-1"]}]
    assert_certified(clients, np.full(7, 1 / 7), result)


def test_after_they_agreed_the_sum_is_complete_without_who_leaves():
    """client-0 is gone before the upload, client-1 before it gives its keys: five of seven do."""
    clients = blobs(7)
    leaves = {"client-0": "upload", "client-1": "unmask"}
    recorded = Recorded(InProcess(problems(clients)))
    away = Away(recorded, lambda r, name, p: r == 2 and leaves.get(name) == p)
    told = []
    sums = SecureSum(away, quorum=5, limits=limits_of(clients), listener=told.append)
    result = run(clients, Subgradient(), sums=sums, max_rounds=3, tol=0.0)
    assert told == [{"event": "absent", "round": 2, "clients": ["client-0"]}]
    uploads = [b for b, _ in recorded.rounds if '"phase":"upload"' in b[0].algorithm]
    assert len(uploads) == 5  # keys, three rounds, and the last model: none was done over
    assert_certified(clients, np.full(7, 1 / 7), result)


def test_the_sum_over_those_present_is_completed_by_what_is_provable():
    clients = blobs(4, epsilon=0.1)
    limits = limits_of(clients)
    away = Away(InProcess(problems(clients)), lambda r, name, p: name == "client-2")
    sums = SecureSum(away, ALPHAS, quorum=3, limits=limits)
    point = np.linspace(-1.0, 2.0, 4)
    method = ADMM(rho=0.1)
    asked = {"points": point[None], "rho": np.array(0.1), "tau": np.array(0.0)}
    broadcast = Broadcast("a run", 1, sums.client_id, describe(method), asked)
    (update,) = sums.exchange([broadcast], None)
    here = [0, 1, 3]
    answers = {g: method.answer(problems(clients)[g], {}, asked)[1] for g in here}

    def total(name):
        return sum(ALPHAS[g] * answers[g][name] for g in here)

    profile = problems(clients)[2].profile
    ceiling = limits.risk_ceiling(profile, point)
    expected = {
        "risks": total("risks") + ALPHAS[2] * ceiling,
        "constants": total("constants"),
        "slopes": total("slopes"),
        "norm_weights": total("norm_weights") + ALPHAS[2] * profile.floor,
        "vector": total("vector") + ALPHAS[2] * point,
        "squares": total("squares") / (1.0 - ALPHAS[2]),
    }
    assert set(update.values) == set(expected)
    for name, array in expected.items():
        np.testing.assert_allclose(update.values[name], array, rtol=1e-14, err_msg=name)
    assert ceiling >= problems(clients)[2].risk_of(point)


@pytest.mark.parametrize("method", ["summed", "admm", "admm-sc", "subgradient"])
def test_the_certificate_holds_whoever_is_absent(method):
    """A quarter of the answers are missing at random, in any phase, the keys' too."""
    for seed in range(4):
        boxed = False if method.startswith("admm") else None
        clients, alphas = random_clients(980 + seed, n_clients=5, boxed=boxed, kind="plain")
        alphas = evened(alphas)
        rng = np.random.default_rng(seed)
        missing = {(r, int(rng.integers(5))) for r in range(40) if rng.random() < 0.6}
        phases = ("keys", "upload", "unmask")
        phase_of = {at: phases[rng.integers(3)] for at in sorted(missing)}

        def is_away(r, name, phase, phase_of=phase_of):
            return phase_of.get((r, int(name[-1]))) == phase

        features = limits_of(clients)
        sums = SecureSum(
            Away(InProcess(problems(clients)), is_away), alphas, quorum=4, limits=features
        )
        result = run(clients, METHODS[method], sums=sums, tol=1e-6, max_rounds=15)
        assert_certified(clients, alphas, result)


@pytest.mark.slow
def test_admm_comes_to_the_optimum_again_once_all_are_back():
    """An absence perturbs w: its pull is missing in the mean. ADMM converges from anywhere."""
    clients = blobs(4)
    best = reference_optimum(clients, ALPHAS).high
    for rounds_away in ((1, 2), (20, 21, 22)):
        away = Away(
            InProcess(problems(clients)),
            lambda r, name, p, away=rounds_away: r in away and name == "client-3",
        )
        sums = SecureSum(away, ALPHAS, quorum=3, limits=limits_of(clients))
        result = run(clients, ADMM(rho=0.2), sums=sums, tol=0.0, max_rounds=120)
        excess = true_objective(clients, ALPHAS, result.newest) / best - 1.0
        assert excess <= 1e-4, rounds_away


@pytest.mark.parametrize("method", SUMMABLE)
def test_honest_sums_pass_the_screen(method):
    """With limits, clients of unequal radii, and some absent where the method allows it."""
    for seed in range(3):
        boxed = False if method.startswith("admm") else None
        clients, alphas = random_clients(700 + seed, n_clients=5, boxed=boxed)
        alphas = evened(alphas)
        limits = limits_of(clients)
        if clients[0].box is not None:
            limits = Limits.checked(
                np.abs(np.array(clients[0].box)).max(axis=0), limits.features.size
            )
        may_leave = not method.startswith("fed")
        away = Away(
            InProcess(problems(clients)),
            lambda r, name, p, may=may_leave: may and r % 3 == 0 and name == "client-1",
        )
        sums = SecureSum(away, alphas, quorum=4 if may_leave else None, limits=limits)
        result = run(clients, METHODS[method], sums=sums, max_rounds=8, tol=0.0, limits=limits)
        assert all(record.faults == () for record in result.history)
        assert result.history[-1].n_answers == 1


def test_a_latecomer_joins_a_session_that_is_on():
    clients = blobs(5)
    alphas = np.full(5, 0.2)
    told = []
    away = Away(InProcess(problems(clients)), lambda r, name, p: name == "client-4" and r < 4)
    sums = SecureSum(away, alphas, quorum=4, limits=limits_of(clients), listener=told.append)
    result = run(clients, Bundle(), sums=sums, tol=1e-5, max_rounds=100)
    assert [event["round"] for event in told] == [1, 2, 3]
    assert result.reason is Stop.TOL
    assert_certified(clients, alphas, result)


def test_a_client_that_loses_its_memory_goes_on_with_new_keys():
    clients = blobs(4)
    inner = InProcess(problems(clients))
    plain = run(clients, Subgradient(0.5), max_rounds=8, tol=0.0)

    def forget(record, model):
        if record.round == 3:
            inner.memories["client-2"] = NO_MEMORY

    result = run(
        clients, Subgradient(0.5), transport=inner, max_rounds=8, tol=0.0, callbacks=[forget]
    )
    assert_same_bits(result, plain)


# --- faults and refusals ---


def test_two_clients_are_refused_with_the_reason():
    for n_clients in (1, 2):
        sums = SecureSum(InProcess(problems(blobs(n_clients))))
        with pytest.raises(InvalidInputError, match="at least 3: of a sum of two"):
            sums.join()


@pytest.mark.parametrize("quorum", [0, 3, 6, True, 2.5])
def test_a_quorum_that_cannot_unmask_is_refused(quorum):
    clients = blobs(5)  # 4 of 5 must unmask
    sums = SecureSum(InProcess(problems(clients)), quorum=quorum, limits=limits_of(clients))
    with pytest.raises(InvalidInputError, match="quorum"):
        sums.method(Bundle())


def test_a_quorum_below_all_needs_limits():
    for limits in (None, Limits.checked(None, 4)):
        sums = SecureSum(InProcess(problems(blobs(4))), quorum=3, limits=limits)
        with pytest.raises(InvalidInputError, match="limits"):
            sums.method(Bundle())


def test_without_a_quorum_all_must_be_there():
    clients = blobs(4)
    transport = Away(InProcess(problems(clients)), lambda r, name, p: r == 2 and name == "client-3")
    with pytest.raises(QuorumError, match=r"3 of 4 clients answered.*client-3: away"):
        run(clients, Bundle(), transport=transport)


def test_too_few_that_unmask_end_the_round():
    clients = blobs(4)
    gone = ("client-2", "client-3")
    transport = Away(
        InProcess(problems(clients)), lambda r, name, p: p == "unmask" and name in gone
    )
    with pytest.raises(QuorumError, match="2 clients unmasked, 3 are needed"):
        run(clients, Bundle(), transport=transport)


def test_methods_that_are_no_sums_say_why():
    clients = blobs(4)
    sums = SecureSum(InProcess(problems(clients)), quorum=3, limits=limits_of(clients))
    for method in (FedDRO(), FedDROPublished(), OneVsRest(FedDRO(), 2)):
        with pytest.raises(UnsupportedError, match="logarithm of a mean"):
            sums.method(method)
    for method in (FedSGD(), FedAvg()):
        with pytest.raises(UnsupportedError, match="needs every client in every round"):
            sums.method(method)

    with pytest.raises(UnsupportedError, match="trimmed mean"):
        sums.method(Subgradient(trim=0.2))

    class Another:
        name = "another"

    with pytest.raises(UnsupportedError, match="another is not known"):
        sums.method(Another())


def test_methods_take_the_form_that_sums_need():
    sums = SecureSum(InProcess(problems(blobs(4))), ALPHAS)
    assert sums.method(Bundle(level=0.4)) == Bundle(cuts="summed", level=0.4)
    assert sums.method(ADMMSC(rho=0.1)).tau == smallest_tau(0.1, ALPHAS)
    assert sums.method(OneVsRest(Bundle(), 3)).inner == Bundle(cuts="summed")
    with pytest.raises(InvalidInputError, match=r"SecureSum\.method"):
        train(blobs(4), Bundle(), transport=sums)


class Altered:
    """One client's answers in one phase are changed on their way."""

    def __init__(self, inner, change, client_id="client-1"):
        self.inner, self.change, self.client_id = inner, change, client_id

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        return [
            self.change(a) if a.client_id == self.client_id and isinstance(a, Update) else a
            for a in self.inner.exchange(broadcasts, deadline)
        ]


def upload_only(**changes):
    return lambda a: with_values(a, **changes) if "n_present" in a.values else a


def reveal_only(**changes):
    return lambda a: with_values(a, **changes) if "keys" in a.values else a


def key_only(**changes):
    return lambda a: with_values(a, **changes) if "public" in a.values else a


def new_key(answer):
    """In place of every answer, as if the client lost its keys each time."""
    public = np.frombuffer(public_key(new_private_key()), dtype=np.int64)
    return Update(answer.run_id, answer.round, answer.client_id, {"public": public})


FAULTS = {
    "floats": upload_only(**{"masked/slopes": np.zeros((1, 4, 2))}),
    "other shape": upload_only(**{"masked/slopes": np.zeros((1, 3, 2), np.int64)}),
    "something more": upload_only(more=np.zeros(1, np.int64)),
    "no letters": upload_only(letters=None),
    "short key": key_only(public=np.zeros(3, np.int64)),
    "a key of small order": key_only(public=np.zeros(4, np.int64)),
    "a new key each time": new_key,
    "no keys": reveal_only(keys=np.zeros((1, 4), np.int64)),
    "failure": lambda a: Failure(a.client_id, "it broke"),
    "another round": lambda a: Update(a.run_id, a.round + 1, a.client_id, a.values),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_at_fault_is_named_or_left_out(fault):
    clients = blobs(4)
    settings = {"max_rounds": 4, "tol": 0.0}
    broken = Altered(InProcess(problems(clients)), FAULTS[fault])
    with pytest.raises(ClientError, match="client-1"):
        run(clients, Subgradient(0.5), transport=broken, **settings)
    broken = Altered(InProcess(problems(clients)), FAULTS[fault])
    result = run(clients, Subgradient(0.5), transport=broken, quorum=3, on_fault="drop", **settings)
    assert result.n_rounds == 4
    assert_certified(clients, ALPHAS, result)


def test_the_first_client_s_upload_is_no_measure_for_the_others():
    clients = blobs(4)
    told = []
    broken = Altered(InProcess(problems(clients)), FAULTS["other shape"], "client-0")
    sums = SecureSum(
        broken,
        ALPHAS,
        quorum=3,
        on_fault="drop",
        limits=limits_of(clients),
        listener=told.append,
    )
    result = run(clients, Subgradient(0.5), sums=sums, max_rounds=3, tol=0.0)
    assert result.n_rounds == 3
    assert {event["client"] for event in told if event["event"] == "fault"} == {"client-0"}
    absent = [event["clients"] for event in told if event["event"] == "absent"]
    assert absent == [["client-0"]] * len(absent) != []
    assert_certified(clients, ALPHAS, result)


def test_a_client_with_another_s_key_is_left_out_and_the_run_goes_on():
    class Copied(InProcess):
        def exchange(self, broadcasts, deadline):
            found = list(super().exchange(broadcasts, deadline))
            keys = {a.client_id: a for a in found if "public" in a.values}
            if keys.keys() >= {"client-1", "client-2"}:
                found[2] = with_values(found[2], public=keys["client-1"].values["public"])
            return found

    clients = blobs(4)
    with pytest.raises(ClientError, match=r"client-2.*another client's"):
        run(clients, Subgradient(0.5), transport=Copied(problems(clients)))
    settings = {"quorum": 3, "on_fault": "drop", "max_rounds": 3, "tol": 0.0}
    result = run(clients, Subgradient(0.5), transport=Copied(problems(clients)), **settings)
    assert result.n_rounds == 3
    assert_certified(clients, ALPHAS, result)


def test_a_weight_of_zero_is_refused_since_it_lays_the_others_open():
    """With the weights 1, 0, 0 the sum would be the first client's answer."""
    clients = blobs(3)
    sums = SecureSum(InProcess(problems(clients)), [1.0, 0.0, 1.0])
    with pytest.raises(InvalidInputError, match=r"above 0 .* that of 'client-1' is 0"):
        sums.method(Subgradient())


@pytest.mark.parametrize("method", ["summed", "admm", "subgradient"])
def test_a_run_on_sums_can_be_audited_and_recorded(method, tmp_path):
    """What wraps the sums says that they are sums: single answers keep other rules."""
    clients, settings = blobs(4), {"max_rounds": 4, "tol": 0.0, "run_id": "a run"}
    limits = limits_of(clients)
    expected = run(clients, METHODS[method], limits=limits, **settings)
    sums = SecureSum(InProcess(problems(clients)), ALPHAS)
    wrapped = RecordedInFile(sums, tmp_path / "recording")
    result = run_audited(
        tmp_path / "audit.jsonl", wrapped, sums.method(METHODS[method]), limits=limits, **settings
    )
    assert_same_bits(result, expected)


def test_a_number_that_does_not_fit_ends_the_round_with_its_name():
    clients = blobs(3)
    sums = SecureSum(InProcess(problems(clients)))
    far = {"points": np.full((1, 4), 1e19)}
    broadcast = Broadcast("a run", 1, sums.client_id, describe(Subgradient()), far)
    (failure,) = sums.exchange([broadcast], None)
    assert isinstance(failure, Failure)
    assert not failure.is_missing
    assert "at most 1.15e+18" in failure.reason
    assert "see risks" in failure.reason


# --- a server that crashed ---


@pytest.mark.parametrize("method", ["summed", "admm", "subgradient"])
def test_a_resumed_run_has_a_new_session_and_the_same_bits(method, tmp_path):
    clients = blobs(3)
    settings = {"alphas": "equal", "max_rounds": 10, "tol": 0.0}
    whole = run(clients, METHODS[method], **settings)
    inner = InProcess(problems(clients))
    folder = CheckpointFolder(tmp_path)

    def crash(record, model):
        if record.round == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            clients,
            METHODS[method],
            transport=inner,
            checkpoint=folder,
            callbacks=[crash],
            **settings,
        )
    sorted(tmp_path.iterdir())[-1].unlink()  # the newest is lost: round 6 is asked for again
    snapshot = folder.latest()
    assert snapshot.round == 5
    keys = {name: memory.values["private"].tobytes() for name, memory in inner.memories.items()}
    result = run(clients, METHODS[method], transport=inner, resume=snapshot, **settings)
    assert_same_bits(result, whole)
    for name, memory in inner.memories.items():
        assert memory.values["private"].tobytes() != keys[name]


def test_a_round_whose_keys_were_given_in_vain_is_resumed_with_the_same_clients(tmp_path):
    """Two of four gave theirs: the same sum may be asked for again, one over others may not."""
    clients, settings = blobs(4), {"max_rounds": 4, "tol": 0.0}
    whole = run(clients, Subgradient(0.5), **settings)
    inner, folder = InProcess(problems(clients)), CheckpointFolder(tmp_path)
    gone = ("client-2", "client-3")
    away = Away(inner, lambda r, name, p: r == 3 and p == "unmask" and name in gone)
    with pytest.raises(QuorumError, match="2 clients unmasked, 3 are needed"):
        run(clients, Subgradient(0.5), transport=away, checkpoint=folder, **settings)
    settings["resume"], kept = folder.latest(), dict(inner.memories)
    without = Away(inner, lambda r, name, p: name == "client-3")
    with pytest.raises(ClientError, match="round 3 was given with others"):
        run(clients, Subgradient(0.5), transport=without, quorum=3, **settings)
    inner.memories.update(kept)  # client-2 has given its keys for that other sum
    assert_same_bits(run(clients, Subgradient(0.5), transport=inner, **settings), whole)


def test_a_run_of_other_clients_or_weights_is_not_resumed(tmp_path):
    clients = blobs(3)
    folder = CheckpointFolder(tmp_path)
    run(clients, Subgradient(), alphas=[1, 1, 2], max_rounds=2, tol=0.0, checkpoint=folder)
    with pytest.raises(InvalidInputError, match="same clients"):
        run(clients, Subgradient(), alphas=[1, 2, 1], max_rounds=3, resume=folder.latest())
