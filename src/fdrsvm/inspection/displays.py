"""Pictures of a fitted model, in scikit-learn's manner.

``from_estimator`` computes and draws; the numbers behind the picture stay on the display as
attributes, and ``plot`` draws them again. Curves of several models go on one picture by passing
``ax=display.ax_``. matplotlib is needed for drawing only, and not imported before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_count
from fdrsvm.core.vectors import NORMS, Norm
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.inspection import drawing
from fdrsvm.inspection.fitted import (
    class_index,
    fitted_attribute,
    names_for,
    parameters,
)
from fdrsvm.inspection.robustness import risk_curve
from fdrsvm.inspection.terms import steepest, surface_heights
from fdrsvm.model.reading import read_linear
from fdrsvm.risk.feature_maps import AdditiveFeatures

_DEFAULT_BALL: dict[str, Any] = {"kappa": 1.0, "norm": "linf", "support": None}
_N_RADII = 51
_MARKERS_UP_TO = 40  # points; more would run into each other
_LEAST_VISIBLE = 1e-3  # of the largest weight
_LONGEST_CLASS = 30  # characters
_FEW_TICKS = 3  # of small pictures
_N_SHARES = 31  # per side of a surface
_LOG_ABOVE = 30.0  # ratio of the largest to the smallest objective
_LOWEST_GAP = 1e-16  # below, gaps are rounding


@dataclass(kw_only=True, eq=False, repr=False)
class _Display:
    """What all displays have: a name, and where they were drawn."""

    name: str | None = None
    ax_: Any = field(init=False)
    figure_: Any = field(init=False)

    @classmethod
    def _of(cls, model: Any, name: str | None, **values: Any) -> Self:
        """A display called after the model's class, unless it has a name."""
        return cls(name=type(model).__name__ if name is None else name, **values)

    def _drawn_on(self, ax: Any) -> Self:
        self.ax_ = ax
        self.figure_ = (ax[0] if isinstance(ax, tuple) else ax).figure
        return self


@dataclass(kw_only=True, eq=False, repr=False)
class RobustnessDisplay(_Display):
    """Worst-case risk against the radius of the Wasserstein ball.

    A curve that starts low and climbs slowly is a model that is right and stays so when data are
    not quite what they were. Best made by :meth:`from_estimator`.

    Parameters
    ----------
    radii, risk : ndarray of shape (n_radii,)
        The curve.
    norm : {"l1", "l2", "linf"}
        The transport norm, in which radii are distances.
    name : str, optional
        What to call the curve.
    training_radius, training_risk : float, optional
        The radius the model was trained with, and the risk there; marked on the curve.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The curve.
    training_mark_ : matplotlib Line2D or None
        The mark at the radius of training.
    """

    radii: Array
    risk: Array
    norm: Norm
    training_radius: float | None = None
    training_risk: float | None = None
    line_: Any = field(init=False)
    training_mark_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        radii: Any = None,
        kappa: Any = "auto",
        norm: Any = "auto",
        support: Any = "auto",
        loss: Any = "hinge",
        sample_weight: Any = None,
        name: str | None = None,
        ax: Any = None,
        **line_kw: Any,
    ) -> Self:
        """Compute the curve on some data and draw it.

        Parameters
        ----------
        model : fitted linear classifier of two classes
            Ours or another.
        X, y : array of shape (n_samples, n_features), array of shape (n_samples,)
            The data, best such as were not used in training.
        radii : array of shape (n_radii,), optional
            Where to compute the risk. By default from 0 to 1/||w||_*, the distance from the
            decision boundary to the margin, and beyond the radius of training.
        kappa, norm, support : optional
            The ball, as in :func:`fdrsvm.worst_case_risk`. "auto" takes what the model was trained
            with; for a model of another package 1.0, "linf" and None. To compare models, give all
            of them the same ball and radii.
        loss, sample_weight
            As in :func:`fdrsvm.worst_case_risk`, whatever the model was trained with.
        name, ax : str, matplotlib Axes, optional
            The curve's name, and where to draw; by default the model's class and a new figure.
        **line_kw
            For ``ax.plot``, say ``color`` and ``linestyle``.
        """
        own = parameters(model)
        trained = own if "kappa" in own else {}
        ball: dict[str, Any] = {}
        for key, value in (("kappa", kappa), ("norm", norm), ("support", support)):
            is_auto = isinstance(value, str) and value == "auto"
            ball[key] = trained.get(key, _DEFAULT_BALL[key]) if is_auto else value
        if ball["kappa"] is own.get("kappa") and _number(ball["kappa"]) is None:
            raise InvalidInputError(
                "kappa",
                "must be given, since the model has one for each client",
                f"it has {ball['kappa']!r}",
            )
        training_radius = _number(trained.get("epsilon"))
        if radii is None:
            linear = read_linear(model)
            size = steepest(linear, ball["norm"])[0] if ball["norm"] in NORMS else 0.0
            # Up to where the margin is used up, and a bit beyond the radius of training.
            reach = max(1.0 / size if size > 0.0 else 1.0, 1.25 * (training_radius or 0.0))
            radii = np.linspace(0.0, reach, _N_RADII)
        compute = partial(risk_curve, model, X, y, loss=loss, sample_weight=sample_weight, **ball)
        curve = compute(radii=radii)
        values = {"radii": curve.radii, "risk": curve.risk, "norm": ball["norm"]}
        if training_radius is not None:
            values["training_radius"] = training_radius
            values["training_risk"] = float(compute(radii=[training_radius]).risk[0])
        return cls._of(model, name, **values).plot(ax, **line_kw)

    def plot(self, ax: Any = None, *, name: str | None = None, **line_kw: Any) -> Self:
        """Draw the curve on ``ax``, by default in a new figure; ``line_kw`` is for ``ax.plot``."""
        ax = drawing.new_axes() if ax is None else ax
        name = self.name if name is None else name
        nth = drawing.count(ax, "risk")
        style = {
            "color": drawing.COLOURS[nth % len(drawing.COLOURS)],
            "linestyle": drawing.STYLES[nth % len(drawing.STYLES)],
            "label": None if name is None else drawing.plain_text(name),
            "marker": "o" if self.radii.size == 1 else None,
        }
        aliases = {"c": "color", "ls": "linestyle"}
        style |= {aliases.get(key, key): value for key, value in line_kw.items()}
        (self.line_,) = ax.plot(self.radii, self.risk, gid="risk", **style)
        if self.training_radius is not None and self.training_radius <= self.radii.max():
            (self.training_mark_,) = ax.plot(
                [self.training_radius],
                [self.training_risk],
                linestyle="none",
                marker="o",
                markerfacecolor="white",
                markeredgecolor=self.line_.get_color(),
                label="radius in training" if drawing.count(ax, "training") == 0 else None,
                gid="training",
            )
        ax.set_xlabel(f"radius epsilon (mean transport cost, {self.norm} norm on features)")
        ax.set_ylabel("worst-case risk (expected loss)")
        ax.set_ylim(bottom=min(0.0, float(self.risk.min())), auto=True)
        drawing.finish(ax, legend=True)
        return self._drawn_on(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class ConvergenceDisplay(_Display):
    """Objective, certified lower bound and relative gap, round by round.

    No model has an objective below the lower bound, so the shaded range between the two holds the
    optimum. Values that are not known yet (nan, inf) are left out. Best made by
    :meth:`from_estimator`.

    Parameters
    ----------
    rounds, objective, lower_bound, gap : ndarray of shape (n_rounds,)
        The best so far after each round.
    final_objective, final_lower_bound, final_gap : float, optional
        After the last round, when all that is known was put together once more.
    tol : float, optional
        The gap at which training stops.
    quantity : str
        What the objective is.
    name : str, optional
        What to call the model.

    Attributes
    ----------
    ax_ : tuple of matplotlib Axes
        For objective and gap; one if only one was given.
    figure_ : matplotlib Figure
        Where it was drawn.
    objective_line_, lower_bound_line_ : matplotlib Line2D
        On the first axes.
    gap_line_, zero_gap_line_ : matplotlib Line2D or None
        On the second axes; rounds with a gap of 0 are triangles at the foot of the log axis.
    """

    rounds: Array
    objective: Array
    lower_bound: Array
    gap: Array
    final_objective: float | None = None
    final_lower_bound: float | None = None
    final_gap: float | None = None
    tol: float | None = None
    quantity: str = "objective"
    objective_line_: Any = field(init=False)
    lower_bound_line_: Any = field(init=False)
    gap_line_: Any = field(init=False, default=None)
    zero_gap_line_: Any = field(init=False, default=None)

    @classmethod
    def from_estimator(cls, model: Any, *, name: str | None = None, ax: Any = None) -> Self:
        """Read a model's ``history_`` and draw it.

        Parameters
        ----------
        model : fitted FDRSVC, DRSVC or FedSVC
            With ``history_``. Of more than two classes, objective and bound are means over the
            classes and the gap is the largest.
        name, ax : str, matplotlib Axes or pair of them, optional
            By default the model's class, and a pair in a new figure; see :meth:`plot`.
        """
        history = fitted_attribute(model, "history_")
        if len(history) == 0:
            raise InvalidInputError(
                "model",
                "must have a round in history_",
                "it is empty: the model was not trained in rounds, or comes from a file",
            )
        own = parameters(model)
        columns = {
            key: np.array([getattr(record, key) for record in history], dtype=np.float64)
            for key in ("round", "objective", "lower_bound", "gap")
        }
        return cls._of(
            model,
            name,
            rounds=columns.pop("round"),
            **columns,
            final_objective=_over_classes(model, "objective_", np.mean),
            final_lower_bound=_over_classes(model, "lower_bound_", np.mean),
            final_gap=_over_classes(model, "gap_", np.max),
            tol=_number(own.get("tol")) or None,
            quantity="worst-case risk" if "kappa" in own else "objective",
        ).plot(ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw objective and lower bound and, below, the gap.

        On a pair of axes, on one (the objective alone), or by default in a new figure.
        """
        axes = drawing.new_pair() if ax is None else tuple(np.ravel(np.asarray(ax, dtype=object)))
        if not 1 <= len(axes) <= 2:
            raise InvalidInputError("ax", "must be one Axes or two", f"got {len(axes)}")
        name = self.name if name is None else name
        prefix = "" if name is None else f"{drawing.plain_text(name)}: "
        nth = drawing.count(axes[0], "objective")
        style = {"color": drawing.COLOURS[nth % len(drawing.COLOURS)]}
        if np.isfinite(self.objective).sum() <= _MARKERS_UP_TO:
            style |= {"marker": "o", "markersize": "4"}
        for each, draw in zip(axes, (self._plot_objective, self._plot_gap), strict=False):
            draw(each, prefix, style)
            curves = [line for line in each.lines if line.get_gid() in ("objective", "gap")]
            rounds = np.concatenate([line.get_xdata() for line in curves])
            room = max(0.03 * np.ptp(rounds), 0.5)  # shows a single round in the middle
            each.set_xlim((float(rounds.min() - room), float(rounds.max() + room)), auto=True)
            each.locator_params(axis="x", integer=True, min_n_ticks=1)
            drawing.finish(each, legend=True)
        axes[-1].set_xlabel("round")
        return self._drawn_on(axes)

    def _plot_objective(self, ax: Any, prefix: str, style: dict[str, str]) -> None:
        objective, bound = _finite(self.objective), _finite(self.lower_bound)
        (self.objective_line_,) = ax.plot(
            self.rounds, objective, label=f"{prefix}objective", gid="objective", **style
        )
        (self.lower_bound_line_,) = ax.plot(
            self.rounds,
            bound,
            label=f"{prefix}certified lower bound",
            linestyle="dashed",
            **(style | {"markerfacecolor": "white"}),
        )
        shade = {"color": style["color"], "alpha": 0.12, "linewidth": 0}
        ax.fill_between(self.rounds, bound, objective, **shade)
        self._mark_final(ax, ("objective", "lower_bound"), prefix, style["color"])
        ax.set_ylabel(self.quantity)
        if not np.isfinite(objective).any():
            if self.final_objective is None or not math.isfinite(self.final_objective):
                drawing.note(ax, "no objective in any round")
            return
        # All objectives in view; a lower bound below 0 says nothing, and may be out of it.
        lines = [line.get_ydata() for line in ax.lines if line.get_gid() == "objective"]
        low, high = np.nanmin(np.concatenate(lines)), np.nanmax(np.concatenate(lines))
        if low > 0.0 and high > _LOG_ABOVE * low:
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter("{x:g}")
            ax.set_ylim(bottom=low / 2.0, auto=True)
        elif low >= 0.0:
            ax.set_ylim(bottom=max(ax.get_ylim()[0], -0.03 * high), auto=True)

    def _plot_gap(self, ax: Any, prefix: str, style: dict[str, str]) -> None:
        gap = _finite(self.gap)
        positive, is_zero = np.where(gap > 0.0, gap, np.nan), gap <= 0.0
        ax.set_yscale("log")
        ax.set_ylabel("relative gap")
        label = None if np.isnan(positive).all() else f"{prefix}gap"
        (self.gap_line_,) = ax.plot(self.rounds, positive, label=label, gid="gap", **style)
        if self.final_gap != 0.0:
            self._mark_final(ax, ("gap",), prefix, style["color"])
        if self.tol is not None:
            label = None if drawing.count(ax, "tol") else f"tol = {self.tol:g}"
            ax.axhline(self.tol, color=drawing.GREY, linestyle="dotted", label=label, gid="tol")
        is_zero[-1] |= self.final_gap == 0.0
        if is_zero.any():
            lowest = np.nanmin([*positive, self.tol or 1.0, 1e-2])
            (self.zero_gap_line_,) = ax.plot(
                self.rounds[is_zero],
                np.full(np.count_nonzero(is_zero), max(lowest / 10.0, _LOWEST_GAP)),
                linestyle="none",
                marker="v",
                color=style["color"],
                label=f"{prefix}gap of 0",
            )
        elif np.isnan([*gap, self.final_gap or np.nan]).all():
            drawing.note(ax, "no certified gap in any round")

    def _mark_final(self, ax: Any, names: Sequence[str], prefix: str, colour: str) -> None:
        """Diamonds where the last round's numbers were improved on afterwards."""
        finals = []
        for name in names:
            final, last = getattr(self, f"final_{name}"), getattr(self, name)[-1]
            if final is not None and math.isfinite(final) and final != last:
                finals.append(final)
        if finals:
            ax.plot(
                np.full(len(finals), self.rounds[-1]),
                finals,
                linestyle="none",
                marker="D",
                markerfacecolor="white",
                markeredgecolor=colour,
                label=f"{prefix}final",
                zorder=3,
            )


@dataclass(kw_only=True, eq=False, repr=False)
class FeatureWeightDisplay(_Display):
    """The weights of a linear model, largest first, as signed bars.

    Weights compare as they are only if features have comparable scales. Best made by
    :meth:`from_estimator`.

    Parameters
    ----------
    weights : ndarray of shape (n_features,)
        All weights.
    feature_names : sequence of str
        All names.
    towards : pair of str
        What a negative and a positive weight speak for.
    max_features : int
        How many to draw at most. Weights below a thousandth of the largest are never drawn: their
        bars could not be seen.
    name : str, optional
        What to call the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib BarContainer
        From top to bottom.
    shown_ : ndarray
        The features drawn, as positions in ``weights``, from top to bottom.
    """

    weights: Array
    feature_names: Sequence[str]
    towards: tuple[str, str]
    max_features: int = 20
    bars_: Any = field(init=False)
    shown_: npt.NDArray[np.intp] = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        max_features: int = 20,
        class_of_interest: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the weights of a fitted linear classifier.

        Parameters
        ----------
        model : fitted linear classifier
            With ``coef_``, ``intercept_`` and ``classes_``.
        class_of_interest : label, optional
            For more than two classes: whose weights to draw.
        max_features, name, ax : optional
            As in the class, and where to draw; by default the model's class and a new figure.
        """
        linear = read_linear(model)
        if linear.features is not None:
            raise UnsupportedError(
                "model: with a feature map no weight belongs to one sensor; draw its curves with "
                "CurvesDisplay"
            )
        check_count(max_features, "max_features")
        at, (negative, positive) = 0, linear.classes[:2]
        if len(linear.classes) > 2:
            at = class_index(linear.classes, class_of_interest)
            negative, positive = "the others", linear.classes[at]
        return cls._of(
            model,
            name,
            weights=linear.coef[at],
            feature_names=names_for(linear),
            towards=(str(negative), str(positive)),
            max_features=max_features,
        ).plot(ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw the bars on ``ax``, by default in a new figure."""
        sizes = np.abs(self.weights)
        order = np.argsort(-sizes, kind="stable")
        visible = order[sizes[order] >= _LEAST_VISIBLE * sizes.max()]
        self.shown_ = visible[: self.max_features]
        weights, n_all = self.weights[self.shown_], len(self.weights)
        colours = [drawing.COLOURS[int(weight < 0.0)] for weight in weights]
        names, shown = self.feature_names, self.shown_
        ax, self.bars_ = drawing.draw_bars(ax, weights, names, shown, colours)
        example = {int(weight >= 0.0): bar for weight, bar in zip(weights, self.bars_, strict=True)}
        for sign, bar in example.items():
            bar.set_label(f"towards {drawing.plain_text(self.towards[sign], _LONGEST_CLASS)}")
        ax.axvline(0.0, color="0.2", linewidth=0.8)
        ax.set_xlabel("weight (score per unit)")
        ax.set_ylabel(
            "feature" if weights.size == n_all else f"feature (largest {weights.size} of {n_all})"
        )
        handles = [example[sign] for sign in sorted(example)]
        drawing.draw_legend_above(ax, handles, self.name if name is None else name)
        return self._drawn_on(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class CurvesDisplay(_Display):
    """What sensors and pairs add to the score of a model with curves, those that matter most first.

    Curves are 0 at the lower limit of their sensor, surfaces where one of both sensors is at its.
    Best made by :meth:`from_estimator`.

    Parameters
    ----------
    readings, heights : ndarray of shape (n_sensors, n_knots + 1)
        The curves, straight between these points and beyond.
    surfaces : ndarray of shape (n_pairs, n_side, n_side)
        What pairs add, evenly over the ranges of the first and of the second sensor.
    pairs : sequence of (int, int)
        Their sensors.
    feature_names : sequence of str
        Names of the sensors.
    towards : str
        The class that a positive height speaks for.
    max_terms : int
        How many curves and surfaces to draw at most.
    name : str, optional
        What to call the model.

    Attributes
    ----------
    ax_ : tuple of matplotlib Axes
        One for each curve and surface.
    figure_ : matplotlib Figure
        Where it was drawn.
    shown_ : ndarray
        What was drawn: sensors by their position, then pairs, counted on.
    """

    readings: Array
    heights: Array
    surfaces: Array
    pairs: Sequence[tuple[int, int]]
    feature_names: Sequence[str]
    towards: str
    max_terms: int = 12
    shown_: npt.NDArray[np.intp] = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        max_terms: int = 12,
        class_of_interest: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw the curves of a fitted model, or of one from a file.

        Parameters
        ----------
        model : fitted FDRSVC or DRSVC, or LinearModel
            With an :class:`AdditiveMap`.
        class_of_interest : label, optional
            For more than two classes: whose curves to draw.
        max_terms, name, ax : optional
            As in the class, and as many axes as will be drawn; by default a new figure.
        """
        linear = read_linear(model)
        check_count(max_terms, "max_terms")
        made = linear.features
        if not isinstance(made, AdditiveFeatures):
            raise UnsupportedError(
                "model: only features='additive' and 'additive-pairs' have curves; the weights of "
                "a linear model are drawn by FeatureWeightDisplay, and waves cannot be read sensor "
                "by sensor"
            )
        at, towards = 0, linear.classes[1]
        if len(linear.classes) > 2:
            at = class_index(linear.classes, class_of_interest)
            towards = linear.classes[at]
        shares = np.linspace(0.0, 1.0, _N_SHARES)
        drawn = [surface_heights(linear, p, shares)[:, :, at] for p in range(len(made.pairs))]
        readings, heights = made.curves(linear.coef[at])
        return cls._of(
            model,
            name,
            readings=readings,
            heights=heights,
            surfaces=np.array(drawn).reshape(-1, _N_SHARES, _N_SHARES),
            pairs=made.pairs,
            feature_names=names_for(linear),
            towards=str(towards),
            max_terms=max_terms,
        ).plot(ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw on as many axes as there are terms to show, by default in a new figure."""
        sizes = [*np.ptp(self.heights, axis=1), *np.ptp(self.surfaces, axis=(1, 2))]
        self.shown_ = np.argsort(-np.array(sizes), kind="stable")[: self.max_terms]
        n_shown = self.shown_.size
        axes = drawing.new_grid(n_shown) if ax is None else list(np.ravel(np.asarray(ax, object)))
        if len(axes) < n_shown:
            raise InvalidInputError("ax", f"must be {n_shown} Axes", f"got {len(axes)}")
        for each, at in zip(axes, self.shown_.tolist(), strict=False):
            if at < len(self.heights):
                each.plot(self.readings[at], self.heights[at], color=drawing.COLOURS[0])
                each.axhline(0.0, color=drawing.GREY, linewidth=0.8)
                each.set_xlabel(drawing.plain_text(self.feature_names[at], _LONGEST_CLASS))
                each.set_ylabel(self._towards)
                drawing.finish(each)
            else:
                self._draw_surface(each, at - len(self.heights))
            each.locator_params(axis="x", nbins=_FEW_TICKS)
        axes[0].figure.suptitle(drawing.plain_text((self.name if name is None else name) or ""))
        return self._drawn_on(tuple(axes[:n_shown]))

    @property
    def _towards(self) -> str:
        return f"score towards {drawing.plain_text(self.towards, _LONGEST_CLASS // 2)}"

    def _draw_surface(self, ax: Any, at: int) -> None:
        heights, (first, second) = self.surfaces[at], self.pairs[at]
        largest = max(float(np.abs(heights).max()), np.finfo(np.float64).tiny)
        low, high = self.readings[:, 0], self.readings[:, -1]
        x, y = (np.linspace(low[p], high[p], _N_SHARES) for p in (first, second))
        shades = {"cmap": "RdBu_r", "vmin": -largest, "vmax": largest}
        mesh = ax.pcolormesh(x, y, heights.T, shading="nearest", **shades)
        ax.figure.colorbar(mesh, ax=ax, label=self._towards)
        ax.set_xlabel(drawing.plain_text(self.feature_names[first], _LONGEST_CLASS))
        ax.set_ylabel(drawing.plain_text(self.feature_names[second], _LONGEST_CLASS))
        drawing.finish(ax)


@dataclass(kw_only=True, eq=False, repr=False)
class ClientRiskDisplay(_Display):
    """The worst-case risk of each client, worst first, and the objective they add up to.

    Best made by :meth:`from_estimator`.

    Parameters
    ----------
    clients : sequence of str
        Names of the clients.
    risks : ndarray of shape (n_clients,)
        Worst-case risk of each; nan if not known.
    objective : float, optional
        The weighted sum of the risks.
    max_clients : int
        How many to draw at most.
    name : str, optional
        What to call the model.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    bars_ : matplotlib BarContainer
        From top to bottom.
    objective_line_ : matplotlib Line2D or None
        The objective.
    shown_ : ndarray
        The clients drawn, as positions in ``clients``, from top to bottom.
    """

    clients: Sequence[str]
    risks: Array
    objective: float | None = None
    max_clients: int = 50
    bars_: Any = field(init=False)
    objective_line_: Any = field(init=False, default=None)
    shown_: npt.NDArray[np.intp] = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        *,
        max_clients: int = 50,
        class_of_interest: Any = None,
        name: str | None = None,
        ax: Any = None,
    ) -> Self:
        """Draw ``worst_case_risk_per_client_`` of a fitted model.

        Parameters
        ----------
        model : fitted FDRSVC
            With ``worst_case_risk_per_client_``.
        class_of_interest : label, optional
            For more than two classes: whose model to show; by default the mean over all classes.
        max_clients, name, ax : optional
            As in the class, and where to draw; by default the model's class and a new figure.
        """
        risks = fitted_attribute(model, "worst_case_risk_per_client_")
        check_count(max_clients, "max_clients")
        at = None
        if class_of_interest is not None:
            classes = np.asarray(fitted_attribute(model, "classes_"))
            at = class_index(classes.tolist(), class_of_interest)

        def one_class(value: Any) -> float:
            return float(np.mean(value) if at is None or np.ndim(value) == 0 else value[at])

        return cls._of(
            model,
            name,
            clients=[str(client) for client in risks],
            risks=np.array([one_class(risk) for risk in risks.values()], dtype=np.float64),
            objective=_over_classes(model, "objective_", one_class),
            max_clients=max_clients,
        ).plot(ax)

    def plot(self, ax: Any = None, *, name: str | None = None) -> Self:
        """Draw the bars and the objective on ``ax``, by default in a new figure."""
        self.shown_ = np.argsort(-self.risks, kind="stable")[: self.max_clients]  # nan comes last
        risks, n_all = self.risks[self.shown_], len(self.risks)
        names = list(self.clients)
        for g in np.flatnonzero(~np.isfinite(self.risks)):
            names[g] += " (not known)"
        colours = [drawing.PALE] * risks.size
        ax, self.bars_ = drawing.draw_bars(ax, risks, names, self.shown_, colours)
        if self.objective is not None and math.isfinite(self.objective):
            self.objective_line_ = ax.axvline(
                self.objective,
                color=drawing.COLOURS[1],
                linestyle="dashed",
                label=f"objective {self.objective:.3g}",
            )
        ax.set_xlabel("worst-case risk (expected loss)")
        ax.set_ylabel(
            "client" if risks.size == n_all else f"client ({risks.size} worst of {n_all})"
        )
        handles = [] if self.objective_line_ is None else [self.objective_line_]
        drawing.draw_legend_above(ax, handles, self.name if name is None else name)
        return self._drawn_on(ax)


def _over_classes(model: Any, attribute: str, reduce: Callable[[Any], Any]) -> float | None:
    """One number for the model; where it has one for each class, ``reduce`` makes it one."""
    value = getattr(model, attribute, None)
    return None if value is None else float(reduce(value))


def _number(value: Any) -> float | None:
    """A number as such; None if it is not one, or one for each client."""
    return float(value) if isinstance(value, Real) and not isinstance(value, bool) else None


def _finite(values: Array) -> Array:
    """Infinite values become gaps in the line, as nan does."""
    return np.where(np.isfinite(values), values, np.nan)
