#include "solves.hpp"

namespace fdrsvm::screening {

namespace {

constexpr double kSquares = 1e-6;  // squares only steer when ADMM stops

// One client's answer, and what the server knows of it.
struct Solution {
    ConstVector mu;
    ConstVector vector;
    ConstVector squares;
    ConstVector previous;
    double risk;
    Cut cut;
};

// Of a vector whose entries come one by one.
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
    double length = 0.0;  // of what is left of the optimality condition, in the transport norm
    double pull = 0.0;    // its last entry
    double centre = 0.0;
    double moved = 0.0;
    double local = 0.0;
    double dual = 0.0;
    double scale = 0.0;
    double steepest = 0.0;
    double fall = 0.0;        // v.w_g
    double fall_scale = 0.0;  // and the size of its terms
};

// The client's solution, from its vector.
double own_entry(const Solve& solve, const Solution& found, size_t j) {
    return (found.vector[j] - found.mu[j] - (1.0 - solve.relaxation) * solve.w[j]) /
           solve.relaxation;
}

// A norm's sum with one entry more; that of l2 is a sum of squares.
double gathered(double length, double entry, Norm norm) {
    if (norm == Norm::l1) return length + std::fabs(entry);
    if (norm == Norm::linf) return larger(length, std::fabs(entry));
    return length + entry * entry;
}

Sums sums_of(const Solve& solve, const Solution& found) {
    Sums sums;
    for (size_t j = 0; j < solve.w.size(); ++j) {
        const bool is_feature = j < solve.n_features;
        const double w = solve.w[j], mu = found.mu[j], vector = found.vector[j];
        const double theta = is_feature ? solve.rho + 2.0 * solve.tau : solve.rho;
        const double own = own_entry(solve, found, j), slope = found.cut.slope[j];
        sums.pull = solve.rho * (w - mu) - theta * own - slope;
        if (is_feature) sums.length = gathered(sums.length, sums.pull, solve.norm);
        sums.centre += square(w - mu);
        sums.local += square(own);
        sums.dual += square(mu);
        sums.moved += square(found.previous[j] - w);
        sums.scale += square(std::fabs(vector) + std::fabs(mu) + std::fabs(w));
        sums.steepest = larger(sums.steepest, std::fabs(slope));
        sums.fall += slope * own;
        sums.fall_scale += std::fabs(slope * own);
    }
    if (solve.norm == Norm::l2) sums.length = std::sqrt(sums.length);
    return sums;
}

// How far the local objective may be above its least value.
double gap_of(const Solve& solve, const Sums& sums) {
    return solve.gap * (1.0 + 0.5 * solve.rho * sums.centre) / (1.0 - solve.gap);
}

Finding judge_vector(const Solve& solve, const Sums& sums, double norm_weight) {
    if (!std::isfinite(sums.scale))  // a number whose square overflows is beyond all limits
        return {Rule::vector, std::sqrt(sums.scale), sums.steepest};
    const double theta = solve.rho + 2.0 * solve.tau, gap = gap_of(solve, sums);
    const double spread =
        solve.norm == Norm::l1 ? std::sqrt(static_cast<double>(solve.n_features)) : 1.0;
    const double error =
        kRounding * (theta * std::sqrt(sums.scale) / solve.relaxation + sums.steepest);
    double limit = norm_weight + spread * (std::sqrt(2.0 * theta * gap) + error);
    if (!(sums.length <= limit)) return {Rule::vector, sums.length, limit};
    limit = std::sqrt(2.0 * solve.rho * gap) + error;
    if (solve.w.size() > solve.n_features && !(std::fabs(sums.pull) <= limit))
        return {Rule::intercept, std::fabs(sums.pull), limit};
    return {};
}

Finding judge_squares(const Solve& solve, const Sums& sums, ConstVector squares) {
    const double expected[3] = {sums.moved, sums.local, sums.dual};
    for (size_t k = 0; k < 3; ++k) {
        // Of the first one nothing is known after an answer that was lost.
        if (k == 0 && std::isnan(sums.moved)) continue;
        const double slack =
            kSquares * (expected[k] + kSquares * sums.scale / square(solve.relaxation));
        if (!(std::fabs(squares[k] - expected[k]) <= slack))
            return {Rule::squares, squares[k], expected[k]};
    }
    return {};
}

// A risk cannot be far above what the solve proves: f(w_g) is at most the cut there plus the gap,
// and from w_g to w it grows by S(w - w_g) + floor ||w - w_g||_* at most.
Finding judge_risk(const Bounds& bounds, const Solve& solve, const Solution& found,
                   const Sums& sums, double floor) {
    DualSize size(solve.norm), apart(solve.norm);
    double score = 0.0, reach = 0.0;
    for (size_t j = 0; j < solve.w.size(); ++j) {
        const double own = own_entry(solve, found, j), step = solve.w[j] - own;
        score += bounds.slopes[j] * std::fabs(step);
        reach += bounds.slopes[j] * (std::fabs(solve.w[j]) + std::fabs(own));
        if (j >= solve.n_features) continue;
        size.add(own);
        apart.add(step);
    }
    const double held = found.cut.norm_weight * size.value(), moved = floor * apart.value();
    const double limit =
        found.cut.constant + sums.fall + held + gap_of(solve, sums) + score + moved;
    const double scale =
        std::fabs(found.cut.constant) + sums.fall_scale + held + moved + std::fabs(found.risk);
    const double slack = kRounding * (scale + score) + kTiny * (1.0 + reach) + 2.0 * bounds.grid;
    if (!(found.risk <= limit + slack)) return {Rule::over, found.risk, limit};
    return {};
}

}  // namespace

void judge_solves(const Bounds& bounds, const Radii& radii, const Solve& solve,
                  const Solved& solved, ConstMatrix duals, ConstMatrix own,
                  std::span<Finding> found) {
    for (size_t k = 0; k < solved.clients.size(); ++k) {
        const size_t client = solved.clients[k];
        const Solution solution = {duals[client], solved.vectors[k], solved.squares[k],
                                   own[client],   solved.risks[k],   solved.cuts[k]};
        const Sums sums = sums_of(solve, solution);
        found[k] = judge_vector(solve, sums, solution.cut.norm_weight);
        if (found[k].is_kept()) found[k] = judge_squares(solve, sums, solution.squares);
        if (found[k].is_kept() && bounds.has_slopes)
            found[k] = judge_risk(bounds, solve, solution, sums, radii[client].floor);
    }
}

}  // namespace fdrsvm::screening
