#include <algorithm>

#include "../client/grading.hpp"
#include "../client/problem.hpp"
#include "../client/solve.hpp"
#include "arrays.hpp"
#include "parts.hpp"

namespace fdrsvm::edge {

namespace {

using client::Answer;
using client::Ball;
using client::Penalties;
using client::Problem;
using client::Samples;

// Checks here, at the edge, are written so that a nan fails them; kernels check nothing.
Ball check_ball(double epsilon, double kappa, int norm) {
    if (!(epsilon >= 0.0 && kappa > 0.0))
        throw nb::value_error("epsilon: must be at least 0, and kappa above 0");
    return {epsilon, kappa, check_norm(norm)};
}

void check_samples(size_t count, size_t width) {
    if (count == 0 || width == 0)
        throw nb::value_error("X: must have at least one sample and one feature");
}

Problem dense_problem(nb::handle X, nb::handle y, nb::handle mass, double largest,
                      bool fit_intercept, const Ball& ball, const Penalties& penalties) {
    const HeldMatrix<> rows(X, "X");
    const HeldVector<> labels(y, "y", rows.shape(0)), masses(mass, "mass", rows.shape(0));
    check_samples(rows.shape(0), rows.shape(1));
    if (!(largest > 0.0)) throw nb::value_error("largest: must be above 0");
    // Shared, so that the same rows serve problems with other penalties without a copy.
    std::shared_ptr<const Samples> samples;
    {
        nb::gil_scoped_release unlocked;
        samples = std::make_shared<Samples>(rows.view(), labels.view(), masses.view(), largest,
                                            fit_intercept);
    }
    return {samples, fit_intercept, ball, penalties};
}

// (data, indices, indptr, width) of signed rows in their own unit; indices ascend within a row.
// Every index is checked: a kernel follows it without looking, and a wrong one would read or write
// foreign memory.
Rows check_sparse_rows(const HeldVector<>& data, const HeldVector<const std::int32_t>& indices,
                       const HeldVector<const std::int32_t>& indptr, size_t width) {
    const auto starts = indptr.view();
    if (starts.empty() || starts.front() != 0 || size_t(starts.back()) != data.size())
        throw nb::value_error("indptr: must go from 0 to the number of entries");
    for (size_t n = 0; n + 1 < starts.size(); ++n) {
        if (starts[n] > starts[n + 1] || size_t(starts[n + 1]) > data.size())
            throw nb::value_error("indptr: must not descend, nor go beyond the entries");
        for (std::int32_t k = starts[n]; k < starts[n + 1]; ++k) {
            const std::int32_t column = indices.view()[size_t(k)];
            const bool ascends = k == starts[n] || column > indices.view()[size_t(k) - 1];
            if (column < 0 || size_t(column) >= width || !ascends)
                throw nb::value_error("indices: must ascend within a row and be below the width");
        }
    }
    Rows rows;
    rows.count = starts.size() - 1;
    rows.width = width;
    rows.data = data.view();
    rows.indices = indices.view();
    rows.indptr = indptr.view();
    return rows;
}

size_t width_of(nb::handle given) {
    size_t width;
    if (!nb::try_cast(given, width)) refuse("width", "a whole number, not negative");
    return width;
}

Problem sparse_problem(const nb::tuple& csr, nb::handle y, nb::handle mass, double scale,
                       bool fit_intercept, const Ball& ball, const Penalties& penalties) {
    if (csr.size() != 4) throw nb::value_error("csr: must be (data, indices, indptr, width)");
    const HeldVector<> data(csr[0], "data");
    const HeldVector<const std::int32_t> indices(csr[1], "indices", data.size());
    const HeldVector<const std::int32_t> indptr(csr[2], "indptr");
    const Rows rows = check_sparse_rows(data, indices, indptr, width_of(csr[3]));
    const HeldVector<> labels(y, "y", rows.count), masses(mass, "mass", rows.count);
    check_samples(rows.count, rows.width > size_t(fit_intercept) ? rows.width : 0);
    if (!(scale > 0.0 && scale < kInfinity))
        throw nb::value_error("scale: must be above 0 and finite");
    auto samples = std::make_shared<Samples>(rows, labels.view(), masses.view(), scale);
    return {samples, fit_intercept, ball, penalties};
}

// The signed rows of a dense problem, without padding.
nb::object dense_rows(const Problem& problem) {
    const Rows& rows = problem.samples->rows;
    NewMatrix out(rows.is_sparse() ? 0 : rows.count, rows.width);
    for (size_t n = 0; n < out.view().rows; ++n)
        std::copy_n(rows.dense[n].data(), rows.width, out.view()[n].data());
    return out.object;
}

nb::object copy_of(const double* from, size_t size) {
    NewVector out(size);
    std::copy_n(from, size, out.view().data());
    return out.object;
}

// A vector of the client's or nobody's samples: rows' @ x, in the problem's unit.
nb::object pull_of(const Problem& problem, nb::handle x) {
    const Rows& rows = problem.samples->rows;
    const HeldVector<> held(x, "x", rows.count);
    Buffer<> given(padded(rows.count), 0.0), out(padded(rows.width));
    std::copy_n(held.data(), rows.count, given.data());
    transposed_times(rows, given.data(), out.data());
    return copy_of(out.data(), rows.width);
}

// A Grade and its tension, turned into a cut in the caller's unit.
struct Certificate {
    double objective, multiplier, gap, constant, norm_weight;
    nb::object slope;  // an intercept's entry comes last
};

Certificate certificate_of(const Problem& problem, const grading::Grade& grade,
                           ConstVector tension) {
    const double scale = problem.samples->scale;
    NewVector slope(tension.size());
    // An intercept has no unit of its own, so only features are scaled back, [unit].
    for (size_t j = 0; j < tension.size(); ++j)
        slope.view()[j] = j < problem.n_features() ? -tension[j] * scale : -tension[j];
    return {grade.objective, grade.lam / scale,         grade.gap(),
            grade.constant,  grade.norm_weight * scale, slope.object};
}

struct NativeAnswer {
    Certificate certificate;
    nb::object w;  // in the caller's unit, without the intercept
    double intercept;
    int n_iter;
    bool solved;
    nb::tuple start;  // the fields of a WarmStart
};

NativeAnswer answer_of(const Problem& problem, const Answer& answer) {
    const size_t P = problem.n_features(), width = problem.samples->rows.width;
    const size_t count = problem.samples->rows.count;
    const client::Point& point = answer.point;
    NewVector w(P);
    for (size_t p = 0; p < P; ++p) w.view()[p] = point.w[p] / problem.samples->scale;
    return {certificate_of(problem, answer.grade, answer.tension),
            w.object,
            width > P ? point.w[P] : 0.0,
            answer.n_iter,
            answer.solved,
            nb::make_tuple(copy_of(point.w.data(), width), point.w[width],
                           copy_of(point.kept.data(), count), copy_of(point.flipped.data(), count),
                           copy_of(point.pull.data(), P), point.sigma)};
}

// The arrays of a WarmStart, kept while they are read.
struct HeldStart {
    HeldVector<> w, kept, flipped, pull;
    double lam, sigma;

    HeldStart(const Problem& problem, const nb::tuple& start) {
        if (start.size() != 6)
            throw nb::value_error("start: must be (w, lam, kept, flipped, pull, sigma)");
        const Rows& rows = problem.samples->rows;
        w = HeldVector<>(start[0], "w", rows.width);
        lam = number(start[1], "lam");
        kept = HeldVector<>(start[2], "kept", rows.count);
        flipped = HeldVector<>(start[3], "flipped", rows.count);
        pull = HeldVector<>(start[4], "pull", problem.n_features());
        sigma = number(start[5], "sigma");
    }
    static double number(nb::handle given, const char* name) {
        double value;
        if (!nb::try_cast(given, value)) refuse(name, "a number");
        return value;
    }
    client::Start view() const {
        return {w.view(), lam, kept.view(), flipped.view(), pull.view(), sigma};
    }
};

// (centre_intercept, tol, max_newton)
struct Numbers {
    double centre_intercept, tol;
    int max_newton;
};

NativeAnswer solve(const Problem& problem, nb::handle centre, const Numbers& numbers,
                   nb::handle start, bool retry) {
    const HeldVector<> held(centre, "centre", problem.n_features());
    const client::Task task{held.view(), numbers.centre_intercept, numbers.tol, numbers.max_newton};
    if (start.is_none()) {
        const Answer answer = [&] {
            nb::gil_scoped_release unlocked;
            return client::solve(problem, task, nullptr);
        }();
        return answer_of(problem, answer);
    }
    if (!nb::isinstance<nb::tuple>(start)) refuse("start", "a WarmStart or None");
    const HeldStart held_start(problem, nb::borrow<nb::tuple>(start));
    const client::Start view = held_start.view();
    const Answer answer = [&] {
        nb::gil_scoped_release unlocked;
        return retry ? client::solve(problem, task, &view)
                     : client::solve_from(problem, task, view);
    }();
    return answer_of(problem, answer);
}

Certificate grade(const Problem& problem, const std::pair<nb::handle, double>& centre, nb::handle w,
                  nb::handle kept, nb::handle flipped) {
    const Rows& rows = problem.samples->rows;
    const HeldVector<> held_centre(centre.first, "centre", problem.n_features());
    const HeldVector<> held_w(w, "w", rows.width), held_kept(kept, "kept", rows.count),
        held_flipped(flipped, "flipped", rows.count);
    Buffer<> tension(rows.width);
    grading::Grade grade;
    {
        nb::gil_scoped_release unlocked;
        grade = grading::grade(client::grounds_of(problem), {held_centre.data(), centre.second},
                               {held_w.data(), held_kept.data(), held_flipped.data()}, tension);
    }
    return certificate_of(problem, grade, tension);
}

void bind_problem(nb::module_& submodule) {
    nb::class_<Problem>(submodule, "ClientProblem",
                        "Signed rows, masses, ball and penalties of one client.")
        .def_static(
            "dense",
            [](nb::handle X, nb::handle y, nb::handle mass, double largest, bool fit_intercept,
               double epsilon, double kappa, int norm, double rho, double tau) {
                return dense_problem(X, y, mass, largest, fit_intercept,
                                     check_ball(epsilon, kappa, norm), {rho, tau});
            },
            "X"_a, "y"_a, "mass"_a, nb::kw_only(), "largest"_a, "fit_intercept"_a, "epsilon"_a,
            "kappa"_a, "norm"_a, "rho"_a, "tau"_a)
        .def_static(
            "sparse",
            [](const nb::tuple& csr, nb::handle y, nb::handle mass, double scale,
               bool fit_intercept, double epsilon, double kappa, int norm, double rho, double tau) {
                return sparse_problem(csr, y, mass, scale, fit_intercept,
                                      check_ball(epsilon, kappa, norm), {rho, tau});
            },
            "csr"_a, "y"_a, "mass"_a, nb::kw_only(), "scale"_a, "fit_intercept"_a, "epsilon"_a,
            "kappa"_a, "norm"_a, "rho"_a, "tau"_a)
        .def(
            "with_penalties",
            [](const Problem& problem, double rho, double tau) {
                return Problem(problem.samples, problem.fit_intercept, problem.given, {rho, tau});
            },
            "rho"_a, "tau"_a)
        .def_prop_ro("n_samples", [](const Problem& p) { return p.samples->rows.count; })
        .def_prop_ro("n_features", &Problem::n_features)
        .def_prop_ro("width", [](const Problem& p) { return p.samples->rows.width; })
        .def_ro("fit_intercept", &Problem::fit_intercept)
        .def_prop_ro("feature_scale", [](const Problem& p) { return p.samples->scale; })
        .def_prop_ro("is_wide", [](const Problem& p) { return p.terms().wide; })
        .def_prop_ro("epsilon", [](const Problem& p) { return p.ball.epsilon; })
        .def_prop_ro("kappa", [](const Problem& p) { return p.ball.kappa; })
        .def_prop_ro("norm", [](const Problem& p) { return static_cast<int>(p.ball.norm); })
        .def_prop_ro("rho", [](const Problem& p) { return p.penalties.rho; })
        .def_prop_ro("tau", [](const Problem& p) { return p.penalties.tau; })
        .def_ro("intercept_rho", &Problem::intercept_rho)
        .def("dense_rows", &dense_rows)
        .def(
            "mass",
            [](const Problem& p) { return copy_of(p.samples->mass.data(), p.samples->rows.count); })
        .def("pull_of", &pull_of, "x"_a);
}

void bind_answers(nb::module_& submodule) {
    nb::class_<Certificate>(submodule, "Certificate")
        .def_ro("objective", &Certificate::objective)
        .def_ro("multiplier", &Certificate::multiplier)
        .def_ro("gap", &Certificate::gap)
        .def_ro("constant", &Certificate::constant)
        .def_ro("slope", &Certificate::slope)
        .def_ro("norm_weight", &Certificate::norm_weight);
    nb::class_<NativeAnswer>(submodule, "Answer")
        .def_ro("certificate", &NativeAnswer::certificate)
        .def_ro("w", &NativeAnswer::w)
        .def_ro("intercept", &NativeAnswer::intercept)
        .def_ro("n_iter", &NativeAnswer::n_iter)
        .def_ro("solved", &NativeAnswer::solved)
        .def_ro("start", &NativeAnswer::start);
}

}  // namespace

void bind_client(nb::module_& module) {
    nb::module_ submodule = module.def_submodule("client", "The client's problem and its answers.");
    bind_problem(submodule);
    bind_answers(submodule);
    submodule.def(
        "solve",
        [](const Problem& problem, nb::handle centre, double centre_intercept, nb::handle start,
           double tol, int max_newton) {
            return solve(problem, centre, {centre_intercept, tol, max_newton}, start, true);
        },
        "problem"_a, "centre"_a, "centre_intercept"_a, "start"_a.none(), "tol"_a, "max_newton"_a);
    submodule.def(
        "solve_from",
        [](const Problem& problem, nb::handle centre, double centre_intercept, nb::handle start,
           double tol, int max_newton) {
            return solve(problem, centre, {centre_intercept, tol, max_newton}, start, false);
        },
        "problem"_a, "centre"_a, "centre_intercept"_a, "start"_a, "tol"_a, "max_newton"_a);
    submodule.def(
        "grade",
        [](const Problem& problem, nb::handle centre, double centre_intercept, nb::handle w,
           nb::handle kept, nb::handle flipped) {
            return grade(problem, {centre, centre_intercept}, w, kept, flipped);
        },
        "problem"_a, "centre"_a, "centre_intercept"_a, "w"_a, "kept"_a, "flipped"_a);
    submodule.def(
        "largest_magnitude",
        [](nb::handle X) {
            const HeldMatrix<> rows(X, "X");
            nb::gil_scoped_release unlocked;
            return client::largest_of(rows.data(), rows.size());
        },
        "X"_a);
}

}  // namespace fdrsvm::edge
