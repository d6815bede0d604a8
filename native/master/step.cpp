#include "step.hpp"

#include <algorithm>

#include "rows.hpp"

namespace fdrsvm::master {

// All memory of a step is taken once per solve, never in the loop.
Linearised::Linearised(const Problem& problem, size_t n_rows)
    : residuals{Buffer<>(n_rows), Variables(problem)},
      weights(n_rows),
      cone_u(problem.cone_size()),
      scaling(problem.cone_size()),
      system(problem) {}

NewtonStep::NewtonStep(const Problem& problem, size_t n_rows)
    : problem_(problem),
      at_(problem),
      direction_{Variables(problem), Buffer<>(n_rows), Buffer<>(n_rows),
                 Buffer<>(problem.cone_size()), Buffer<>(problem.cone_size())},
      z_at_rest_(n_rows),
      cone_z_at_rest_(problem.cone_size()),
      right_hand_side_(problem),
      v_increment_(problem),
      rows_increment_(n_rows),
      rows_change_(n_rows),
      weighted_change_(n_rows),
      cone_pushed_back_(problem.cone_size()),
      cone_increment_(problem.cone_size()) {}

// With dslack = -(rows + R dv) eliminated, dz = weights * (rows + R dv) - z: the part without dv is
// known beforehand and moves to the right-hand side.
void NewtonStep::predict(const Iterate& iterate, Linearised& at) {
    for (size_t i = 0; i < z_at_rest_.size(); ++i)
        z_at_rest_[i] = at.weights[i] * at.residuals.rows[i] - iterate.z[i];
    for (size_t p = 0; p < cone_z_at_rest_.size(); ++p) cone_z_at_rest_[p] = -iterate.cone_z[p];
    set_right_hand_side(at.residuals);
    solve(at, 1);
}

// Like the predictor, but towards the products `target`, and with the product of the predictor's
// own changes taken into account: that is the second-order term which a linearisation leaves out.
// Refined once: where weights differ by ten orders of magnitude, one solve leaves the dual residual
// at 1e-10, and [model-bound] multiplies that by 1/E.
void NewtonStep::correct(const Iterate& iterate, Linearised& at, double target) {
    const Direction& last = direction_;
    for (size_t i = 0; i < z_at_rest_.size(); ++i)
        z_at_rest_[i] = at.weights[i] * at.residuals.rows[i] - iterate.z[i] +
                        (target - last.slack[i] * last.z[i]) / iterate.slack[i];
    // For the cone the same, with the cone's own product in place of that of numbers.
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
    // Without a level the price of theta is the constant 1 and does not change.
    const double theta_price = problem_.levelled ? z_at_rest_[at_.level] : 0.0;
    add_transposed_rows(problem_, z_at_rest_, theta_price, -1.0, right_hand_side_);
    if (problem_.has_cone()) add_cone(problem_, cone_z_at_rest_, 1.0, right_hand_side_);
}

// Overwrites the right-hand side; each solve after the first refines. The change of R v is
// accumulated on its own: if a refinement were added to v's change first, it would be lost in the
// rounding of v's change, which weights of up to 1e10 then multiply, [master].
void NewtonStep::solve(Linearised& at, int n_solves) {
    // The corrector reads the predictor's changes before this overwrites them: z_at_rest holds all
    // that it needs of them.
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
    const Vector increment = v_increment_.all(), change = direction_.v.all();
    std::ranges::copy(right_hand_side_.all(), increment.begin());
    at.system.solve(v_increment_);
    // R times the increment, while the increment is small and its digits are its own.
    times_rows(problem_, v_increment_, rows_increment_);
    for (size_t j = 0; j < increment.size(); ++j) change[j] += increment[j];
    for (size_t i = 0; i < rows_increment_.size(); ++i) rows_change_[i] += rows_increment_[i];
    if (problem_.has_cone()) {
        gather_cone(problem_, v_increment_, cone_increment_);
        add_inverse_square(at.scaling, cone_increment_, cone_pushed_back_);
    }
}

// Subtracts Newton's matrix times v's change from the right-hand side, term by term from the rows'
// own change. The factorised matrix is not used: its rounding is what the refinement corrects.
void NewtonStep::subtract_product(const Linearised& at) {
    for (size_t i = 0; i < weighted_change_.size(); ++i)
        weighted_change_[i] = at.weights[i] * rows_change_[i];
    const double theta_price = problem_.levelled ? weighted_change_[at_.level] : 0.0;
    add_transposed_rows(problem_, weighted_change_, theta_price, -1.0, right_hand_side_);
    add_curved(problem_, direction_.v.w(), -1.0, right_hand_side_.w());
    if (problem_.has_cone()) add_cone(problem_, cone_pushed_back_, -1.0, right_hand_side_);
}

void NewtonStep::set_direction(const Linearised& at) {
    // From the rows' accumulated change, not from R times v's change, for the reason above.
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
    add_scaled(problem.has_bounds() ? out.bounds() : out.w(), sign, cone.data() + 1,
               cone.size() - 1);
}

}  // namespace fdrsvm::master
