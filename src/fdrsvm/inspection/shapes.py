"""Curves and surfaces of a model, drawn for its page and told in words.

Heights are centred: 0 is the mean over the rows shown, so that a height says how much more a sensor
adds there than it usually does. All charts and a constant add up to the score.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.data.rows import Rows
from fdrsvm.data.units import split_unit
from fdrsvm.inspection.charts import Series, heat_chart, line_chart
from fdrsvm.inspection.fitted import names_for
from fdrsvm.inspection.rendering import number
from fdrsvm.inspection.terms import (
    pairs_of,
    spread_rows,
    surface_heights,
    term_names,
    term_shares,
    term_sizes,
)
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveFeatures

_MOST_CURVES, _MOST_SURFACES = 20, 6
_SIDE = 14  # cells of a surface
_MOST_POINTS = 150
_MIDDLE = (0.05, 0.95)


class Shapes:
    """A model's curves and surfaces beside rows, towards one of two classes, or for each class."""

    def __init__(self, model: LinearModel, rows: Rows | None, place: int | None) -> None:
        made = model.features
        assert isinstance(made, AdditiveFeatures)
        self.model, self.features, self.rows, self.place = model, made, rows, place
        self.X = spread_rows(made) if rows is None else rows.X
        self.sign = -1.0 if place == 0 else 1.0
        self.shares = self.sign * term_shares(model, self.X)
        self.means = self.shares.mean(axis=0)
        self.names = term_names(model)
        self.order = np.argsort(-term_sizes(model, rows).max(axis=0), kind="stable").tolist()

    def words(self, most: int) -> list[str]:
        """The terms that matter most, and where each speaks for the class looked for."""
        names = names_for(self.model)
        told = []
        for at in self.order[:most]:
            share = self.shares[:, at, 0]
            columns = [at] if at < len(names) else pairs_of(self.model)[at - len(names)]
            peaks = self.peaks(at) if at < len(names) else [int(share.argmax())]
            *high, low = (
                " and ".join(
                    f"{number(float(self.X[row, p]))} {split_unit(names[p])[1]}".rstrip()
                    for p in columns
                )
                for row in (*peaks, int(share.argmin()))
            )
            told.append(
                f"{self.names[at]}: speaks most for {self._wanted!r} at {', also at '.join(high)}, "
                f"and least at {low} "
                f"(the score differs by {number(float(np.ptp(share)))})"
            )
        return told

    def peaks(self, at: int) -> list[int]:
        """Rows where a curve is highest, on either side of its lowest if that is high as well."""
        share, readings = self.shares[:, at, 0], self.X[:, at]
        lowest, middle = readings[share.argmin()], (share.min() + share.max()) / 2.0
        sides = [np.where(on, share, -np.inf) for on in (readings < lowest, readings > lowest)]
        peaks = [int(side.argmax()) for side in sides if side.max() >= middle]
        return sorted(peaks, key=lambda row: -share[row]) or [int(share.argmax())]

    @property
    def _wanted(self) -> str:
        return str(self.model.classes[1 if self.place is None else self.place])

    def charts(self) -> dict[str, Any]:
        """Curves and surfaces, the most important first, and how many are left out."""
        n_sensors, is_binary = self.features.n_sensors, len(self.model.coef) == 1
        curves = [at for at in self.order if at < n_sensors]
        surfaces = [at for at in self.order if at >= n_sensors] if is_binary else []
        return {
            "curves": [self._drawn(at, self._curve(at)) for at in curves[:_MOST_CURVES]],
            "curves_left": max(n_sensors - _MOST_CURVES, 0),
            "surfaces": [self._drawn(at, self._surface(at)) for at in surfaces[:_MOST_SURFACES]],
            "surfaces_left": len(self.features.pairs) - len(surfaces[:_MOST_SURFACES]),
        }

    def _drawn(self, at: int, chart: Any) -> dict[str, Any]:
        words = ""
        if self.place is not None and self.rows is not None:
            alarms = self.model.predict(self.X) == self.model.classes[self.place]
            if alarms.any() and not alarms.all():
                adds = self.shares[:, at, 0] - self.means[at, 0]
                words = (
                    f"In rows that set off an alarm it adds {number(adds[alarms].mean())} on "
                    f"average, in the others {number(adds[~alarms].mean())}."
                )
        return {"name": self.names[at], "chart": chart, "words": words}

    def curve(self, p: int) -> tuple[Array, Array]:
        """Readings of a sensor between which all is straight, and heights by class."""
        readings, _ = self.features.curves(self.model.coef[0])
        ends = np.array([self.X.min(axis=0), self.X.max(axis=0)])
        stops = np.sort(np.concatenate([readings.T, ends]), axis=0)
        return stops[:, p], self.sign * term_shares(self.model, stops)[:, p] - self.means[p]

    def _curve(self, p: int) -> Any:
        stops, heights = self.curve(p)
        labels = (
            [self.names[p]] if len(self.model.coef) == 1 else list(map(str, self.model.classes))
        )
        towards = f" towards {self._wanted!r}" if len(self.model.coef) == 1 else " of a class"
        middle = np.quantile(self.X[:, p], _MIDDLE).tolist()
        return line_chart(
            [
                Series(label, stops.tolist(), heights[:, k].tolist(), k % 4, dashed=k >= 4)
                for k, label in enumerate(labels)
            ],
            x_label=self.names[p],
            y_label=f"adds to the score{towards}",
            description=f"what {self.names[p]} adds to the score",
            mark=None if self.rows is None else (middle, "upright: 9 of 10 rows lie between"),
            level=(0.0, "level: mean of the rows") if self.rows is not None else None,
        )

    def _surface(self, at: int) -> Any:
        made, pair = self.features, self.features.pairs[at - self.features.n_sensors]
        middles = (np.arange(_SIDE) + 0.5) / _SIDE
        heights = surface_heights(self.model, at - made.n_sensors, middles)[:, :, 0]
        x_range, y_range = ((float(made.low[p]), float(made.low[p] + made.width[p])) for p in pair)
        few = self.X[:: -(-len(self.X) // _MOST_POINTS)] if self.rows is not None else self.X[:0]
        x_label, y_label = (names_for(self.model)[p] for p in pair)
        return heat_chart(
            self.sign * heights - self.means[at, 0],
            x_range,
            y_range,
            Series("rows", few[:, pair[0]].tolist(), few[:, pair[1]].tolist()),
            x_label=x_label,
            y_label=y_label,
            description=f"what {self.names[at]} add to the score together",
        )
