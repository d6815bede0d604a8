#include <algorithm>

#include "../master/tasks.hpp"
#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

using namespace fdrsvm::master;

nb::object copied(ConstVector values) {
    NewVector out(values.size());
    std::copy(values.begin(), values.end(), out.view().data());
    return out.object;
}

nb::object copied(ConstMatrix values) {
    NewMatrix out(values.rows, values.columns);
    for (size_t row = 0; row < values.rows; ++row)
        std::copy_n(values[row].data(), values.columns, out.view()[row].data());
    return out.object;
}

// A cut model and the arrays it reads; checked here so that no kernel has to.
class Cuts {
  public:
    Cuts(nb::handle constants, nb::handle slopes, nb::handle norm_weights, nb::handle owners,
         nb::handle alphas, nb::handle floors, size_t n_normed, int norm, nb::handle groups)
        : constants_(constants, "constants"),
          slopes_(slopes, "slopes", constants_.size()),
          norm_weights_(norm_weights, "norm_weights", constants_.size()),
          owners_(owners, "owners", constants_.size()),
          alphas_(alphas, "alphas"),
          floors_(floors, "floors", alphas_.size()),
          transport_(norm, groups, n_normed),
          model{constants_.view(), slopes_.view(), norm_weights_.view(),
                owners_.view(),    alphas_.view(), floors_.view(),
                n_normed,          transport_.view()} {
        if (n_normed < 1 || n_normed > model.width() || model.width() > n_normed + 1)
            throw nb::value_error("n_normed: must be the number of columns of slopes, or one less");
        check_owners();
    }

    HeldVector<> point(nb::handle w) const { return {w, "w", model.width()}; }
    HeldVector<> shares(nb::handle given) const { return {given, "shares", model.n_cuts()}; }

  private:
    HeldVector<> constants_;
    HeldMatrix<> slopes_;
    HeldVector<> norm_weights_;
    HeldVector<const std::int64_t> owners_;
    HeldVector<> alphas_, floors_;
    HeldTransport transport_;

    // Kernels walk through the cuts of one client after the other and rely on this order.
    void check_owners() const {
        std::int64_t last = 0;
        for (const std::int64_t owner : model.owners) {
            if (owner < last || owner >= static_cast<std::int64_t>(model.n_clients()))
                throw nb::value_error("owners: must ascend, from 0 up to the number of clients");
            last = owner;
        }
    }

  public:
    const CutModel model;
};

// A metric, checked; None is the Euclidean one.
class GivenMetric {
  public:
    GivenMetric(nb::handle matrix, double least, size_t width) : least_(least) {
        if (!matrix.is_none()) matrix_ = HeldMatrix<>(matrix, "metric", width, width);
    }
    Metric view() const {
        if (!matrix_.object.is_valid()) return {};
        return {matrix_.view(), least_};
    }

  private:
    HeldMatrix<> matrix_;
    double least_;
};

// What Python sees of a bound: copies, since the kernel's own memory goes with the task.
struct GivenBound {
    GivenBound(const CutModel& model, const Bound& bound)
        : value(bound.value),
          radius(bound.radius),
          shares(copied(bound.shares)),
          slope_by_client(copied(ConstMatrix{bound.slope_by_client.data(), model.n_clients(),
                                             model.width(), model.width()})) {}
    double value, radius;
    nb::object shares, slope_by_client;
};

// A scaled problem, for solvers of other kinds.
struct GivenProblem {
    explicit GivenProblem(const Problem& problem)
        : cuts(copied(problem.cuts)),
          constants(copied(problem.constants)),
          alphas(copied(problem.alphas)),
          curvature(copied(problem.curvature)),
          metric(copied(problem.metric)),
          centre(copied(problem.centre)),
          n_normed(problem.n_normed),
          norm(static_cast<int>(problem.transport.norm)),
          level(problem.level),
          levelled(problem.levelled) {
        for (size_t start : problem.starts) starts.append(start);
        const Transport& transport = problem.transport;
        for (size_t j = 0; j < transport.n_groups(n_normed); ++j)
            groups.append(transport.start(j + 1) - transport.start(j));
    }
    nb::object cuts, constants;
    nb::list starts, groups;
    nb::object alphas, curvature, metric, centre;
    size_t n_normed;
    int norm;
    double level;
    bool levelled;
};

// An answer of a solver of another kind, checked.
struct GivenGuess {
    GivenGuess(const Problem& problem, nb::handle w, nb::handle cut_multipliers, double price)
        : w_(w, "w", problem.width()),
          cut_multipliers_(cut_multipliers, "cut_multipliers", problem.n_cuts()),
          theta_price(price) {}
    Guess guess() const { return {w_.view(), cut_multipliers_.view(), theta_price}; }

  private:
    HeldVector<> w_, cut_multipliers_;
    double theta_price;
};

template <class Task>
const Problem& problem_of(const Task& task) {
    if (task.is_trivial()) throw nb::value_error("there is nothing to solve");
    return task.scaled().problem();
}

// A task, and the arrays it reads. Everything that takes time is done without the lock.
class HeldMinimisation {
  public:
    HeldMinimisation(const Cuts& cuts, double radius, Effort effort)
        : model_(cuts.model), cuts_(nb::find(cuts)), task_(solved(cuts.model, radius, effort)) {}

    nb::object w() const { return copied(task_.w()); }
    double value() const { return task_.value(); }
    double value_at_0() const { return task_.value_at_0(); }
    GivenBound bound() const { return {model_, task_.bound()}; }
    double gap() const { return task_.value() - task_.bound().value; }
    int n_iter() const { return task_.n_iter(); }
    bool is_trivial() const { return task_.is_trivial(); }
    GivenProblem problem() const { return GivenProblem(problem_of(task_)); }
    void offer(nb::handle w, nb::handle cut_multipliers) {
        task_.offer(GivenGuess(problem_of(task_), w, cut_multipliers, 1.0).guess());
    }

  private:
    static Minimisation solved(const CutModel& model, double radius, Effort effort) {
        nb::gil_scoped_release unlocked;
        Minimisation task(model, radius);
        task.solve(effort);
        return task;
    }
    const CutModel& model_;
    nb::object cuts_;  // keeps the arrays alive that the task reads
    Minimisation task_;
};

struct GivenPoint {
    GivenPoint(const CutModel& model, const GradedPoint& point)
        : w(copied(point.w)),
          value(point.value),
          shares(copied(point.shares)),
          level_multiplier(point.level_multiplier),
          distance(point.distance),
          gap(point.gap),
          bound(model, point.bound) {}
    nb::object w;
    double value;
    nb::object shares;
    double level_multiplier, distance, gap;
    GivenBound bound;
};

class HeldProjection {
  public:
    HeldProjection(const Cuts& cuts, nb::handle centre, double level, nb::handle metric,
                   double least, Effort effort)
        : model_(cuts.model),
          cuts_(nb::find(cuts)),
          centre_(centre, "centre", cuts.model.width()),
          metric_(metric, least, cuts.model.width()),
          task_(model_, {centre_.view(), level, metric_.view()}),
          first_(solved(effort)) {}

    double value_at_centre() const { return task_.value_at_centre(); }
    double value_at_0() const { return task_.value_at_0(); }
    GivenPoint first() const { return {model_, first_}; }
    int n_iter() const { return task_.n_iter(); }
    GivenProblem problem() const { return GivenProblem(problem_of(task_)); }
    GivenPoint grade(nb::handle w, nb::handle cut_multipliers, double price) const {
        const GivenGuess given(problem_of(task_), w, cut_multipliers, price);
        return {model_, task_.grade(given.guess())};
    }
    GivenPoint grade_point(nb::handle w) const {
        return {model_, task_.grade_point(HeldVector<>(w, "w", model_.width()).view())};
    }

  private:
    GradedPoint solved(Effort effort) {
        nb::gil_scoped_release unlocked;
        return task_.solve(effort);
    }
    const CutModel& model_;
    nb::object cuts_;
    HeldVector<> centre_;
    GivenMetric metric_;
    Projection task_;
    GradedPoint first_;
};

void bind_model(nb::module_& master) {
    nb::class_<Cuts>(master, "Cuts", "A cut model, as the kernels read it.")
        .def(nb::init<nb::handle, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle,
                      size_t, int, nb::handle>(),
             nb::kw_only(), "constants"_a, "slopes"_a, "norm_weights"_a, "owners"_a, "alphas"_a,
             "floors"_a, "n_normed"_a, "norm"_a,
             "groups"_a.none() = nb::none())
        .def("floor", [](const Cuts& cuts) { return total_floor(cuts.model); })
        .def(
            "cut_values",
            [](const Cuts& cuts, nb::handle w) {
                const HeldVector<> point = cuts.point(w);
                NewVector out(cuts.model.n_cuts());
                cut_values(cuts.model, point.view(), out.view());
                return out.object;
            },
            "w"_a)
        .def(
            "client_values",
            [](const Cuts& cuts, nb::handle w) {
                const HeldVector<> point = cuts.point(w);
                NewVector out(cuts.model.n_clients());
                client_values(cuts.model, point.view(), out.view());
                return out.object;
            },
            "w"_a)
        .def(
            "value",
            [](const Cuts& cuts, nb::handle w) {
                return model_value(cuts.model, cuts.point(w).view());
            },
            "w"_a);
}

void bind_bounds(nb::module_& master) {
    nb::class_<GivenBound>(master, "Bound", "A lower bound, and the shares that prove it.")
        .def_ro("value", &GivenBound::value)
        .def_ro("radius", &GivenBound::radius)
        .def_ro("shares", &GivenBound::shares)
        .def_ro("slope_by_client", &GivenBound::slope_by_client);
    master.def(
        "mixture_bound",
        [](double constant, double excess, double floor, double radius) {
            const Mixture mixture = mixture_bound(constant, excess, floor, radius);
            return nb::make_tuple(mixture.value, mixture.radius, mixture.share);
        },
        "constant"_a, "excess"_a, "floor"_a, "radius"_a);
    master.def(
        "model_bound",
        [](const Cuts& cuts, nb::handle shares, double radius) {
            const HeldVector<> held = cuts.shares(shares);
            return GivenBound(cuts.model, model_bound(cuts.model, held.view(), radius));
        },
        "cuts"_a, "shares"_a, "radius"_a);
    master.def(
        "slope_by_client",
        [](const Cuts& cuts, nb::handle shares) {
            const HeldVector<> held = cuts.shares(shares);
            NewMatrix out(cuts.model.n_clients(), cuts.model.width());
            slope_by_client(cuts.model, held.view(), out.view());
            return out.object;
        },
        "cuts"_a, "shares"_a);
    master.def(
        "distance_bound",
        [](const Cuts& cuts, nb::handle centre, double level, nb::handle shares, double multiplier,
           nb::handle metric, double least, nb::handle near) {
            const HeldVector<> held = cuts.shares(shares), held_centre = cuts.point(centre),
                               point = cuts.point(near);
            const GivenMetric given(metric, least, cuts.model.width());
            return distance_bound(cuts.model, {held_centre.view(), level, given.view()},
                                  held.view(), multiplier, point.view());
        },
        "cuts"_a, "centre"_a, "level"_a, "shares"_a, "multiplier"_a, nb::kw_only(),
        "metric"_a.none(), "least"_a, "near"_a);
}

void bind_problem(nb::module_& master) {
    nb::class_<GivenProblem>(master, "Problem", "A scaled problem, for solvers of other kinds.")
        .def_ro("cuts", &GivenProblem::cuts)
        .def_ro("constants", &GivenProblem::constants)
        .def_ro("starts", &GivenProblem::starts)
        .def_ro("alphas", &GivenProblem::alphas)
        .def_ro("curvature", &GivenProblem::curvature)
        .def_ro("metric", &GivenProblem::metric)
        .def_ro("centre", &GivenProblem::centre)
        .def_ro("n_normed", &GivenProblem::n_normed)
        .def_ro("norm", &GivenProblem::norm)
        .def_ro("groups", &GivenProblem::groups)
        .def_ro("level", &GivenProblem::level)
        .def_ro("levelled", &GivenProblem::levelled);
}

void bind_tasks(nb::module_& master) {
    nb::class_<HeldMinimisation>(master, "Minimisation", "The best point and bound so far.")
        .def_prop_ro("w", &HeldMinimisation::w)
        .def_prop_ro("value", &HeldMinimisation::value)
        .def_prop_ro("value_at_0", &HeldMinimisation::value_at_0)
        .def_prop_ro("bound", &HeldMinimisation::bound)
        .def_prop_ro("gap", &HeldMinimisation::gap)
        .def_prop_ro("n_iter", &HeldMinimisation::n_iter)
        .def_prop_ro("is_trivial", &HeldMinimisation::is_trivial)
        .def("problem", &HeldMinimisation::problem)
        .def("offer", &HeldMinimisation::offer, "w"_a, "cut_multipliers"_a);
    master.def(
        "minimise",
        [](const Cuts& cuts, double radius, double tol, int max_iter) {
            return new HeldMinimisation(cuts, radius, {tol, max_iter});
        },
        "cuts"_a, nb::kw_only(), "radius"_a, "tol"_a, "max_iter"_a);
    nb::class_<GivenPoint>(master, "GradedPoint", "A point, graded as a projection.")
        .def_ro("w", &GivenPoint::w)
        .def_ro("value", &GivenPoint::value)
        .def_ro("shares", &GivenPoint::shares)
        .def_ro("level_multiplier", &GivenPoint::level_multiplier)
        .def_ro("distance", &GivenPoint::distance)
        .def_ro("gap", &GivenPoint::gap)
        .def_ro("bound", &GivenPoint::bound);
    nb::class_<HeldProjection>(master, "Projection", "A projection, and what is graded by it.")
        .def_prop_ro("value_at_centre", &HeldProjection::value_at_centre)
        .def_prop_ro("value_at_0", &HeldProjection::value_at_0)
        .def_prop_ro("first", &HeldProjection::first)
        .def_prop_ro("n_iter", &HeldProjection::n_iter)
        .def("problem", &HeldProjection::problem)
        .def("grade", &HeldProjection::grade, "w"_a, "cut_multipliers"_a, "level_price"_a)
        .def("grade_point", &HeldProjection::grade_point, "w"_a);
    master.def(
        "project",
        [](const Cuts& cuts, nb::handle centre, double level, nb::handle metric, double least,
           double tol, int max_iter) {
            return new HeldProjection(cuts, centre, level, metric, least, {tol, max_iter});
        },
        "cuts"_a, "centre"_a, "level"_a, nb::kw_only(), "metric"_a.none(), "least"_a, "tol"_a,
        "max_iter"_a);
}

}  // namespace

void bind_master(nb::module_& module) {
    nb::module_ master =
        module.def_submodule("master", "The server's cutting-plane problem and its bounds.");
    bind_model(master);
    bind_bounds(master);
    bind_problem(master);
    bind_tasks(master);
}

}  // namespace fdrsvm::edge
