#include <vector>

#include "../screening/answers.hpp"
#include "../screening/solves.hpp"
#include "form.hpp"
#include "indices.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

using namespace screening;

namespace {

using Clients = HeldVector<const std::int64_t>;

struct HeldBounds {
    HeldVector<> slopes;
    Bounds bounds;

    Bounds view(bool touching) const {
        Bounds view = bounds;
        view.touches = bounds.touches && touching;
        return view;
    }
};

struct HeldRadii {
    HeldVector<> floors, flips;
    size_t n_features;
    HeldTransport transport;

    size_t n_clients() const { return floors.size(); }
    Radii view() const { return {floors.view(), flips.view(), n_features, transport.view()}; }
};

// Models, and for losses other than the hinge what is known of them there.
struct HeldPoints {
    HeldMatrix<> models;
    HeldMatrix<> others;
    bool has_others = false;

    HeldPoints(nb::handle models, nb::handle others) : models(models, "models") {
        if (others.is_none()) return;
        this->others = HeldMatrix<>(others, "others", this->models.shape(0), 2);
        has_others = true;
    }
    size_t width() const { return models.shape(1); }
    Points view() const {
        return {models.view(), has_others ? others.view() : ConstMatrix{nullptr, 0, 0, 0}};
    }
};

struct HeldCuts {
    Clients owners;
    HeldVector<> constants;
    HeldMatrix<> slopes;
    HeldVector<> norm_weights;

    HeldCuts(nb::handle owners, nb::handle constants, nb::handle slopes, nb::handle norm_weights)
        : owners(owners, "owners"),
          constants(constants, "constants", this->owners.size()),
          slopes(slopes, "slopes", this->owners.size()),
          norm_weights(norm_weights, "norm_weights", this->owners.size()) {}
    Cuts view() const { return {constants.view(), slopes.view(), norm_weights.view()}; }
};

// Arrays of one name from every client's answer, one below the other in an array of our own.
template <size_t Dimensions>
class Gathered {
  public:
    Gathered(nb::handle values_by_client, const char* name) : name_(name) {
        const nb::str key(name);
        const nb::dict all = nb::borrow<nb::dict>(values_by_client);
        arrays_.reserve(all.size());
        for (auto [client, values] : all) {
            const nb::object given = values[key];
            arrays_.emplace_back(given);
            if (!arrays_.back().is_float64() || arrays_.back().n_dimensions() != Dimensions)
                refuse(name,
                       "an array of float64 with " + std::to_string(Dimensions) + " dimension(s)");
        }
    }

    size_t n_arrays() const { return arrays_.size(); }
    size_t length(size_t k) const { return arrays_[k].shape(0); }
    size_t width(size_t k) const { return Dimensions == 2 ? arrays_[k].shape(1) : 1; }

    // They must all be this long, or this wide.
    void check(size_t expected, size_t axis) const {
        for (const AnyBuffer& array : arrays_) check_size(name_, array.shape(axis), expected);
    }
    void copy_to(double* out) const {
        for (const AnyBuffer& array : arrays_)
            array.all_of([&](double value) { return *out++ = value, true; });
    }

  private:
    const char* name_;
    std::vector<AnyBuffer> arrays_;
};

nb::object joined(const Gathered<1>& arrays, size_t size) {
    const NewVector out(size);
    arrays.copy_to(out.view().data());
    return out.object;
}

template <size_t Dimensions>
nb::object stacked(const Gathered<Dimensions>& arrays, size_t rows, size_t columns) {
    const NewMatrix out(rows, columns);
    arrays.copy_to(out.view().data);
    return out.object;
}

// What some clients, at least one, said; a dict of the arrays of each.
struct HeldAnswers {
    Clients clients;
    std::vector<std::int64_t> counts;
    HeldMatrix<> risks;
    nb::object cuts;

    explicit HeldAnswers(nb::dict values_by_client) {
        const size_t n_answers = values_by_client.size();
        if (n_answers == 0) throw nb::value_error("values: must be of at least one client");
        const Gathered<1> risks(values_by_client, "risks"),
            constants(values_by_client, "constants"),
            norm_weights(values_by_client, "norm_weights");
        const Gathered<2> slopes(values_by_client, "slopes");
        risks.check(risks.length(0), 0);
        slopes.check(slopes.width(0), 1);
        const NewIndices numbers(n_answers);
        size_t n_cuts = 0;
        for (size_t k = 0; k < n_answers; ++k) {
            check_size("slopes", slopes.length(k), constants.length(k));
            check_size("norm_weights", norm_weights.length(k), constants.length(k));
            counts.push_back(static_cast<std::int64_t>(constants.length(k)));
            n_cuts += constants.length(k);
        }
        size_t k = 0;
        for (auto [client, values] : values_by_client)
            if (!nb::try_cast(client, numbers.view()[k++])) refuse("clients", "whole numbers");
        const NewIndices owners(n_cuts);
        size_t cut = 0;
        for (k = 0; k < n_answers; ++k)
            for (std::int64_t i = 0; i < counts[k]; ++i) owners.view()[cut++] = numbers.view()[k];
        clients = Clients(numbers.object, "clients");
        this->risks = HeldMatrix<>(stacked(risks, n_answers, risks.length(0)), "risks");
        cuts = nb::cast(HeldCuts(owners.object, joined(constants, n_cuts),
                                 stacked(slopes, n_cuts, slopes.width(0)),
                                 joined(norm_weights, n_cuts)));
    }

    const HeldCuts& held_cuts() const { return nb::cast<const HeldCuts&>(cuts); }
    Answers view() const { return {clients.view(), risks.view(), counts, held_cuts().view()}; }
};

// One cut per client and round, and the risks at the best model.
struct HeldPast {
    HeldVector<> best_risks;
    HeldMatrix<> constants;
    Held<const double, 3> slopes;
    HeldMatrix<> norm_weights;

    HeldPast(nb::handle best_risks, nb::handle constants, nb::handle slopes,
             nb::handle norm_weights)
        : best_risks(best_risks, "best_risks"),
          constants(constants, "constants", kAnySize, this->best_risks.size()),
          slopes(slopes, "slopes"),
          norm_weights(norm_weights, "norm_weights", this->constants.shape(0),
                       this->best_risks.size()) {
        check_size("slopes", this->slopes.shape(0), this->constants.shape(0));
        check_size("slopes", this->slopes.shape(1), this->constants.shape(1));
    }
    Past view() const {
        const size_t width = slopes.shape(2), rows = constants.size();
        return {best_risks.view(),
                constants.view(),
                {slopes.data(), rows, width, width},
                norm_weights.view()};
    }
};

struct HeldSolve {
    HeldVector<> w;
    Solve solve;
};

// What Python is told: which client, and which rule it broke.
struct NamedFinding {
    std::int64_t client;
    Finding finding;
};

nb::list broken(Indices clients, std::span<const Finding> findings) {
    nb::list named;
    for (size_t k = 0; k < findings.size(); ++k)
        if (!findings[k].is_kept()) named.append(NamedFinding{clients[k], findings[k]});
    return named;
}

void check_models(const HeldBounds& bounds, const HeldRadii& radii, const HeldPoints& points) {
    const size_t width = points.width(), n_features = radii.n_features;
    if (width != n_features && width != n_features + 1)
        throw nb::value_error("models: must have one column per feature, and one for an intercept");
    if (bounds.bounds.has_slopes || bounds.slopes.size() > 0)
        check_size("bounds", bounds.slopes.size(), n_features + 1);
    if (bounds.bounds.is_hinge == points.has_others)
        throw nb::value_error("others: must be None for the hinge, and given for other losses");
}

void check_answers(const HeldRadii& radii, const HeldPoints& points, const HeldAnswers& answers) {
    check_size("slopes", answers.held_cuts().slopes.shape(1), points.width());
    check_indices("clients", answers.clients.view(), radii.n_clients());
}

nb::list judge_answers_edge(const HeldBounds& bounds, const HeldRadii& radii,
                            const HeldPoints& points, const HeldAnswers& answers, bool touching,
                            nb::handle penalties) {
    check_models(bounds, radii, points);
    check_answers(radii, points, answers);
    HeldVector<> held_penalties;
    if (!penalties.is_none())
        held_penalties = HeldVector<>(penalties, "penalties", radii.n_clients());
    // A sum's cuts may come without points, each was made at another one.
    if (points.models.shape(0) > 0)
        check_size("risks", answers.risks.shape(1), points.models.shape(0));
    std::vector<Finding> findings(answers.clients.size());
    {
        const Bounds limits = bounds.view(touching);
        const ConstVector weights = penalties.is_none() ? ConstVector{} : held_penalties.view();
        const Answers given = answers.view();
        nb::gil_scoped_release unlocked;
        judge_answers(limits, radii.view(), points.view(), given, weights, findings);
    }
    return broken(answers.clients.view(), findings);
}

nb::list judge_past_edge(const HeldBounds& bounds, const HeldRadii& radii, const HeldPoints& points,
                         nb::handle risks, const HeldCuts& known) {
    check_models(bounds, radii, points);
    const HeldMatrix<> held_risks(risks, "risks", radii.n_clients(), points.models.shape(0));
    check_size("slopes", known.slopes.shape(1), points.width());
    check_indices("owners", known.owners.view(), radii.n_clients());
    std::vector<Finding> findings(radii.n_clients());
    {
        nb::gil_scoped_release unlocked;
        find_contradictions(bounds.view(false), radii.view(), points.view(), held_risks.view(),
                            {known.owners.view(), known.view()}, findings);
    }
    std::vector<std::int64_t> everyone(radii.n_clients());
    for (size_t g = 0; g < everyone.size(); ++g) everyone[g] = static_cast<std::int64_t>(g);
    return broken(everyone, findings);
}

nb::list judge_round_edge(const HeldBounds& bounds, const HeldRadii& radii,
                          const HeldPoints& points, const HeldAnswers& answers,
                          const HeldPast& past, bool touching) {
    check_models(bounds, radii, points);
    check_answers(radii, points, answers);
    check_size("models", points.models.shape(0), 2);
    check_size("risks", answers.risks.shape(1), 1);
    for (std::int64_t count : answers.counts) check_size("constants", count, 1);
    check_size("best_risks", past.best_risks.size(), radii.n_clients());
    check_size("past slopes", past.slopes.shape(2), points.width());
    std::vector<Finding> findings(answers.clients.size());
    {
        const Answers given = answers.view();
        nb::gil_scoped_release unlocked;
        judge_round(bounds.view(touching), radii.view(), points.view(), given, past.view(),
                    findings);
    }
    return broken(answers.clients.view(), findings);
}

nb::list judge_solves_edge(const HeldBounds& bounds, const HeldRadii& radii, const HeldSolve& solve,
                           const HeldAnswers& answers, nb::dict values_by_client, nb::handle duals,
                           nb::handle own) {
    const size_t width = solve.w.size(), n_answers = answers.clients.size();
    const HeldCuts& cuts = answers.held_cuts();
    check_size("slopes", cuts.slopes.shape(0), n_answers);
    check_size("risks", answers.risks.shape(1), 1);
    if (bounds.bounds.has_slopes && bounds.slopes.size() < width)
        throw nb::value_error("bounds: must have one entry per feature, and one for an intercept");
    check_size("slopes", cuts.slopes.shape(1), width);
    const HeldMatrix<> held_duals(duals, "duals", radii.n_clients(), width);
    const HeldMatrix<> held_own(own, "own", held_duals.shape(0), width);
    check_indices("clients", answers.clients.view(), held_duals.shape(0));
    const Gathered<1> vectors(values_by_client, "vector"), squares(values_by_client, "squares");
    check_size("values", vectors.n_arrays(), n_answers);
    vectors.check(width, 0);
    squares.check(3, 0);
    const HeldMatrix<> rows(stacked(vectors, n_answers, width), "vector");
    const HeldMatrix<> threes(stacked(squares, n_answers, 3), "squares");
    std::vector<Finding> findings(n_answers);
    {
        nb::gil_scoped_release unlocked;
        const Solved solved = {answers.clients.view(), rows.view(), threes.view(),
                               ConstVector(answers.risks.data(), n_answers), cuts.view()};
        judge_solves(bounds.bounds, radii.view(), solve.solve, solved, held_duals.view(),
                     held_own.view(), findings);
    }
    return broken(answers.clients.view(), findings);
}

nb::tuple span_edge(const HeldBounds& bounds, const HeldRadii& radii, const HeldPoints& points,
                    const HeldCuts& known) {
    check_models(bounds, radii, points);
    check_size("models", points.models.shape(0), 1);
    check_size("slopes", known.slopes.shape(1), points.width());
    check_size("owners", known.owners.size(), 1);
    check_indices("owners", known.owners.view(), radii.n_clients());
    const Bounds limits = bounds.view(false);
    const Place place = place_of(points.view(), 0, limits, radii.view());
    const Radius radius = radii.view()[static_cast<size_t>(known.owners.view()[0])];
    const Span span = span_at(known.view()[0], place, radius, limits);
    return nb::make_tuple(span.lowest, span.highest);
}

void bind_rules(nb::module_& module) {
    nb::enum_<Rule>(module, "Rule")
        .value("NORM_WEIGHT", Rule::norm_weight)
        .value("CONSTANT_HIGH", Rule::constant_high)
        .value("CONSTANT_LOW", Rule::constant_low)
        .value("SLOPE", Rule::slope)
        .value("RISK_LOW", Rule::risk_low)
        .value("RISK_HIGH", Rule::risk_high)
        .value("ABOVE", Rule::above)
        .value("OVER", Rule::over)
        .value("APART", Rule::apart)
        .value("VECTOR", Rule::vector)
        .value("INTERCEPT", Rule::intercept)
        .value("SQUARES", Rule::squares)
        .value("CONTRADICTING", Rule::contradicting);
    nb::class_<NamedFinding>(module, "Finding")
        .def_ro("client", &NamedFinding::client)
        .def_prop_ro("rule", [](const NamedFinding& named) { return named.finding.rule; })
        .def_prop_ro("value", [](const NamedFinding& named) { return named.finding.value; })
        .def_prop_ro("limit", [](const NamedFinding& named) { return named.finding.limit; });
}

void bind_standards(nb::module_& module) {
    nb::class_<HeldBounds>(module, "Bounds")
        .def(
            "__init__",
            [](HeldBounds* self, double lowest_constant, double highest_constant, nb::handle slopes,
               bool has_slopes, bool is_hinge, bool touches, double blurred, bool is_single,
               double grid) {
                const HeldVector<> held(slopes, "slopes");
                new (self) HeldBounds{held,
                                      {lowest_constant, highest_constant, held.view(), has_slopes,
                                       is_hinge, touches, blurred, is_single, grid}};
            },
            nb::kw_only(), "lowest_constant"_a, "highest_constant"_a, "slopes"_a, "has_slopes"_a,
            "is_hinge"_a, "touches"_a, "blurred"_a, "is_single"_a, "grid"_a)
        .def_prop_ro("lowest_constant",
                     [](const HeldBounds& held) { return held.bounds.lowest_constant; });
    nb::class_<HeldRadii>(module, "Radii")
        .def(
            "__init__",
            [](HeldRadii* self, nb::handle floors, nb::handle flips, size_t n_features, int norm,
               nb::handle groups) {
                const HeldVector<> held(floors, "floors");
                new (self) HeldRadii{held, HeldVector<>(flips, "flips", held.size()), n_features,
                                     HeldTransport(norm, groups, n_features)};
            },
            nb::kw_only(), "floors"_a, "flips"_a, "n_features"_a, "norm"_a,
            "groups"_a.none() = nb::none());
    nb::class_<HeldPoints>(module, "Points")
        .def(nb::init<nb::handle, nb::handle>(), "models"_a, "others"_a = nb::none());
}

void bind_answers(nb::module_& module) {
    nb::class_<Form>(module, "Form")
        .def(nb::init<const nb::dict&, const nb::list&, const nb::list&>(), "shapes"_a,
             "together"_a, "never_negative"_a)
        .def("fault", &Form::fault, "values"_a);
    nb::class_<HeldCuts>(module, "Cuts")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle>(), "owners"_a, "constants"_a,
             "slopes"_a, "norm_weights"_a)
        .def_prop_ro("owners", [](const HeldCuts& cuts) { return cuts.owners.object; })
        .def_prop_ro("constants", [](const HeldCuts& cuts) { return cuts.constants.object; })
        .def_prop_ro("slopes", [](const HeldCuts& cuts) { return cuts.slopes.object; })
        .def_prop_ro("norm_weights", [](const HeldCuts& cuts) { return cuts.norm_weights.object; });
    nb::class_<HeldAnswers>(module, "Answers")
        .def(nb::init<nb::dict>(), "values_by_client"_a)
        .def_prop_ro("clients", [](const HeldAnswers& answers) { return answers.clients.object; })
        .def_prop_ro("risks", [](const HeldAnswers& answers) { return answers.risks.object; })
        .def_ro("cuts", &HeldAnswers::cuts);
    nb::class_<HeldPast>(module, "Past")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle>(), nb::kw_only(),
             "best_risks"_a, "constants"_a, "slopes"_a, "norm_weights"_a);
    nb::class_<HeldSolve>(module, "Solve")
        .def(
            "__init__",
            [](HeldSolve* self, nb::handle w, double rho, double tau, double relaxation, double gap,
               size_t n_features, int norm) {
                const HeldVector<> held(w, "w");
                if (n_features != held.size() && n_features + 1 != held.size())
                    throw nb::value_error("n_features: must be the size of w, or one less");
                new (self) HeldSolve{
                    held, {held.view(), rho, tau, relaxation, gap, n_features, check_norm(norm)}};
            },
            nb::kw_only(), "w"_a, "rho"_a, "tau"_a, "relaxation"_a, "gap"_a, "n_features"_a,
            "norm"_a);
}

}  // namespace

void bind_screening(nb::module_& module) {
    nb::module_ submodule = module.def_submodule("screening", "The rules on clients' answers.");
    submodule.attr("ROUNDING") = kRounding;
    bind_rules(submodule);
    bind_standards(submodule);
    bind_answers(submodule);
    submodule.def("judge_answers", &judge_answers_edge, "bounds"_a, "radii"_a, "points"_a,
                  "answers"_a, nb::kw_only(), "touching"_a, "penalties"_a = nb::none());
    submodule.def("judge_past", &judge_past_edge, "bounds"_a, "radii"_a, "points"_a, "risks"_a,
             "known"_a);
    submodule.def("judge_round", &judge_round_edge, "bounds"_a, "radii"_a, "points"_a, "answers"_a,
             "past"_a, nb::kw_only(), "touching"_a);
    submodule.def("judge_solves", &judge_solves_edge, "bounds"_a, "radii"_a, "solve"_a, "answers"_a,
             "values_by_client"_a, "duals"_a, "own"_a);
    submodule.def("span", &span_edge, "bounds"_a, "radii"_a, "points"_a, "cut"_a);
}

}  // namespace fdrsvm::edge
