#include "step.hpp"

#include <algorithm>

#include "rows.hpp"

namespace fdrsvm::master {

Linearised::Linearised(const Problem& problem, size_t n_rows)
    : residuals{Buffer<>(n_rows), Variables(problem)},
      weights(n_rows),
      cone_u(problem.n_normed + 1),
      scaling(problem.n_normed + 1),
      system(problem) {}

NewtonStep::NewtonStep(const Problem& problem, size_t n_rows)
    : problem_(problem),
      at_(problem),
      direction_{Variables(problem), Buffer<>(n_rows), Buffer<>(n_rows),
                 Buffer<>(problem.n_normed + 1), Buffer<>(problem.n_normed + 1)},
      z_at_rest_(n_rows),
      cone_z_at_rest_(problem.n_normed + 1),
      right_hand_side_(problem),
      v_part_(problem),
      rows_part_(n_rows),
      rows_change_(n_rows),
      weighted_change_(n_rows),
      cone_pushed_back_(problem.n_normed + 1),
      cone_part_(problem.n_normed + 1) {}

void NewtonStep::predict(const Iterate& iterate, Linearised& at) {
    for (size_t i = 0; i < z_at_rest_.size(); ++i)
        z_at_rest_[i] = at.weights[i] * at.residuals.rows[i] - iterate.z[i];
    for (size_t p = 0; p < cone_z_at_rest_.size(); ++p) cone_z_at_rest_[p] = -iterate.cone_z[p];
    set_right_hand_side(at.residuals);
    solve(at, 1);
}

// Refined once: where weights differ by ten orders of magnitude one solve leaves the dual residual
// at 1e-10.
void NewtonStep::correct(const Iterate& iterate, Linearised& at, double target) {
    const Direction& last = direction_;
    for (size_t i = 0; i < z_at_rest_.size(); ++i)
        z_at_rest_[i] = at.weights[i] * at.residuals.rows[i] - iterate.z[i] +
                        (target - last.slack[i] * last.z[i]) / iterate.slack[i];
    if (problem_.has_cone()) {
        set_correction(at.scaling, iterate.cone_z, {last.cone_u, last.cone_z}, target,
                       cone_z_at_rest_);
        for (size_t p = 0; p < cone_z_at_rest_.size(); ++p) cone_z_at_rest_[p] -= iterate.cone_z[p];
    }
    set_right_hand_side(at.residuals);
    solve(at, 2);
}

void NewtonStep::set_right_hand_side(const Residuals& residuals) {
    const ConstVector dual = residuals.stationarity.all();
    Vector rhs = right_hand_side_.all();
    for (size_t j = 0; j < rhs.size(); ++j) rhs[j] = -dual[j];
    const double theta_price = problem_.levelled ? z_at_rest_[at_.level] : 0.0;
    add_transposed_rows(problem_, z_at_rest_, theta_price, -1.0, right_hand_side_);
    if (problem_.has_cone()) add_cone(problem_, cone_z_at_rest_, 1.0, right_hand_side_);
}

// Spends the right-hand side; each solve after the first refines. The change of R v is summed up on
// its own: were a refinement added to v's change first, it would be lost in rounding, which the
// weights then multiply.
void NewtonStep::solve(Linearised& at, int n_solves) {
    std::ranges::fill(direction_.v.all(), 0.0);
    std::fill_n(rows_change_.data(), rows_change_.size(), 0.0);
    std::fill_n(cone_pushed_back_.data(), cone_pushed_back_.size(), 0.0);
    for (int n = 0; n < n_solves; ++n) {
        if (n > 0) subtract_product(at);
        solve_once(at);
    }
    set_direction(at);
}

void NewtonStep::solve_once(Linearised& at) {
    const Vector part = v_part_.all(), change = direction_.v.all();
    std::ranges::copy(right_hand_side_.all(), part.begin());
    at.system.solve(v_part_);
    times_rows(problem_, v_part_, rows_part_);
    for (size_t j = 0; j < part.size(); ++j) change[j] += part[j];
    for (size_t i = 0; i < rows_part_.size(); ++i) rows_change_[i] += rows_part_[i];
    if (problem_.has_cone()) {
        gather_cone(problem_, v_part_, cone_part_);
        add_inverse_square(at.scaling, cone_part_, cone_pushed_back_);
    }
}

// Sets the right-hand side to what is left of it: less Newton's matrix times v's change, by parts.
void NewtonStep::subtract_product(const Linearised& at) {
    for (size_t i = 0; i < weighted_change_.size(); ++i)
        weighted_change_[i] = at.weights[i] * rows_change_[i];
    const double theta_price = problem_.levelled ? weighted_change_[at_.level] : 0.0;
    add_transposed_rows(problem_, weighted_change_, theta_price, -1.0, right_hand_side_);
    for (size_t j = 0; j < problem_.width(); ++j)
        right_hand_side_.w()[j] -= problem_.curvature[j] * direction_.v.w()[j];
    if (problem_.has_cone()) add_cone(problem_, cone_pushed_back_, -1.0, right_hand_side_);
}

void NewtonStep::set_direction(const Linearised& at) {
    for (size_t i = 0; i < rows_change_.size(); ++i) {
        direction_.slack[i] = -(at.residuals.rows[i] + rows_change_[i]);
        direction_.z[i] = at.weights[i] * rows_change_[i] + z_at_rest_[i];
    }
    if (problem_.has_cone()) {
        gather_cone(problem_, direction_.v, direction_.cone_u);
        for (size_t p = 0; p < cone_pushed_back_.size(); ++p)
            direction_.cone_z[p] = cone_z_at_rest_[p] - cone_pushed_back_[p];
    }
}

void add_cone(const Problem& problem, ConstVector cone, double sign, Variables& out) {
    out.s() += sign * cone[0];
    add_scaled(out.w(), sign, cone.data() + 1, problem.n_normed);
}

}  // namespace fdrsvm::master
