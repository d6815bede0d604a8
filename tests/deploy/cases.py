"""Plants on disk, what they give in one process, and a grid without Flower's processes."""

import csv
import random
from types import SimpleNamespace

import numpy as np
from flwr.app import Error, Message
from flwr.supercore.task_identity import TaskIdentity

from fdrsvm import FDRSVC
from fdrsvm.deploy.client_side import respond
from fdrsvm.deploy.flower import from_records, to_records
from fdrsvm.deploy.plant import plant_from_config, read_plant
from fdrsvm.federated.joining import Request

LABELS = ("healthy", "worn")
NODE_GONE, APP_CRASHED, APP_RAISED, NO_APP = 5, 8, 2, 1


def plant_rows(seed, n_rows=40, n_features=3, labels=LABELS):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, n_features)).round(6)
    scores = X @ np.linspace(1.0, -1.0, n_features) + 0.2 * rng.normal(size=n_rows)
    edges = np.quantile(scores, np.linspace(0, 1, len(labels) + 1)[1:-1])
    return X, [labels[k] for k in np.searchsorted(edges, scores)]


def write_csv(path, X, y, names=None):
    names = names or [f"sensor {k}" for k in range(X.shape[1])]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "label"])
        writer.writerows(
            [*map(repr, map(float, row)), label] for row, label in zip(X, y, strict=True)
        )
    return path


def write_plants(folder, n_plants=3, **settings):
    """CSV files plant-0.csv, ...; their paths by name."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        f"plant-{g}": write_csv(folder / f"plant-{g}.csv", *plant_rows(g, **settings))
        for g in range(n_plants)
    }


def in_process(files, **settings):
    """The same training in one process."""
    rows = {name: read_plant(plant(name, path)) for name, path in files.items()}
    X = np.concatenate([one.X for one in rows.values()])
    y = np.concatenate([np.array(one.labels)[one.codes] for one in rows.values()])
    clients = np.concatenate([[name] * len(one.X) for name, one in rows.items()])
    return FDRSVC(**settings).fit(X, y, clients=clients)


def fingerprint(model):
    return model._linear_model().fingerprint


def plant(name, path, **config):
    return plant_from_config({"client-id": name, "data": str(path), **config}, {})


class Grid:
    """Flower's grid as a transport sees it, with nodes that answer in any order.

    ``nodes`` maps a node's number to its plant, or to a function from request to response.
    ``trouble`` is called with (node, request) before an answer is made: it returns an error code,
    "silent", or None.
    """

    def __init__(self, nodes, trouble=lambda node, request: None, seed=0):
        TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
        self.nodes = dict(nodes)
        self.starts = dict.fromkeys(self.nodes, "first")
        self.trouble = trouble
        self.random = random.Random(seed)
        self.replies = {}
        self.pushed = []
        self.key_names = {}

    def get_nodes(self):
        return [
            SimpleNamespace(
                node_id=node,
                last_activated_at=self.starts[node],
                name=self.key_names.get(node, ""),
            )
            for node in self.nodes
        ]

    def push_messages(self, messages):
        ids = []
        for message in messages:
            node = message.metadata.dst_node_id
            message_id = f"m{len(self.pushed)}"
            message.metadata.__dict__["_message_id"] = message_id
            request = from_records(message.content, Request)
            self.pushed.append((node, request))
            ids.append(message_id)
            self._answer(message_id, node, request, message)
        return ids

    def _answer(self, message_id, node, request, message):
        trouble = NODE_GONE if node not in self.nodes else self.trouble(node, request)
        if trouble == "silent":
            return
        if isinstance(trouble, int):
            reply = Message(Error(code=trouble, reason="as asked for"), reply_to=message)
        else:
            target = self.nodes[node]
            response = target(request) if callable(target) else respond(request, target)
            reply = Message(to_records(response), reply_to=message)
        self.replies[message_id] = reply

    def pull_messages(self, message_ids):
        ready = [message_id for message_id in message_ids if message_id in self.replies]
        self.random.shuffle(ready)
        if ready and self.random.random() < 0.5:
            ready = ready[: len(ready) // 2]  # the others arrive later
        return [self.replies.pop(message_id) for message_id in ready]
