"""The baselines as loops over samples, their objective by brute force, their optimum by Clarabel.

Written from the definitions; the only thing shared with the package is which batches are drawn.
"""

from __future__ import annotations

import clarabel
import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from fdrsvm.federated.methods.batches import client_generator, epoch_order, step_batches


class PlainClient:
    def __init__(self, X, y, *, epsilon, mass=None, fit_intercept=False, client_id="0"):
        self.X, self.y, self.epsilon = X, y, epsilon
        self.mass = np.full(len(y), 1.0 / len(y)) if mass is None else mass / mass.sum()
        self.rows = np.c_[X, np.ones(len(y))] if fit_intercept else X
        self.is_feature = np.arange(self.rows.shape[1]) < X.shape[1]
        self.client_id = client_id

    @property
    def n(self):
        return len(self.y)

    def loss(self, n, w):
        return max(0.0, 1.0 - self.y[n] * (w @ self.rows[n]))

    def losses(self, w):
        return np.array([self.loss(n, w) for n in range(self.n)])

    def penalty_gradient(self, w):
        return np.where(self.is_feature, 2.0 * self.epsilon * w, 0.0)

    def gradient(self, w, batch):
        """Of the batch's mean hinge plus the penalty."""
        total = self.penalty_gradient(w)
        for n in batch:
            if self.loss(n, w) > 0.0:
                total = total - self.n / len(batch) * self.mass[n] * self.y[n] * self.rows[n]
        return total

    def moment(self, w, batch, lam, *, positive_only=False):
        total = 0.0
        for n in batch:
            if not positive_only or self.loss(n, w) > 0.0:
                total += self.n / len(batch) * self.mass[n] * np.exp(self.loss(n, w) / lam)
        return total

    def moment_gradient(self, w, batch, lam):
        total = np.zeros(len(w))
        for n in batch:
            if self.loss(n, w) > 0.0:
                weight = self.n / len(batch) * self.mass[n] * np.exp(self.loss(n, w) / lam) / lam
                total = total - weight * self.y[n] * self.rows[n]
        return total


def plain_fedsgd(clients, alphas, method, n_rounds):
    w = np.zeros(clients[0].rows.shape[1])
    for t in range(1, n_rounds + 1):
        step = method.learning_rate / np.sqrt(t)
        gradients = [client.gradient(w, range(client.n)) for client in clients]
        w = w - step * sum(a * v for a, v in zip(alphas, gradients, strict=True))
        yield w


def plain_fedavg(clients, alphas, method, n_rounds, prox_weight=0.0):
    sent = np.zeros(clients[0].rows.shape[1])
    for t in range(1, n_rounds + 1):
        found = []
        for client in clients:
            rng = client_generator(method.random_state, t, client.client_id)
            order = epoch_order(rng, method.n_epochs, client.n, method.batch_fraction)
            size = max(1, int(method.batch_fraction * client.n))
            w = sent
            for s in range(1, method.n_epochs + 1):
                for batch in order[s - 1].reshape(-1, size):
                    v = client.gradient(w, batch) + prox_weight * (w - sent)
                    w = w - method.learning_rate / np.sqrt(s) * v
            found.append(w)
        sent = sum(a * w for a, w in zip(alphas, found, strict=True))
        yield sent


def plain_feddro(clients, alphas, method, n_rounds):
    lam, beta, z = method.temperature, method.beta, None
    sent = np.zeros(clients[0].rows.shape[1])
    for t in range(1, n_rounds + 1):
        models, moments = [], []
        for client in clients:
            rng = client_generator(method.random_state, t, client.client_id)
            w, own = sent, z
            for s, batch in enumerate(
                step_batches(rng, method.n_steps, client.n, method.batch_fraction)
            ):
                k = (t - 1) * method.n_steps + s + 1
                m = client.moment(w, batch, lam)
                own = m if k == 1 else (1.0 - beta) * own + beta * m
                v = lam * client.moment_gradient(w, batch, lam) / own + client.penalty_gradient(w)
                w = w - method.learning_rate / np.sqrt(k) * v
            models.append(w)
            moments.append(own)
        sent = sum(a * w for a, w in zip(alphas, models, strict=True))
        z = sum(a * own for a, own in zip(alphas, moments, strict=True))
        yield sent


def plain_feddro_published(clients, alphas, method, n_rounds):
    """One model a round of E steps."""
    lam, beta, z = method.temperature, method.beta, 0.0
    models = [np.zeros(clients[0].rows.shape[1])] * len(clients)
    for t in range(1, n_rounds + 1):
        batches = [
            step_batches(
                client_generator(method.random_state, t, client.client_id),
                method.n_steps,
                client.n,
                method.batch_fraction,
            )
            for client in clients
        ]
        for s in range(method.n_steps):
            k = (t - 1) * method.n_steps + s + 1
            moments = [
                client.moment(w, batch[s], lam, positive_only=True)
                for client, w, batch in zip(clients, models, batches, strict=True)
            ]
            z = (1.0 - beta) * z + beta * sum(a * m for a, m in zip(alphas, moments, strict=True))
            models = [
                w - method.learning_rate / np.sqrt(k) * client.moment_gradient(w, batch[s], lam) / z
                for client, w, batch in zip(clients, models, batches, strict=True)
            ]
        mean = sum(a * w for a, w in zip(alphas, models, strict=True))
        models = [mean] * len(clients)
        yield mean


def objective(clients, alphas, w, *, temperature=None, penalised=True):
    """J(w): the weighted mean of the clients' mean hinge, or its tilted form, plus the penalty."""
    shares = np.concatenate([a * client.mass for a, client in zip(alphas, clients, strict=True)])
    losses = np.concatenate([client.losses(w) for client in clients])
    if temperature is None:
        value = shares @ losses
    else:
        value = temperature * logsumexp(losses / temperature, b=shares)
    features = w[clients[0].is_feature]
    penalty = sum(a * client.epsilon for a, client in zip(alphas, clients, strict=True))
    return float(value + (penalty * features @ features if penalised else 0.0))


def optimum(clients, alphas, *, temperature=None, penalised=True):
    """min J by Clarabel: the primal value at its point, which its dual value must confirm."""
    Z = np.vstack([client.y[:, None] * client.rows for client in clients])
    shares = np.concatenate([a * client.mass for a, client in zip(alphas, clients, strict=True)])
    Z, shares = Z[shares > 0.0], shares[shares > 0.0]
    penalty = sum(a * client.epsilon for a, client in zip(alphas, clients, strict=True))
    n, p = Z.shape
    eye = sparse.eye_array(n)
    hinge = [[-Z, -eye], [None, -eye]]  # s >= 1 - Zw, s >= 0
    rhs = [-np.ones(n), np.zeros(n)]
    cones = [clarabel.NonnegativeConeT(2 * n)]
    if temperature is None:
        A, cost = sparse.block_array(hinge), np.concatenate([np.zeros(p), shares])
    else:  # u >= exp((s - t) / lam), shares.u <= 1, minimise t
        pick = np.zeros((3 * n, 1))
        pick[::3] = 1.0 / temperature
        to_s = sparse.csr_array(
            (-np.ones(n) / temperature, (3 * np.arange(n), np.arange(n))), shape=(3 * n, n)
        )
        to_u = sparse.csr_array(
            (-np.ones(n), (3 * np.arange(n) + 2, np.arange(n))), shape=(3 * n, n)
        )
        A = sparse.block_array(
            [
                [-Z, -eye, np.zeros((n, 1)), None],
                [None, -eye, np.zeros((n, 1)), None],
                [None, None, np.zeros((1, 1)), shares[None]],
                [None, to_s, pick, to_u],
            ]
        )
        ones = np.zeros(3 * n)
        ones[1::3] = 1.0
        rhs += [np.ones(1), ones]
        cones = [clarabel.NonnegativeConeT(2 * n + 1), *[clarabel.ExponentialConeT()] * n]
        cost = np.zeros(p + 2 * n + 1)
        cost[p + n] = 1.0
    diagonal = np.zeros(len(cost))
    if penalised:
        diagonal[:p] = np.where(clients[0].is_feature, 2.0 * penalty, 0.0)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    H = sparse.csc_matrix(sparse.diags_array(diagonal))
    answer = clarabel.DefaultSolver(
        H, cost, sparse.csc_matrix(A), np.concatenate(rhs), cones, settings
    ).solve()
    w = np.array(answer.x)[:p]
    value = objective(clients, alphas, w, temperature=temperature, penalised=penalised)
    assert value <= answer.obj_val_dual + 1e-6 * (1.0 + abs(value)), answer.status
    return value
