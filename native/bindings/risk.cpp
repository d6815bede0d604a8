#include "../risk/risk.hpp"

#include <nanobind/stl/optional.h>

#include <cmath>
#include <optional>

#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

using namespace risk;

double check_number(double value, const char* name, double least) {
    if (!(value >= least)) {
        const std::string rule =
            std::string(name) + ": must be a number, at least " + std::to_string(least);
        throw nb::value_error(rule.c_str());
    }
    return value;
}

Ball check_ball(double epsilon, double kappa, const Transport& transport) {
    return {check_number(epsilon, "epsilon", 0.0), check_number(kappa, "kappa", 0.0), transport};
}

// The worst case at one model; a cut has a constant, a slope in (w, b) and a weight of the norm.
struct RiskFound {
    double value, proof, multiplier, intercept_subgradient;
    nb::object subgradient;
};
struct CutFound {
    RiskFound risk;
    double constant, norm_weight;
    nb::object slope;
};
// Risks and touching cuts at several models: the arrays of one message.
struct CutsFound {
    NewVector risks, proofs, constants;
    NewMatrix slopes;  // with an intercept's entry last, if the models have one
    NewVector norm_weights;
};
struct MovesFound {
    RiskFound risk;
    NewVector shares;
    NewMatrix labels, steps;
};

// A client's rows and its ball, held and checked once.
class RiskData {
  public:
    RiskData(nb::handle X, nb::handle y, nb::handle mass, double epsilon, double kappa, int norm,
             nb::handle groups, nb::handle low, nb::handle high, double floor)
        : X_(X, "X"),
          y_(y, "y", X_.shape(0)),
          mass_(mass, "mass", X_.shape(0)),
          transport_(norm, groups, X_.shape(1)) {
        if (X_.size() == 0) throw nb::value_error("X: must not be empty");
        if (X_.shape(0) >= UINT32_MAX) throw nb::value_error("X: must have fewer than 2^32 rows");
        if (low.is_none() != high.is_none())
            throw nb::value_error("low, high: must be two vectors, or neither");
        has_box_ = !low.is_none();
        if (has_box_ && transport_.view().is_grouped())
            throw nb::value_error("groups: there are none on a box");
        samples_ = {X_.view(), {y_.view(), mass_.view()}, {},
                    check_ball(epsilon, kappa, transport_.view()), floor};
        if (!has_box_) return;
        low_ = HeldVector<>(low, "low", X_.shape(1));
        high_ = HeldVector<>(high, "high", X_.shape(1));
        samples_.box = {low_.view(), high_.view()};
    }

    RiskFound worst_case(nb::handle w, double intercept) const {
        const HeldVector<> held(w, "w", X_.shape(1));
        const Model model{held.view(), intercept};
        NewVector subgradient(X_.shape(1));
        if (has_box_) {
            const BoxResult result = in_box(model, subgradient.view(), nullptr);
            return risk_of(result, subgradient.object);
        }
        const FlipsResult result = without_box(model, subgradient.view());
        add_dual_norm_subgradient(model.w, transport_.view(), result.rest, subgradient.view());
        return {result.value, result.proof, result.multiplier, result.slope_b, subgradient.object};
    }

    CutFound cut(nb::handle w, double intercept) const {
        const size_t size = X_.shape(1);
        const HeldVector<> held(w, "w", size);
        NewVector slope(size + 1), subgradient(size);
        const Touching result =
            touching({held.view(), intercept}, slope.view().first(size), subgradient.view());
        slope.view()[size] = without_rounding(result.slope_b);
        return {{result.value, result.proof, result.multiplier, result.intercept_subgradient,
                 subgradient.object},
                result.constant,
                result.norm_weight,
                slope.object};
    }

    // One call for all models of a message: short answers cost less than Python's part in them.
    // Nothing if a number is not finite.
    std::optional<CutsFound> cuts(nb::handle points) const {
        const size_t size = X_.shape(1);
        const HeldMatrix<> held(points, "points");
        const size_t n_points = held.shape(0), width = held.shape(1);
        if (width != size && width != size + 1)
            throw nb::value_error(
                "points: must have one column per feature, and may have one more for an intercept");
        if (!all_finite({held.data(), held.size()})) return std::nullopt;
        CutsFound cuts{NewVector(n_points), NewVector(n_points), NewVector(n_points),
                       NewMatrix(n_points, width), NewVector(n_points)};
        Buffer<> subgradient(size);
        for (size_t k = 0; k < n_points; ++k) {
            const ConstVector point = held.view()[k];
            const Vector slope = cuts.slopes.view()[k];
            const Model model{point.first(size), width > size ? point[size] : 0.0};
            const Touching result = touching(model, slope.first(size), subgradient);
            if (width > size) slope[size] = without_rounding(result.slope_b);
            cuts.risks.view()[k] = result.value;
            cuts.proofs.view()[k] = result.proof;
            cuts.constants.view()[k] = result.constant;
            cuts.norm_weights.view()[k] = result.norm_weight;
        }
        return cuts;
    }

    MovesFound worst_moves(nb::handle w, double intercept) const {
        require_box();
        const HeldVector<> held(w, "w", X_.shape(1));
        NewVector subgradient(X_.shape(1));
        MovesFound result{
            {}, NewVector(X_.shape(0)), NewMatrix(2, X_.shape(0)), NewMatrix(2, X_.shape(0))};
        WorstMoves moves{result.shares.view(), result.labels.view(), result.steps.view()};
        const BoxResult risk = in_box({held.view(), intercept}, subgradient.view(), &moves);
        result.risk = risk_of(risk, subgradient.object);
        return result;
    }

    nb::object displaced(nb::handle w, nb::handle labels, nb::handle steps) const {
        require_box();
        const HeldVector<> held_w(w, "w", X_.shape(1));
        const HeldVector<> held_labels(labels, "labels", X_.shape(0));
        const HeldVector<> held_steps(steps, "steps", X_.shape(0));
        NewMatrix points(X_.shape(0), X_.shape(1));
        displace(samples_, {held_w.view(), 0.0}, held_labels.view(), held_steps.view(),
                 points.view());
        return points.object;
    }

  private:
    HeldMatrix<> X_;
    HeldVector<> y_, mass_, low_, high_;
    HeldTransport transport_;
    Samples samples_;
    bool has_box_;

    void require_box() const {
        if (!has_box_) throw nb::value_error("low, high: moves need a box");
    }
    BoxResult in_box(const Model& model, Vector subgradient, WorstMoves* moves) const {
        nb::gil_scoped_release unlocked;
        return worst_in_box(samples_, model, subgradient, moves);
    }
    FlipsResult without_box(const Model& model, Vector slope) const {
        nb::gil_scoped_release unlocked;
        return worst_without_box(samples_, model, slope);
    }
    static RiskFound risk_of(const BoxResult& result, nb::object subgradient) {
        return {result.value, result.proof, result.multiplier, result.slope_b,
                std::move(subgradient)};
    }

    // A worst case and the cut that touches it; `slope_b` is the cut's, before rounding is removed.
    struct Touching {
        double value, proof, multiplier, intercept_subgradient;
        double constant, slope_b, norm_weight;
    };
    Touching touching(const Model& model, Vector slope, Vector subgradient) const {
        if (has_box_) return touching_in_box(model, slope, subgradient);
        const FlipsResult result = without_box(model, slope);
        std::copy(slope.begin(), slope.end(), subgradient.begin());
        add_dual_norm_subgradient(model.w, transport_.view(), result.rest, subgradient);
        return {result.value,    result.proof,   result.multiplier, result.slope_b,
                result.constant, result.slope_b, result.rest};
    }

    // Of the paper's linear loss the hinge is followed, under the distribution found.
    Touching touching_in_box(const Model& model, Vector slope, Vector subgradient) const {
        const size_t n_rows = X_.shape(0);
        const bool is_linear = samples_.floor < 0.0;
        Buffer<> shares(is_linear ? n_rows : 0), ends(is_linear ? 4 * n_rows : 0);
        WorstMoves moves{shares,
                         {ends.data(), 2, n_rows, n_rows},
                         {ends.data() + 2 * n_rows, 2, n_rows, n_rows}};
        const BoxResult result = in_box(model, subgradient, is_linear ? &moves : nullptr);
        MeanHinge hinge{result.mass, result.slope_b};
        if (is_linear) {
            nb::gil_scoped_release unlocked;
            hinge = hinge_of_atoms(samples_, model, moves, slope);
        } else {
            std::copy(subgradient.begin(), subgradient.end(), slope.begin());
        }
        return {result.value,   result.proof, result.multiplier, result.slope_b, hinge.mass,
                hinge.slope_b, 0.0};
    }
};

struct LabelsFound {
    FlipsResult flips;
    NewVector shares, residual;
};

// Labels and masses of a client without a box, for any loss.
class LabelFlips {
  public:
    LabelFlips(nb::handle y, nb::handle mass, double epsilon, double kappa)
        : y_(y, "y"),
          mass_(mass, "mass", y_.size()),
          ball_(check_ball(epsilon, kappa, {})) {}

    LabelsFound worst_case(nb::handle kept, nb::handle flipped, nb::handle kept_slope,
                           nb::handle flipped_slope, double least) const {
        const size_t size = y_.size();
        const HeldVector<> held[] = {
            {kept, "kept", size},
            {flipped, "flipped", size},
            {kept_slope, "kept_slope", size},
            {flipped_slope, "flipped_slope", size},
        };
        LabelsFound result{{}, NewVector(size), NewVector(size)};
        const LabelLosses losses{held[0].view(), held[1].view(), held[2].view(), held[3].view()};
        nb::gil_scoped_release unlocked;
        result.flips = worst_labels(losses, {y_.view(), mass_.view()}, ball_, least,
                                   result.shares.view(), result.residual.view());
        return result;
    }

  private:
    HeldVector<> y_, mass_;
    Ball ball_;
};

void bind_results(nb::module_& risk) {
    nb::class_<RiskFound>(risk, "RiskFound")
        .def_ro("value", &RiskFound::value)
        .def_ro("proof", &RiskFound::proof)
        .def_ro("multiplier", &RiskFound::multiplier)
        .def_ro("subgradient", &RiskFound::subgradient)
        .def_ro("intercept_subgradient", &RiskFound::intercept_subgradient);
    nb::class_<CutFound>(risk, "CutFound")
        .def_ro("risk", &CutFound::risk)
        .def_ro("constant", &CutFound::constant)
        .def_ro("norm_weight", &CutFound::norm_weight)
        .def_ro("slope", &CutFound::slope);
    nb::class_<CutsFound>(risk, "CutsFound")
        .def_prop_ro("risks", [](const CutsFound& result) { return result.risks.object; })
        .def_prop_ro("proofs", [](const CutsFound& result) { return result.proofs.object; })
        .def_prop_ro("constants", [](const CutsFound& result) { return result.constants.object; })
        .def_prop_ro("slopes", [](const CutsFound& result) { return result.slopes.object; })
        .def_prop_ro("norm_weights",
                     [](const CutsFound& result) { return result.norm_weights.object; });
    nb::class_<MovesFound>(risk, "MovesFound")
        .def_ro("risk", &MovesFound::risk)
        .def_prop_ro("shares", [](const MovesFound& result) { return result.shares.object; })
        .def_prop_ro("labels", [](const MovesFound& result) { return result.labels.object; })
        .def_prop_ro("steps", [](const MovesFound& result) { return result.steps.object; });
    nb::class_<LabelsFound>(risk, "LabelsFound")
        .def_prop_ro("value", [](const LabelsFound& result) { return result.flips.value; })
        .def_prop_ro("proof", [](const LabelsFound& result) { return result.flips.proof; })
        .def_prop_ro("multiplier",
                     [](const LabelsFound& result) { return result.flips.multiplier; })
        .def_prop_ro("rest", [](const LabelsFound& result) { return result.flips.rest; })
        .def_prop_ro("intercept_slope",
                     [](const LabelsFound& result) { return result.flips.slope_b; })
        .def_prop_ro("shares", [](const LabelsFound& result) { return result.shares.object; })
        .def_prop_ro("residual", [](const LabelsFound& result) { return result.residual.object; });
}

}  // namespace

void bind_risk(nb::module_& module) {
    nb::module_ risk = module.def_submodule("risk", "The worst-case risk of one client.");
    bind_results(risk);
    nb::class_<RiskData>(risk, "RiskData")
        .def(nb::init<nb::handle, nb::handle, nb::handle, double, double, int, nb::handle,
                      nb::handle, nb::handle, double>(),
             nb::kw_only(), "X"_a, "y"_a, "mass"_a, "epsilon"_a, "kappa"_a, "norm"_a,
             "groups"_a.none() = nb::none(), "low"_a.none() = nb::none(),
             "high"_a.none() = nb::none(), "floor"_a = 0.0)
        .def("worst_case", &RiskData::worst_case, "w"_a, "intercept"_a)
        .def("cut", &RiskData::cut, "w"_a, "intercept"_a)
        .def("cuts", &RiskData::cuts, "points"_a)
        .def("worst_moves", &RiskData::worst_moves, "w"_a, "intercept"_a)
        .def("displaced", &RiskData::displaced, "w"_a, "labels"_a, "steps"_a);
    nb::class_<LabelFlips>(risk, "LabelFlips")
        .def(nb::init<nb::handle, nb::handle, double, double>(), nb::kw_only(), "y"_a, "mass"_a,
             "epsilon"_a, "kappa"_a)
        .def("worst_case", &LabelFlips::worst_case, "kept"_a, "flipped"_a, "kept_slope"_a,
             "flipped_slope"_a, "least"_a);
    risk.def(
        "flip_shares",
        [](nb::handle gains, nb::handle mass, double budget, double floor) {
            const HeldVector<> held_gains(gains, "gains");
            const HeldVector<> held_mass(mass, "mass", held_gains.size());
            if (!(budget >= 0.0)) throw nb::value_error("budget: must be at least 0");
            const FlipRule rule = flip_rule(
                upper_quantile(held_gains.view(), held_mass.view(), budget, floor), budget, floor);
            NewVector shares(held_gains.size());
            for (size_t n = 0; n < held_gains.size(); ++n)
                shares.view()[n] = rule.share(held_gains.view()[n]);
            return nb::make_tuple(rule.threshold, shares.object, rule.flipped);
        },
        "gains"_a, "mass"_a, "budget"_a, "floor"_a);
    risk.def(
        "first_outside",
        [](nb::handle X, nb::handle low, nb::handle high) {
            const HeldMatrix<> held(X, "X");
            const HeldVector<> held_low(low, "low", held.shape(1));
            const HeldVector<> held_high(high, "high", held.shape(1));
            nb::gil_scoped_release unlocked;
            const size_t row = first_outside(held.view(), {held_low.view(), held_high.view()});
            return row < held.shape(0) ? static_cast<std::int64_t>(row) : std::int64_t{-1};
        },
        "X"_a, "low"_a, "high"_a);
    risk.def(
        "is_clean",
        [](nb::handle w, size_t size) {
            nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
            if (!nb::try_cast(w, array, false) || array.size() != size) return false;
            if (reinterpret_cast<std::uintptr_t>(array.data()) % alignof(double) != 0) return false;
            bool is_finite = true;
            for (size_t p = 0; p < size; ++p) is_finite &= std::isfinite(array.data()[p]);
            return is_finite;
        },
        "w"_a.none(), "size"_a);
}

}  // namespace fdrsvm::edge
