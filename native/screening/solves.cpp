#include "solves.hpp"

namespace fdrsvm::screening {

namespace {

// Squares only steer when ADMM stops and prove nothing, so a coarse check is enough.
constexpr double kSquares = 1e-6;

// One client's answer, and what the server knows of it.
struct Solution {
    ConstVector mu;
    ConstVector vector;
    ConstVector squares;
    ConstVector previous;
    double risk;
    Cut cut;
};

// The dual norm of a vector whose entries come one by one, so that w_g need not be stored.
class DualSize {
  public:
    explicit DualSize(Norm norm) : norm_(norm) {}
    void add(double entry) {
        if (norm_ == Norm::linf) sum_ += std::fabs(entry);
        if (norm_ == Norm::l1) sum_ = larger(sum_, std::fabs(entry));
        if (norm_ == Norm::l2) sum_ += entry * entry;
    }
    double value() const { return norm_ == Norm::l2 ? std::sqrt(sum_) : sum_; }

  private:
    Norm norm_;
    double sum_ = 0.0;
};

double square(double x) { return x * x; }

// Sums over the entries of a model.
struct Sums {
    double residual_size = 0.0;        // of the optimality condition, in the transport norm
    double residual = 0.0;             // its last entry: the intercept's, if there is one
    double centre_square = 0.0;        // ||w - mu_g||^2
    double previous_apart = 0.0;       // ||(last w_g) - w||^2; nan if the last w_g is unknown
    double own_square = 0.0;           // ||w_g||^2
    double dual_square = 0.0;          // ||mu_g||^2
    double scale_square = 0.0;         // of the numbers that w_g is a difference of
    double steepest = 0.0;             // max |v_j|
    double slope_product = 0.0;        // v.w_g
    double slope_product_scale = 0.0;  // and the size of its terms
};

// w_g, from the vector r w_g + (1 - r) w + mu_g that the client sent. The server knows mu_g, so the
// client need not send w_g and cannot send one that does not fit.
double own_entry(const Solve& solve, const Solution& answer, size_t j) {
    return (answer.vector[j] - answer.mu[j] - (1.0 - solve.relaxation) * solve.w[j]) /
           solve.relaxation;
}

// A transport norm's running sum with one more entry; for l2 it is a sum of squares.
double with_entry(double size, double entry, Norm norm) {
    if (norm == Norm::l1) return size + std::fabs(entry);
    if (norm == Norm::linf) return larger(size, std::fabs(entry));
    return size + entry * entry;
}

Sums sums_of(const Solve& solve, const Solution& answer) {
    Sums sums;
    for (size_t j = 0; j < solve.w.size(); ++j) {
        const bool is_feature = j < solve.n_features;
        const double w = solve.w[j], mu = answer.mu[j], vector = answer.vector[j];
        // tau does not apply to an intercept, [intercept].
        const double theta = is_feature ? solve.rho + 2.0 * solve.tau : solve.rho;
        const double own = own_entry(solve, answer, j), slope = answer.cut.slope[j];
        // The gradient of the proximal terms less the cut's slope; at the solution it equals a
        // subgradient of sigma ||w||_*, hence its transport norm is at most sigma.
        sums.residual = solve.rho * (w - mu) - theta * own - slope;
        if (is_feature)
            sums.residual_size = with_entry(sums.residual_size, sums.residual, solve.norm);
        sums.centre_square += square(w - mu);
        sums.own_square += square(own);
        sums.dual_square += square(mu);
        sums.previous_apart += square(answer.previous[j] - w);
        // Sizes before subtraction: w_g may be small although all three are large.
        sums.scale_square += square(std::fabs(vector) + std::fabs(mu) + std::fabs(w));
        sums.steepest = larger(sums.steepest, std::fabs(slope));
        sums.slope_product += slope * own;
        sums.slope_product_scale += std::fabs(slope * own);
    }
    if (solve.norm == Norm::l2) sums.residual_size = std::sqrt(sums.residual_size);
    return sums;
}

// delta: how far the local objective may be above its least value. The tolerance is relative to the
// objective, which is at most that of the model 0 (1 plus the proximal term) plus delta itself;
// solving for delta gives the denominator.
double gap_of(const Solve& solve, const Sums& sums) {
    return solve.gap * (1.0 + 0.5 * solve.rho * sums.centre_square) / (1.0 - solve.gap);
}

Finding judge_vector(const Solve& solve, const Sums& sums, double norm_weight) {
    if (!std::isfinite(sums.scale_square))  // a number whose square overflows is beyond all limits
        return {Rule::vector, std::sqrt(sums.scale_square), sums.steepest};
    const double theta = solve.rho + 2.0 * solve.tau, gap = gap_of(solve, sums);
    // Strong convexity bounds the distance to the minimiser in the Euclidean norm; measured in l1
    // it may be sqrt(P) times as long, in l2 and linf it is no longer.
    const double spread =
        solve.norm == Norm::l1 ? std::sqrt(static_cast<double>(solve.n_features)) : 1.0;
    const double error =
        kRounding * (theta * std::sqrt(sums.scale_square) / solve.relaxation + sums.steepest);
    double limit = norm_weight + spread * (std::sqrt(2.0 * theta * gap) + error);
    if (!(sums.residual_size <= limit)) return {Rule::vector, sums.residual_size, limit};
    // The norm does not see an intercept, so there sigma does not help: its residual is 0 up to the
    // gap, with the curvature rho alone.
    limit = std::sqrt(2.0 * solve.rho * gap) + error;
    if (solve.w.size() > solve.n_features && !(std::fabs(sums.residual) <= limit))
        return {Rule::intercept, std::fabs(sums.residual), limit};
    return {};
}

Finding judge_squares(const Solve& solve, const Sums& sums, ConstVector squares) {
    const double expected[3] = {sums.previous_apart, sums.own_square, sums.dual_square};
    for (size_t k = 0; k < 3; ++k) {
        // After a lost answer the server does not know the last w_g, and cannot check the first.
        if (k == 0 && std::isnan(sums.previous_apart)) continue;
        const double slack =
            kSquares * (expected[k] + kSquares * sums.scale_square / square(solve.relaxation));
        if (!(std::fabs(squares[k] - expected[k]) <= slack))
            return {Rule::squares, squares[k], expected[k]};
    }
    return {};
}

// A risk cannot be far above what the solve proves: f(w_g) is at most the cut there plus the gap,
// and from w_g to w it grows by at most S(w - w_g) + floor ||w - w_g||_*. Without this rule ADMM's
// risks would be free, since its cut is made at w_g and does not touch the risk at w, [limits].
Finding judge_risk(const Bounds& bounds, const Solve& solve, const Solution& answer,
                   const Sums& sums, double floor) {
    DualSize own_size(solve.norm), step_size(solve.norm);
    double score_growth = 0.0, largest_scores = 0.0;
    for (size_t j = 0; j < solve.w.size(); ++j) {
        const double own = own_entry(solve, answer, j), step = solve.w[j] - own;
        score_growth += bounds.slopes[j] * std::fabs(step);
        largest_scores += bounds.slopes[j] * (std::fabs(solve.w[j]) + std::fabs(own));
        if (j >= solve.n_features) continue;
        own_size.add(own);
        step_size.add(step);
    }
    const double norm_term = answer.cut.norm_weight * own_size.value();
    const double radius_growth = floor * step_size.value();
    const double limit = answer.cut.constant + sums.slope_product + norm_term +
                         gap_of(solve, sums) + score_growth + radius_growth;
    const double scale = std::fabs(answer.cut.constant) + sums.slope_product_scale + norm_term +
                         radius_growth + std::fabs(answer.risk);
    // Risk and constant may each be off by one step of the grid, in opposite directions.
    const double slack =
        kRounding * (scale + score_growth) + kTiny * (1.0 + largest_scores) + 2.0 * bounds.grid;
    if (!(answer.risk <= limit + slack)) return {Rule::over, answer.risk, limit};
    return {};
}

}  // namespace

void judge_solves(const Bounds& bounds, const Radii& radii, const Solve& solve,
                  const Solved& solved, ConstMatrix duals, ConstMatrix own,
                  std::span<Finding> findings) {
    for (size_t k = 0; k < solved.clients.size(); ++k) {
        const size_t client = solved.clients[k];
        const Solution solution = {duals[client], solved.vectors[k], solved.squares[k],
                                   own[client],   solved.risks[k],   solved.cuts[k]};
        const Sums sums = sums_of(solve, solution);
        findings[k] = judge_vector(solve, sums, solution.cut.norm_weight);
        if (findings[k].is_kept()) findings[k] = judge_squares(solve, sums, solution.squares);
        // Without limits scores may grow by any amount between w_g and w.
        if (findings[k].is_kept() && bounds.has_slopes)
            findings[k] = judge_risk(bounds, solve, solution, sums, radii[client].floor);
    }
}

}  // namespace fdrsvm::screening
